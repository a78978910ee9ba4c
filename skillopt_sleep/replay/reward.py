"""What many results say together. Results without a score enter no mean; they are counted beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillopt_sleep.types import ReplayResult, TaskRecord

Item = ReplayResult | tuple[TaskRecord, ReplayResult]

TOKENS_SCALE = 2000.0
LATENCY_SCALE_MS = 15_000.0


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over the `n` results that have a score; `n_errors` have none. Without any score the means are 0."""

    hard: float
    soft: float
    n: int
    n_errors: int

    @property
    def complete(self) -> bool:
        """True when every result has a score."""
        return self.n_errors == 0


def results_of(items: Iterable[Item]) -> list[ReplayResult]:
    """The results among results and (task, result) pairs, in order."""
    return [item if isinstance(item, ReplayResult) else item[1] for item in items]


def summarize(items: Iterable[Item]) -> Scores:
    """Mean hard and soft score of results or pairs, with how many there are of each sort."""
    results = results_of(items)
    scored = [result for result in results if result.scored]
    return Scores(
        _mean([result.hard for result in scored]),
        _mean([result.soft for result in scored]),
        len(scored),
        len(results) - len(scored),
    )


def aggregate_scores(items: Iterable[Item]) -> tuple[float, float]:
    """(mean hard, mean soft) of the results that have a score; (0, 0) when none has."""
    scores = summarize(items)
    return scores.hard, scores.soft


def aggregate_cost(items: Iterable[Item]) -> tuple[float, float]:
    """(mean tokens, mean milliseconds) of the results that have a score; (0, 0) when none has."""
    scored = [result for result in results_of(items) if result.scored]
    return _mean([float(result.tokens) for result in scored]), _mean([result.latency_ms for result in scored])


def multi_objective_reward(
    items: Iterable[Item], *, w_acc: float = 1.0, w_tokens: float = 0.0, w_latency: float = 0.0
) -> float:
    """The weighted mean of accuracy, thrift and speed, each within 0..1.

    Accuracy is the mean hard score, thrift max(0, 1 - mean tokens / 2000), speed max(0, 1 - mean ms / 15000). Without a
    positive weight it is the accuracy; without a score 0.
    """
    results = [result for result in results_of(items) if result.scored]
    if not results:
        return 0.0
    accuracy, _ = aggregate_scores(results)
    tokens, milliseconds = aggregate_cost(results)
    total = w_acc + w_tokens + w_latency
    if total <= 0:
        return accuracy
    thrift = max(0.0, 1 - tokens / TOKENS_SCALE)
    speed = max(0.0, 1 - milliseconds / LATENCY_SCALE_MS)
    return (w_acc * accuracy + w_tokens * thrift + w_latency * speed) / total


def metric_score(result: ReplayResult, metric: str = "hard", mixed_weight: float = 0.5) -> float:
    """The score of one result that the gate compares: hard, soft, or (1-w) hard + w soft with w within 0..1.

    Raises ValueError for another metric.
    """
    if metric == "hard":
        return result.hard
    if metric == "soft":
        return result.soft
    if metric != "mixed":
        raise ValueError(f"The metric is {metric!r}; expected hard, soft or mixed.")
    weight = min(1.0, max(0.0, mixed_weight))
    return (1 - weight) * result.hard + weight * result.soft


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
