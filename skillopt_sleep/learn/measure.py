"""What the validation tasks say about two documents, and how the gate decides between two such measurements.

A result without a score, or with one that is not finite, enters no mean; it is counted. Two measurements are compared
on the tasks that both have a score for, so that failing calls cannot move a mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.learn.gate import TIE_TOLERANCE, evaluate_gate, is_better, select_gate_score
from skillopt_sleep.replay import replay_batch
from skillopt_sleep.show import terminal_line
from skillopt_sleep.types import ReplayResult, TaskRecord
from skillopt_sleep.vendored.evaluation.stats import paired

Pair = tuple[TaskRecord, ReplayResult]

MOST_MISSING = 0.2
"""A comparison that lacks a larger share of its tasks is not decided."""

_REQUEST_CHARS = 58  # an ellipsis may follow
_PASSING = ("transient", "rate", "empty", "unparsed")


@dataclass(frozen=True, slots=True)
class GateSettings:
    """How the gate decides. `min_val`: with fewer compared tasks nothing is accepted. `gated` False: no gate.

    `prune`: of an accepted bundle, edits that are not missed when left out are dropped.
    """

    metric: str = "mixed"
    mixed_weight: float = 0.5
    no_regression: bool = True
    min_val: int = 5
    gated: bool = True
    prune: bool = True

    def score(self, hard: float, soft: float) -> float:
        """The number that is compared. Raises ValueError for an unknown metric and for what is not finite."""
        return select_gate_score(hard, soft, self.metric, self.mixed_weight)


@dataclass(frozen=True, slots=True)
class Measure:
    """One result for each task, in the tasks' order."""

    pairs: tuple[Pair, ...] = ()

    @property
    def graded(self) -> dict[str, ReplayResult]:
        """The results that have finite scores, by task id."""
        return {task.id: result for task, result in self.pairs if _has_score(result)}

    @property
    def n_errors(self) -> int:
        """How many results have no score."""
        return sum(not _has_score(result) for _, result in self.pairs)

    @property
    def broken(self) -> bool:
        """True when too few results have a score to decide anything by them."""
        return self.n_errors > MOST_MISSING * len(self.pairs)

    def means(self, ids: Sequence[str] | None = None) -> tuple[float, float]:
        """Mean (hard, soft) over the graded tasks, or over `ids` of them; (0, 0) over none."""
        graded = self.graded
        results = list(graded.values()) if ids is None else [graded[task_id] for task_id in ids]
        if not results:
            return 0.0, 0.0
        hard = math.fsum(result.hard for result in results) / len(results)
        return hard, math.fsum(result.soft for result in results) / len(results)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says to a candidate, with the numbers it decided by. `verdict`: accept, reject or inconclusive.

    `action` is the gate's own word. `deltas` holds one row for each validation task. `blocked`: a task that got worse,
    or has no score on one side, stands in the way. `improved`: the mean is better, whatever the verdict.
    """

    verdict: str
    action: str
    baseline_score: float = 0.0
    hard: float = 0.0
    soft: float = 0.0
    score: float = 0.0
    blocked: bool = False
    improved: bool = False
    n: int = 0
    n_errors: int = 0
    reason: str = ""
    deltas: list[dict[str, Any]] = field(default_factory=list)
    comparison: dict[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """True when the candidate takes the place of the current documents."""
        return self.verdict == "accept"


def measure(
    backend: Any, tasks: Sequence[TaskRecord], skill: str, memory: str, *, workers: int = 0, fresh: bool = False
) -> Measure:
    """Replay the tasks. What failed in passing is tried once more. `fresh`: new samples, not from the cache.

    A grade that could not be read is kept like any answer, so such a task is tried again with new samples.

    Raises what `replay_batch` raises: CallFailed of a fatal kind, BudgetSpent, PendingCalls.
    """
    pairs = replay_batch(backend, tasks, skill, memory, workers=workers, fresh=fresh)
    again = [index for index, (_, result) in enumerate(pairs) if result.error.startswith(_PASSING)]
    if len(again) == len(pairs):
        return Measure(tuple(pairs))
    unread = {index for index in again if pairs[index][1].error.startswith("unparsed")}
    for anew, indices in ((fresh, sorted(set(again) - unread)), (True, sorted(unread))):
        tasks_again = [pairs[index][0] for index in indices]
        second = replay_batch(backend, tasks_again, skill, memory, workers=workers, fresh=anew)
        for index, pair in zip(indices, second, strict=True):
            pairs[index] = pair
    return Measure(tuple(pairs))


def decide(before: Measure, after: Measure, settings: GateSettings, *, leaked: bool = False) -> Decision:
    """Whether the candidate's measurement `after` beats the current one `before`.

    `leaked`: the validation tasks are training tasks too, so nothing can be accepted by them. Raises ValueError for an
    unknown metric.
    """
    deltas = task_deltas(before, after, settings)
    ids = [row["task_id"] for row in deltas if row["scores_are_finite"]]
    hard, soft = after.means(ids)
    baseline, score = settings.score(*before.means(ids)), settings.score(hard, soft)
    enough = len(ids) >= max(1, settings.min_val) and not leaked
    gate = evaluate_gate("candidate", score, "current", baseline, "current", baseline, 0, 1, significant=enough)
    verdict, reason = _verdict(gate.action, deltas, settings, leaked=leaked)
    return Decision(
        verdict=verdict,
        action=gate.action if verdict == "accept" else verdict,
        baseline_score=baseline,
        hard=hard,
        soft=soft,
        score=score,
        blocked=settings.no_regression and any(row["status"] == "regressed" for row in deltas),
        improved=bool(ids) and is_better(score, baseline),
        n=len(ids),
        n_errors=after.n_errors,
        reason=reason,
        deltas=deltas,
        comparison=_comparison(before, after, ids, settings),
    )


def task_deltas(before: Measure, after: Measure, settings: GateSettings) -> list[dict[str, Any]]:
    """One row for each task: id, tags, both scores, status, whether both scores are finite, the request's first words.

    A task without a score on one side has status regressed, and null for the score that it lacks. A task that was done
    in a checkout has `files` too: what the attempts of both sides changed.
    """
    tasks = {task.id: task for task, _ in (*before.pairs, *after.pairs)}
    old, new = before.graded, after.graded
    rows = []
    for task_id, task in tasks.items():
        was, now = _score_in(old, task_id, settings), _score_in(new, task_id, settings)
        rows.append(
            {
                "task_id": task_id,
                "tags": list(task.tags),
                "baseline_score": was,
                "candidate_score": now,
                "status": _status(was, now),
                "scores_are_finite": was is not None and now is not None,
                "request": terminal_line(task.intent, _REQUEST_CHARS),
                **_files(old.get(task_id), new.get(task_id)),
            }
        )
    return rows


def _files(before: ReplayResult | None, after: ReplayResult | None) -> dict[str, Any]:
    sides = {"baseline": before, "candidate": after}
    found = {side: list(one.work.get("files") or ()) for side, one in sides.items() if one is not None and one.work}
    return {"files": found} if found else {}


def _status(was: float | None, now: float | None) -> str:
    if was is None or now is None:
        return "regressed"
    if is_better(now, was):
        return "improved"
    return "regressed" if is_better(was, now) else "unchanged"


def _score_in(graded: Mapping[str, ReplayResult], task_id: str, settings: GateSettings) -> float | None:
    result = graded.get(task_id)
    return None if result is None else settings.score(result.hard, result.soft)


def _has_score(result: ReplayResult) -> bool:
    return result.scored and math.isfinite(result.hard) and math.isfinite(result.soft)


def _verdict(action: str, deltas: list[dict[str, Any]], settings: GateSettings, *, leaked: bool) -> tuple[str, str]:
    """(verdict, reason) from the gate's action and what the single tasks say."""
    finite = [row for row in deltas if row["scores_are_finite"]]
    missing = len(deltas) - len(finite)
    worse = [row["task_id"] for row in finite if row["status"] == "regressed"]
    absent = f"{missing} of {len(deltas)} results have no score"
    if missing > MOST_MISSING * len(deltas):
        return "inconclusive", absent
    if action == "reject":
        return "reject", "the mean score is not better"
    if settings.no_regression and worse:
        return "reject", f"worse at {', '.join(worse)}"
    if leaked:
        return "inconclusive", "the validation tasks are training tasks too"
    if action == "inconclusive":
        few = f"{len(finite)} validation tasks are too few to decide by"
        return "inconclusive", f"{few}; {settings.min_val} are needed (gate_min_val)"
    if settings.no_regression and missing:
        return "inconclusive", absent
    return "accept", ""


def _comparison(before: Measure, after: Measure, ids: Sequence[str], settings: GateSettings) -> dict[str, Any]:
    """The paired differences with their interval and p value: evidence for whoever reads the report."""
    old, new = before.graded, after.graded
    pairs = [(old[task_id], new[task_id]) for task_id in ids]
    differences = [settings.score(b.hard, b.soft) - settings.score(a.hard, a.soft) for a, b in pairs]
    solved = [(a.hard >= 1 - TIE_TOLERANCE, b.hard >= 1 - TIE_TOLERANCE) for a, b in pairs]
    gained, lost = sum(b and not a for a, b in solved), sum(a and not b for a, b in solved)
    return dict(paired(differences, gained=gained, lost=lost).to_dict())
