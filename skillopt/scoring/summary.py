"""Means of results. Results that ended in an error never enter one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from skillopt.errors import DataError


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """Means over the scored results, and what is not in them.

    `scored` results have status `ok`; `errors` and `missing` name the items that have no score. A mean is a score of
    the whole set only if `complete`.
    """

    hard: float
    soft: float
    scored: int
    errors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every expected item has a score."""
        return not self.errors and not self.missing


def summarize_scores(results: Iterable[Any], expected_ids: Iterable[str] = ()) -> ScoreSummary:
    """Summary of results (dicts or objects with `id`, `hard`, `soft`, `status`).

    A missing score counts 0, booleans count 1 and 0, fractions stay as they are. The sums are exact, so that the order
    of results cannot change them. `expected_ids`: items that must be there; those without a result are `missing`.
    Raises DataError, naming the item, for a score that is no finite number in 0..1 (a text, NaN, 7).
    """
    hard: list[float] = []
    soft: list[float] = []
    errors: list[str] = []
    seen: set[str] = set()
    for position, result in enumerate(results, 1):
        name = str(_field(result, "id") or f"number {position}")
        seen.add(name)
        if _field(result, "status") == "error":
            errors.append(name)
            continue
        hard.append(_score(result, "hard", name))
        soft.append(_score(result, "soft", name))
    missing = tuple(item for item in expected_ids if item not in seen)
    count = len(hard)
    means = (math.fsum(hard) / count, math.fsum(soft) / count) if count else (0.0, 0.0)
    return ScoreSummary(*means, scored=count, errors=tuple(errors), missing=missing)


def compute_score(results: Iterable[Any]) -> tuple[float, float]:
    """Mean hard and mean soft over the results without an error; (0, 0) for no results.

    Use `summarize_scores` to see whether every item is in the means. Raises DataError as that does, and when every
    result ended in an error, since an error is not a score of 0.
    """
    summary = summarize_scores(results)
    if summary.errors and not summary.scored:
        named = ", ".join(summary.errors[:5])
        raise DataError(f"no score: all {len(summary.errors)} results ended in an error (items {named}).")
    return summary.hard, summary.soft


def _field(result: Any, name: str) -> Any:
    return result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)


def _score(result: Any, name: str, item: str) -> float:
    value = _field(result, name)
    if value is None:
        return 0.0
    if not isinstance(value, Real):
        raise DataError(f"item {item}: {name} is {value!r}, a {type(value).__name__}; expected a number in 0..1.")
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise DataError(f"item {item}: {name} is {number}; expected a finite number in 0..1.")
    return number
