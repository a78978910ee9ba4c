"""The last word of a consolidation: what is accepted, what the action is called, and the rows that a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillopt_sleep import evidence
from skillopt_sleep.judges import is_shape_only
from skillopt_sleep.learn.measure import Decision, GateSettings, Measure
from skillopt_sleep.learn.partition import Partition
from skillopt_sleep.learn.policy import leaked_literals
from skillopt_sleep.learn.slow_update import SlowOutcome
from skillopt_sleep.learn.trial import Bench, Documents
from skillopt_sleep.show import json_safe
from skillopt_sleep.types import ConsolidationResult, EditRecord, TaskRecord

TOO_FEW = "too_few_to_decide"
_HEAD = 200


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything that the result is made of. `final`: the confirmation, None when there was nothing to confirm."""

    bench: Bench
    parts: Partition
    start: Documents
    baseline: Measure
    final: Decision | None
    settings: GateSettings
    night: int
    reasons: tuple[str, ...]


def result_of(ending: Ending, *, tasks: Sequence[TaskRecord], slow: SlowOutcome) -> ConsolidationResult:
    """The result. What was not confirmed moves to the rejected edits, and the documents are those of the start."""
    ledger = ending.bench.ledger
    action = _action(ending)
    accepted = action in ("accept_new_best", "accept", "greedy_applied")
    if not accepted and ending.final is not None:
        moved = ledger.undecided if ending.final.verdict == "inconclusive" else ledger.refused
        moved += ledger.applied
        ledger.applied = []
    documents = ending.bench.documents if accepted else ending.start
    hard, soft = ending.baseline.means()
    shown = _shown(ending)
    baseline = ending.settings.score(hard, soft) if ending.settings.gated else 0.0
    result = ConsolidationResult(
        accepted=accepted,
        gate_action=action,
        baseline_score=baseline,
        candidate_score=shown.score if shown is not None else baseline,
        new_skill=documents.skill,
        new_memory=documents.memory,
        applied_edits=list(ledger.applied),
        rejected_edits=_once([*ledger.refused, *ledger.undecided]),
        holdout_baseline=hard,
        holdout_candidate=shown.hard if shown is not None else hard,
        unmatched_edits=list(ledger.unmatched),
        holdout_detail=[_detail_row(pair) for pair in ending.baseline.pairs],
        holdout_leaked=ending.parts.leaked,
        gate_trials=list(ledger.trials),
        no_edits_reason="" if accepted else _no_edits_reason(ending),
        held_edits=[one.edit for one in ledger.held],
        n_errors=ledger.n_errors,
    )
    result.gate_detail = _gate_detail(ending, shown, tasks, slow)
    _log_decision(ending, result)
    return result


def refused_edits(result: ConsolidationResult) -> list[EditRecord]:
    """The edits that the gate measured and turned down: what later nights should remember as not helping.

    Edits that it could not decide about are not among them.
    """
    return [EditRecord.from_dict(row) for row in result.gate_detail.get("refused", [])]


def _action(ending: Ending) -> str:
    ledger = ending.bench.ledger
    if not ending.settings.gated:
        return "greedy_applied" if ledger.applied else "greedy_noop"
    if ending.final is not None and ending.final.accepted and ledger.applied:
        return ending.final.action
    undecided = [one for one in ledger.decisions if one.verdict == "inconclusive"]
    if ending.parts.leaked and any(one.improved for one in undecided):
        return "reject_unverified"
    if undecided or not {"too_many_errors", TOO_FEW}.isdisjoint(ending.reasons):
        return "inconclusive"
    return "reject"


def _shown(ending: Ending) -> Decision | None:
    """The decision whose scores stand for the candidate: the confirmation, else the best that was left undecided."""
    if ending.final is not None:
        return ending.final
    undecided = [one for one in ending.bench.ledger.decisions if one.verdict == "inconclusive" and one.n]
    return max(undecided, key=lambda one: one.score, default=None)


def _no_edits_reason(ending: Ending) -> str:
    """Why nothing changed, as one of few words; empty when edits were tried."""
    ledger = ending.bench.ledger
    if ledger.decisions or ledger.applied:
        return ""
    if ledger.unmatched:
        return "nothing_applied"
    order = ("too_many_errors", "reflect_failed", "all_held", "no_proposals", "no_failures")
    return next((reason for reason in order if reason in ending.reasons), ending.reasons[0] if ending.reasons else "")


