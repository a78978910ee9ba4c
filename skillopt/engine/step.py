"""One training step: rollout, reflect, aggregate, select, update, evaluate. A function from progress to progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from skillopt.datasets.base import BatchSpec
from skillopt.engine.judging import gate_score, judge
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.metering import MeteredSession
from skillopt.engine.reflection import reflect_on
from skillopt.engine.state import Progress, TrainState
from skillopt.evaluation.evaluate import Evaluation
from skillopt.evaluation.gate import GateResult
from skillopt.gradient.aggregate import merge_patches
from skillopt.optimizer.schedule import edit_budget_at
from skillopt.optimizer.select import rank_and_select
from skillopt.optimizer.step_buffer import StepEntry, failure_patterns, render
from skillopt.optimizer.update import Candidate, update_skill
from skillopt.scoring import compute_score
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, Patch, RawPatch, RolloutResult, Usage
from skillopt.utils.files import atomic_write_json, atomic_write_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Which step this is. `step` counts from 1 over all epochs, `step_in_epoch` from 1 within its epoch."""

    step: int
    total_steps: int
    epoch: int
    step_in_epoch: int
    batches: tuple[BatchSpec, ...]


@dataclass(slots=True)
class _Work:
    """What one step has produced so far; becomes its record."""

    plan: StepPlan
    started: float = field(default_factory=time.monotonic)
    timing: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    results: list[RolloutResult] = field(default_factory=list)
    patches: list[RawPatch] = field(default_factory=list)
    batches: list[JsonObject] = field(default_factory=list)
    fields: JsonObject = field(default_factory=dict)

    def timed(self, name: str, action: Callable[[], T]) -> T:
        start = time.monotonic()
        try:
            return action()
        finally:
            self.timing[name] = round(self.timing.get(name, 0.0) + time.monotonic() - start, 3)


def run_step(kit: Kit, progress: Progress, plan: StepPlan, buffer: Sequence[StepEntry]) -> tuple[Progress, StepEntry]:
    """Do one step and write its files; the caller commits the returned progress.

    Raises TooManyErrorsError, BudgetExceededError, InterruptedRunError and fatal ModelErrors; everything finished
    by then is in the store and is not done again.
    """
    work = _Work(plan)
    kit.emit("step_started", step=plan.step, total_steps=plan.total_steps, epoch=plan.epoch)
    current = kit.load_skill(progress.state.current_skill_path)
    metered = MeteredSession(kit.session)
    context = render(buffer)
    for index, batch in enumerate(plan.batches):
        _rollout_and_reflect(kit, metered, work, current, (index, batch, context))
    failures = [patch for patch in work.patches if patch.source_type == "failure" and patch.patch.edits]
    successes = [patch for patch in work.patches if patch.source_type == "success" and patch.patch.edits]
    if not failures and not successes:
        return _close(kit, progress, work, metered, action="skip_no_patches")
    merged = work.timed("aggregate_s", lambda: _aggregate(kit, metered, current, failures, successes, plan))
    ranked = work.timed("select_s", lambda: _select(kit, metered, work, current, merged))
    candidate = work.timed("update_s", lambda: _update(kit, work, current, ranked))
    if not candidate.changed:
        return _close(kit, progress, work, metered, action="no_change", candidate=candidate)
    return _gate(kit, progress, work, metered, current, candidate)


