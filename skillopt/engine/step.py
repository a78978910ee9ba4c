"""One training step: rollout, reflect, aggregate, select, update, evaluate. A function from progress to progress."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from skillopt.datasets.base import BatchSpec
from skillopt.engine.gating import Candidate, Look, look
from skillopt.engine.kit import Kit
from skillopt.engine.leaks import REFUSED, leak_advice, leak_record, refuse_leaks
from skillopt.engine.notes import flush_notes
from skillopt.engine.reflection import check_analysts, reflect_on
from skillopt.engine.screening import Trained, gate_screened
from skillopt.engine.stages import aggregate, select, update
from skillopt.engine.state import Progress
from skillopt.engine.work import StepPlan, Work
from skillopt.optimizer.step_buffer import StepEntry, failure_patterns, render
from skillopt.optimizer.update import Update
from skillopt.skill.document import Skill
from skillopt.skill.edits import EditOutcome
from skillopt.types import JsonObject, Patch
from skillopt.utils.files import atomic_write_json, atomic_write_text

__all__ = ["StepPlan", "run_step"]

NO_PATCHES = "skip_no_patches"
"""No analyst proposed anything."""

NO_BUDGET = "skip_no_budget"
"""The schedule, or the optimizer, decided to apply none of what was proposed."""

NO_REWRITE = "skip_no_rewrite"
"""The call that was to write the new skill failed, or gave no text."""

NO_CHANGE = "no_change"
"""The candidate says what the current skill says."""

_FILES = (
    "merged_patch.json",
    "ranked_edits.json",
    "lr_decision.json",
    "edit_apply_report.json",
    "rewrite_result.json",
    "full_rewrite_result.json",
    "candidate_skill.md",
    "screening.json",
    "appendix_notes.json",
    "step_record.json",
    "trajectory_digest.json",
)


def run_step(
    kit: Kit, progress: Progress, plan: StepPlan, buffer: Sequence[StepEntry], *, advice: str = ""
) -> tuple[Progress, StepEntry]:
    """Do one step and write its files; the caller commits the returned progress.

    `buffer`: the entries of all steps before it. `advice`: what the optimizer wrote for itself at the end of earlier
    epochs. Raises TooManyErrorsError, BudgetExceededError, InterruptedRunError and fatal ModelErrors; everything
    finished by then is in the store and is not done again.
    """
    work = Work.begin(kit, plan, memory=render(buffer), advice=advice)
    for name in _FILES:  # of an attempt that was never committed, and may have gone another way
        (kit.folder.step(plan.step) / name).unlink(missing_ok=True)
    kit.emit("step_started", step=plan.step, total_steps=plan.total_steps, epoch=plan.epoch)
    current = progress.current.skill
    for index, batch in enumerate(plan.batches):
        _rollout_and_reflect(kit, work, current, index, batch)
    check_analysts(work)
    if not (work.side("failure") or work.side("success")):
        return _close(kit, progress, work, action=NO_PATCHES)
    merged = work.timed("aggregate_s", lambda: aggregate(kit, work, current))
    ranked = work.timed("select_s", lambda: select(kit, work, current, merged))
    if merged.edits and not ranked.edits:
        return _close(kit, progress, work, action=NO_BUDGET)
    made = work.timed("update_s", lambda: update(kit, work, current, ranked))
    if made is None:
        return _close(kit, progress, work, action=NO_REWRITE)
    if not made.changed:
        return _close(kit, progress, work, action=NO_CHANGE, outcome=made.outcome)
    screened = kit.config.optimizer.screen_edits and not work.mode.rewrites
    leaks = () if screened else refuse_leaks(kit, current, made.skill, plan.step)  # screening refuses them one by one
    if leaks:
        work.refused = leak_advice(leaks)
        work.fields |= leak_record(leaks)
        return _close(kit, progress, work, action=REFUSED, outcome=made.outcome)
    gate = _gate_screened if screened else _gate
    after, seen, action = work.timed("evaluate_s", lambda: gate(kit, progress, work, ranked, made))
    return _close(kit, after, work, action=action, outcome=made.outcome, seen=seen)


def _rollout_and_reflect(kit: Kit, work: Work, current: Skill, index: int, batch: BatchSpec) -> None:
    """Do batch number `index` of the step with the current skill and let analysts read it; `work` takes both."""
    folder = kit.folder.batch(work.plan.step, index, len(work.plan.batches))
    kit.emit("phase", name="1/6 ROLLOUT", detail=f"{batch.batch_size} items")
    results = work.timed("rollout_s", lambda: kit.rollout(batch, current, folder / "rollout"))
    kit.emit("phase", name="2/6 REFLECT", detail="")
    patches = work.timed("reflect_s", lambda: reflect_on(kit, work, results, current, folder, seed=batch.seed))
    work.took(index, batch, results, patches)


def _gate(kit: Kit, progress: Progress, work: Work, _ranked: Patch, made: Update) -> tuple[Progress, Look | None, str]:
    """All edits together, or the rewritten skill, before the gate."""
    kit.emit("phase", name="6/6 EVALUATE", detail="")
    step = work.plan.step
    path = kit.folder.relative(kit.folder.skill(step))
    candidate = Candidate(made.skill, path, f"step_{step:04d}", step)
    after, seen = look(kit, progress, candidate, kit.folder.step(step) / "selection_eval")
    work.usage += seen.scored.usage
    work.fields |= seen.record(kit.config.evaluation.gate_metric)
    return after, seen, seen.action


def _gate_screened(
    kit: Kit, progress: Progress, work: Work, ranked: Patch, _made: Update
) -> tuple[Progress, Look | None, str]:
    """The edits that gain alone on the training items, before the gate; no look at the selection split without any."""
    kit.emit("phase", name="6/6 EVALUATE", detail="edits alone first")
    trained = Trained.of(work.rolled, progress.current.skill)
    after, looks, report = gate_screened(kit, progress, ranked, trained, work.plan.step)
    work.usage += sum((seen.scored.usage for seen in looks), report.usage)
    work.fields |= report.record()
    work.rejected = report.refused
    work.refused = leak_advice(report.leaks)
    work.fields |= leak_record(report.leaks)
    if report.look is not None:
        work.fields |= report.look.record(kit.config.evaluation.gate_metric)
    return after, report.look, report.action


def _close(
    kit: Kit,
    progress: Progress,
    work: Work,
    *,
    action: str,
    outcome: EditOutcome | None = None,
    seen: Look | None = None,
) -> tuple[Progress, StepEntry]:
    """Write the skill after this step and its record; the new progress and what the optimizer should remember."""
    step = work.plan.step
    flushed = flush_notes(kit, progress, work.patches, step, work.optimizer)
    progress = flushed.progress
    work.usage += flushed.usage
    work.fields |= flushed.fields
    path = kit.folder.skill(step)
    atomic_write_text(path, progress.current.skill.text)
    progress = replace(
        progress,
        step=step,
        current=replace(progress.current, path=kit.folder.relative(path)),
        wall_time_s=progress.wall_time_s + time.monotonic() - work.started,
    )
    record = _record(work, progress, action)
    atomic_write_json(kit.folder.step_record(step), record)
    progress = replace(progress, history=(*progress.history, record))
    if "lr_decision" in record:
        _write_lr_history(kit, progress.history)
    entry = _entry(kit, work, action, outcome, seen)
    atomic_write_json(kit.folder.step_digest(step), entry.to_dict())
    kit.emit("step_finished", step=step, action=action, gated=seen is not None, current_score=progress.current.score)
    return progress, entry


def _entry(kit: Kit, work: Work, action: str, outcome: EditOutcome | None, seen: Look | None) -> StepEntry:
    """What the optimizer should remember of the step."""
    threshold = kit.config.gradient.success_threshold
    rejected = work.rejected
    if rejected is None and work.rewritten_from is not None:
        rejected = work.rewritten_from if "reject" in action else ()
    return StepEntry.of_step(
        step=work.plan.step,
        action=action,
        results=work.results,
        patterns=failure_patterns(work.results, work.patches, success_threshold=threshold),
        score_before=seen.current_score if seen is not None else None,
        score_after=seen.score if seen is not None else None,
        outcome=outcome,
        rejected=rejected,
        refused=work.refused,
        success_threshold=threshold,
    )


def _write_lr_history(kit: Kit, history: Sequence[JsonObject]) -> None:
    """One line for each decision so far. Written from the records, so that a step done again adds no second line."""
    rows = [
        {"step": record["step"], "epoch": record["epoch"], **record["lr_decision"]}
        for record in history
        if "lr_decision" in record
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    atomic_write_text(kit.folder.lr_history, lines)


def _record(work: Work, progress: Progress, action: str) -> JsonObject:
    """The step as `step_record.json` and the history show it."""
    hard, soft = work.scores()
    plan, results = work.plan, work.results
    n_failure = sum(patch.source_type == "failure" for patch in work.patches)
    return {
        "step": plan.step,
        "epoch": plan.epoch,
        "step_in_epoch": plan.step_in_epoch,
        "action": action,
        "rollout_hard": round(hard, 6),
        "rollout_soft": round(soft, 6),
        "rollout_n": len(results),
        "rollout_errors": sum(not result.ok for result in results),
        "accumulation_batches": work.batches,
        "n_patches": len(work.patches),
        "n_failure_patches": n_failure,
        "n_success_patches": len(work.patches) - n_failure,
        **work.fields,
        **work.optimizer.record(),
        "current_score": round(progress.current.score, 6),
        "current_origin": progress.current.origin,
        "best_score": round(progress.best.score, 6),
        "best_step": progress.best_step,
        "best_origin": progress.best.origin,
        "skill_len": len(progress.current.skill.text),
        "tokens": work.tokens(),
        "timing": work.timing,
        "wall_time_s": round(time.monotonic() - work.started, 3),
    }