def _gate_detail(
    ending: Ending, shown: Decision | None, tasks: Sequence[TaskRecord], slow: SlowOutcome
) -> dict[str, Any]:
    ledger = ending.bench.ledger
    tried = [edit for edit in (*ledger.applied, *ledger.refused, *ledger.undecided) if edit.op != "delete"]
    detail: dict[str, Any] = {
        "n_train": len(ending.parts.train),
        "n_val": len(ending.parts.val),
        "min_val": ending.settings.min_val,
        "n_compared": shown.n if shown is not None else 0,
        "verdict": shown.verdict if shown is not None else "",
        "reason": shown.reason if shown is not None else _why_undecided(ending),
        "comparison": shown.comparison if shown is not None else {},
        "low_trust": bool(ending.parts.val) and all(_shape_only(task) for task in ending.parts.val),
        "refused": [edit.to_dict() for edit in _once(ledger.refused)],
        "undecided": [edit.to_dict() for edit in _once(ledger.undecided)],
        "held": [{**one.edit.to_dict(), "reasons": list(one.reasons)} for one in ledger.held],
        "left_out": list(ledger.left_out),
        "unmatched_reasons": list(ledger.unmatched_reasons),
        "notices": leaked_literals(tried, tasks),
        "left_out_of_training": list(ending.parts.dropped),
        "slow_update": slow.to_dict(),
    }
    return dict(json_safe(detail))


def _why_undecided(ending: Ending) -> str:
    if TOO_FEW in ending.reasons:
        if ending.parts.leaked:
            return "no training task stands apart from the validation tasks, so nothing was tried"
        count, least = len(ending.parts.val), ending.settings.min_val
        counted = "1 validation task is" if count == 1 else f"{count} validation tasks are"
        return f"{counted} fewer than gate_min_val ({least}), so nothing was tried"
    return ending.bench.ledger.decisions[-1].reason if ending.bench.ledger.decisions else ""


def _shape_only(task: TaskRecord) -> bool:
    return task.reference_kind == "rule" and is_shape_only(task.judge)


def _detail_row(pair: tuple[TaskRecord, Any]) -> dict[str, Any]:
    task, result = pair
    row = {
        "id": task.id,
        "reference_kind": task.reference_kind,
        "hard": result.hard if result.scored else None,
        "soft": result.soft if result.scored else None,
        "response_len": len(result.response),
        "response_head": result.response[:_HEAD],
        "why": (result.error or result.fail_reason or result.judge_rationale)[:_HEAD],
        **({"files": list(result.work.get("files") or ())} if result.work else {}),
    }
    return dict(json_safe(row))


def _log_decision(ending: Ending, result: ConsolidationResult) -> None:
    log = evidence.get(ending.bench.backend)
    if log is None:
        return
    settings = ending.settings
    final = ending.final
    base_hard, base_soft = ending.baseline.means()
    sign = ">" if result.candidate_score > result.baseline_score else "<="
    log.log(
        "gate",
        "decision",
        action=result.gate_action,
        accepted=result.accepted,
        baseline_hard=base_hard,
        baseline_soft=base_soft,
        baseline_score=result.baseline_score,
        cand_hard=result.holdout_candidate,
        cand_soft=final.soft if final is not None else None,
        cand_score=result.candidate_score,
        metric=settings.metric,
        mixed_weight=settings.mixed_weight,
        blocked_by_regression=final.blocked if final is not None else False,
        task_deltas=final.deltas if final is not None else [],
        formula=f"{settings.metric}: {result.candidate_score:.4f} {sign} {result.baseline_score:.4f}",
        reason=result.gate_detail.get("reason", ""),
        n_applied=len(result.applied_edits),
        n_rejected=len(result.rejected_edits),
        n_unmatched=len(result.unmatched_edits),
        n_held=len(result.held_edits),
        n_errors=result.n_errors,
        night=ending.night,
    )


def _once(edits: Sequence[EditRecord]) -> list[EditRecord]:
    """Each edit once, in order."""
    found: list[EditRecord] = []
    for edit in edits:
        if edit not in found:
            found.append(edit)
    return found