def _rollout_and_reflect(
    kit: Kit, metered: MeteredSession, work: _Work, current: Skill, turn: tuple[int, BatchSpec, str]
) -> None:
    index, batch, context = turn
    folder = kit.folder.batch(work.plan.step, index, len(work.plan.batches))
    kit.emit("phase", name="1/6 ROLLOUT", detail=f"{batch.batch_size} items")
    results = work.timed("rollout_s", lambda: kit.rollout(batch, current, folder / "rollout"))
    kit.emit("phase", name="2/6 REFLECT", detail="")
    patches = work.timed(
        "reflect_s", lambda: reflect_on(kit, metered, results, current, folder, seed=batch.seed, context=context)
    )
    work.results += results
    work.patches += patches
    work.usage += sum((result.usage for result in results), Usage())
    hard, soft = compute_score([result for result in results if result.ok])
    work.batches.append(
        {
            "batch_idx": index,
            "batch_seed": batch.seed,
            "n_envs": len(results),
            "hard": round(hard, 6),
            "soft": round(soft, 6),
            "n_failure_patches": sum(patch.source_type == "failure" for patch in patches),
            "n_success_patches": sum(patch.source_type == "success" for patch in patches),
        }
    )


def _aggregate(
    kit: Kit,
    metered: MeteredSession,
    current: Skill,
    failures: Sequence[RawPatch],
    successes: Sequence[RawPatch],
    plan: StepPlan,
) -> Patch:
    kit.emit("phase", name="3/6 AGGREGATE", detail=f"{len(failures)} failure, {len(successes)} success patches")
    gradient = kit.config.gradient
    merged = merge_patches(
        failures,
        successes,
        current,
        session=metered,
        merge_batch_size=gradient.merge_batch_size,
        workers=gradient.analyst_workers,
        emit=kit.emit,
    )
    atomic_write_json(kit.folder.step(plan.step) / "merged_patch.json", merged.to_dict())
    return merged


def _select(kit: Kit, metered: MeteredSession, work: _Work, current: Skill, merged: Patch) -> Patch:
    optimizer, plan = kit.config.optimizer, work.plan
    budget: int | None = None
    if optimizer.lr_control_mode != "none":
        budget = edit_budget_at(
            plan.step,
            plan.total_steps,
            optimizer.lr_scheduler,
            optimizer.learning_rate,
            optimizer.min_learning_rate,
        )
    detail = f"{len(merged.edits)} edits, budget {'unlimited' if budget is None else budget}"
    kit.emit("phase", name="4/6 SELECT", detail=detail)
    limit = len(merged.edits) if budget is None else budget
    ranked = rank_and_select(merged, limit, current, session=metered, emit=kit.emit)
    atomic_write_json(kit.folder.step(plan.step) / "ranked_edits.json", ranked.to_dict())
    work.fields |= {
        "n_edits_merged": len(merged.edits),
        "n_edits_ranked": len(ranked.edits),
        "edit_budget": budget,
        "lr_control_mode": optimizer.lr_control_mode,
        "support_counts": [edit.support_count for edit in ranked.edits],
    }
    return ranked


def _update(kit: Kit, work: _Work, current: Skill, ranked: Patch) -> Candidate:
    kit.emit("phase", name="5/6 UPDATE", detail="")
    candidate = update_skill(current, ranked)
    folder = kit.folder.step(work.plan.step)
    atomic_write_text(folder / "candidate_skill.md", candidate.skill.text)
    rows = [row.to_dict() for row in candidate.outcome.rows]
    if rows:
        atomic_write_json(folder / "edit_apply_report.json", rows)
    work.fields |= {
        "candidate_hash": candidate.skill.hash,
        "candidate_skill_len": len(candidate.skill.text),
        "edit_apply_summary": candidate.outcome.summary(),
    }
    return candidate


def _gate(
    kit: Kit, progress: Progress, work: _Work, metered: MeteredSession, current: Skill, candidate: Candidate
) -> tuple[Progress, StepEntry]:
    kit.emit("phase", name="6/6 EVALUATE", detail="")
    folder = kit.folder.step(work.plan.step) / "selection_eval"
    scored = work.timed(
        "evaluate_s", lambda: kit.evaluate(candidate.skill, SELECTION, purpose="selection", out_dir=folder)
    )
    work.usage += scored.usage
    decision = judge(kit, progress, current, candidate.skill, scored, step=work.plan.step)
    work.fields |= {
        "selection_hard": round(scored.hard, 6),
        "selection_soft": round(scored.soft, 6),
        "selection_errors": scored.n_errors,
        "gate_metric": kit.config.evaluation.gate_metric,
        "candidate_gate_score": round(gate_score(kit, (scored.hard, scored.soft), candidate.skill), 6),
    }
    return _close(kit, progress, work, metered, outcome=(candidate, scored, decision))


