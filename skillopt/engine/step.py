"""One training step: rollout, reflect, aggregate, select, update, evaluate. A function from progress to progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from skillopt.datasets.base import BatchSpec
from skillopt.engine.gating import Candidate, Look, look
from skillopt.engine.kit import Kit
from skillopt.engine.metering import MeteredSession
from skillopt.engine.reflection import reflect_on
from skillopt.engine.state import Progress
from skillopt.gradient.aggregate import merge_patches
from skillopt.optimizer.schedule import edit_budget_at
from skillopt.optimizer.select import rank_and_select
from skillopt.optimizer.step_buffer import StepEntry, failure_patterns, render
from skillopt.optimizer.update import Update, update_skill
from skillopt.scoring import compute_score
from skillopt.skill.document import Skill
from skillopt.skill.edits import EditOutcome
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
    optimizer: MeteredSession
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
    work = _Work(plan, MeteredSession(kit.session))
    kit.emit("step_started", step=plan.step, total_steps=plan.total_steps, epoch=plan.epoch)
    current, context = progress.current.skill, render(buffer)
    for index, batch in enumerate(plan.batches):
        _rollout_and_reflect(kit, work, current, (index, batch, context))
    sides = [[p for p in work.patches if p.source_type == side and p.patch.edits] for side in ("failure", "success")]
    if not any(sides):
        return _close(kit, progress, work, action="skip_no_patches")
    merged = work.timed("aggregate_s", lambda: _aggregate(kit, work, current, sides))
    ranked = work.timed("select_s", lambda: _select(kit, work, current, merged))
    update = work.timed("update_s", lambda: _update(kit, work, current, ranked))
    if not update.changed:
        return _close(kit, progress, work, action="no_change", outcome=update.outcome)
    after, seen = work.timed("evaluate_s", lambda: _gate(kit, progress, work, update))
    return _close(kit, after, work, action=seen.action, outcome=update.outcome, seen=seen)


def _rollout_and_reflect(kit: Kit, work: _Work, current: Skill, turn: tuple[int, BatchSpec, str]) -> None:
    index, batch, context = turn
    folder = kit.folder.batch(work.plan.step, index, len(work.plan.batches))
    kit.emit("phase", name="1/6 ROLLOUT", detail=f"{batch.batch_size} items")
    results = work.timed("rollout_s", lambda: kit.rollout(batch, current, folder / "rollout"))
    kit.emit("phase", name="2/6 REFLECT", detail="")
    patches = work.timed(
        "reflect_s", lambda: reflect_on(kit, work.optimizer, results, current, folder, seed=batch.seed, context=context)
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


def _aggregate(kit: Kit, work: _Work, current: Skill, sides: Sequence[Sequence[RawPatch]]) -> Patch:
    failures, successes = sides
    kit.emit("phase", name="3/6 AGGREGATE", detail=f"{len(failures)} failure, {len(successes)} success patches")
    gradient = kit.config.gradient
    merged = merge_patches(
        failures,
        successes,
        current,
        session=work.optimizer,
        merge_batch_size=gradient.merge_batch_size,
        workers=gradient.analyst_workers,
        emit=kit.emit,
    )
    atomic_write_json(kit.folder.step(work.plan.step) / "merged_patch.json", merged.to_dict())
    return merged


def _select(kit: Kit, work: _Work, current: Skill, merged: Patch) -> Patch:
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
    ranked = rank_and_select(merged, limit, current, session=work.optimizer, emit=kit.emit)
    atomic_write_json(kit.folder.step(plan.step) / "ranked_edits.json", ranked.to_dict())
    work.fields |= {
        "n_edits_merged": len(merged.edits),
        "n_edits_ranked": len(ranked.edits),
        "edit_budget": budget,
        "lr_control_mode": optimizer.lr_control_mode,
        "support_counts": [edit.support_count for edit in ranked.edits],
    }
    return ranked


def _update(kit: Kit, work: _Work, current: Skill, ranked: Patch) -> Update:
    kit.emit("phase", name="5/6 UPDATE", detail="")
    update = update_skill(current, ranked)
    folder = kit.folder.step(work.plan.step)
    atomic_write_text(folder / "candidate_skill.md", update.skill.text)
    rows = [row.to_dict() for row in update.outcome.rows]
    if rows:
        atomic_write_json(folder / "edit_apply_report.json", rows)
    work.fields |= {
        "candidate_hash": update.skill.hash,
        "candidate_skill_len": len(update.skill.text),
        "edit_apply_summary": update.outcome.summary(),
    }
    return update


def _gate(kit: Kit, progress: Progress, work: _Work, update: Update) -> tuple[Progress, Look]:
    kit.emit("phase", name="6/6 EVALUATE", detail="")
    step = work.plan.step
    path = kit.folder.relative(kit.folder.skill(step))
    candidate = Candidate(update.skill, path, f"step_{step:04d}", step)
    after, seen = look(kit, progress, candidate, kit.folder.step(step) / "selection_eval")
    work.usage += seen.scored.usage
    work.fields |= seen.record(kit.config.evaluation.gate_metric)
    return after, seen


def _close(
    kit: Kit,
    progress: Progress,
    work: _Work,
    *,
    action: str,
    outcome: EditOutcome | None = None,
    seen: Look | None = None,
) -> tuple[Progress, StepEntry]:
    """Write the skill after this step and its record; the new progress and what the optimizer should remember."""
    step = work.plan.step
    path = kit.folder.skill(step)
    atomic_write_text(path, progress.current.skill.text)
    progress = replace(
        progress,
        step=step,
        current=replace(progress.current, path=kit.folder.relative(path)),
        wall_time_s=progress.wall_time_s + time.monotonic() - work.started,
    )
    record = _record(work, progress, action)
    atomic_write_json(kit.folder.step(step) / "step_record.json", record)
    entry = StepEntry.of_step(
        step=step,
        action=action,
        results=work.results,
        patterns=failure_patterns(work.results, work.patches),
        score_before=seen.current_score if seen is not None else None,
        score_after=seen.candidate_score if seen is not None else None,
        outcome=outcome,
    )
    atomic_write_json(kit.folder.step(step) / "trajectory_digest.json", entry.to_dict())
    kit.emit("step_finished", step=step, action=action, gated=seen is not None, current_score=progress.current.score)
    return replace(progress, history=(*progress.history, record)), entry


def _record(work: _Work, progress: Progress, action: str) -> JsonObject:
    hard, soft = compute_score([result for result in work.results if result.ok])
    usage, plan = work.usage + work.optimizer.usage, work.plan
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
        "current_score": round(progress.current.score, 6),
        "current_origin": progress.current.origin,
        "best_score": round(progress.best.score, 6),
        "best_step": progress.best_step,
        "best_origin": progress.best.origin,
        "skill_len": len(progress.current.skill.text),
        "tokens": {
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
        "timing": work.timing,
        "wall_time_s": round(time.monotonic() - work.started, 3),
    }