def _close(
    kit: Kit,
    progress: Progress,
    work: _Work,
    metered: MeteredSession,
    *,
    action: str = "",
    outcome: tuple[Candidate, Evaluation, GateResult[str]] | None = None,
    candidate: Candidate | None = None,
) -> tuple[Progress, StepEntry]:
    """Write the skill after this step and its record; the new progress and what the optimizer should remember."""
    state, plan = progress.state, work.plan
    skill, scores = kit.load_skill(state.current_skill_path), progress.scores
    changes: dict[str, Any] = {"current_skill_path": kit.folder.relative(kit.folder.skill(plan.step))}
    score_after: float | None = None
    if outcome is not None:
        candidate, scored, decision = outcome
        action, score_after = decision.action, work.fields["candidate_gate_score"]
        changes |= _accepted(plan, decision)
        if decision.accepted:
            skill, scores = candidate.skill, scored
    atomic_write_text(kit.folder.skill(plan.step), skill.text)
    state = replace(
        state, **changes, last_completed_step=plan.step, wall_time_s=state.wall_time_s + time.monotonic() - work.started
    )
    record = _record(work, metered, state, action, skill)
    atomic_write_json(kit.folder.step(plan.step) / "step_record.json", record)
    entry = StepEntry.of_step(
        step=plan.step,
        action=action,
        results=work.results,
        patterns=failure_patterns(work.results, work.patches),
        score_before=progress.state.current_score,
        score_after=score_after,
        outcome=candidate.outcome if candidate is not None else None,
    )
    atomic_write_json(kit.folder.step(plan.step) / "trajectory_digest.json", entry.to_dict())
    kit.emit(
        "step_finished", step=plan.step, action=action, gated=outcome is not None, current_score=state.current_score
    )
    return Progress(state, scores, (*progress.history, record)), entry


def _accepted(plan: StepPlan, decision: GateResult[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {"current_score": decision.current_score, "best_score": decision.best_score}
    if decision.accepted:
        changes["current_origin"] = f"step_{plan.step:04d}"
    if decision.best_step == plan.step:
        changes |= {
            "best_skill_path": decision.best_skill,
            "best_step": plan.step,
            "best_origin": f"step_{plan.step:04d}",
        }
    return changes


def _record(work: _Work, metered: MeteredSession, state: TrainState, action: str, skill: Skill) -> JsonObject:
    hard, soft = compute_score([result for result in work.results if result.ok])
    usage, plan = work.usage + metered.usage, work.plan
    n_failure = sum(patch.source_type == "failure" for patch in work.patches)
    return {
        "step": plan.step,
        "epoch": plan.epoch,
        "step_in_epoch": plan.step_in_epoch,
        "action": action,
        "rollout_hard": round(hard, 6),
        "rollout_soft": round(soft, 6),
        "rollout_n": len(work.results),
        "rollout_errors": sum(not result.ok for result in work.results),
        "accumulation_batches": work.batches,
        "n_patches": len(work.patches),
        "n_failure_patches": n_failure,
        "n_success_patches": len(work.patches) - n_failure,
        **work.fields,
        "current_score": round(state.current_score, 6),
        "current_origin": state.current_origin,
        "best_score": round(state.best_score, 6),
        "best_step": state.best_step,
        "best_origin": state.best_origin,
        "skill_len": len(skill.text),
        "tokens": {
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
        "timing": work.timing,
        "wall_time_s": round(time.monotonic() - work.started, 3),
    }
