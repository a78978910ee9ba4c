"""The gate: does a candidate skill replace the current one, given the scores of both?

A pure decision on numbers. It knows nothing of steps, files or models, and it uses the standard library alone, so that
a copy of this file works anywhere. The skill travels through as an opaque value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

GateAction = Literal["accept_new_best", "accept", "reject", "inconclusive", "force_accept"]
GateMetric = Literal["hard", "soft", "mixed"]
SkillT = TypeVar("SkillT")

TIE_TOLERANCE = 1e-9
"""Scores this close, absolutely or relatively, are equal: the sum of floats depends on their order."""

DEFAULT_LEADING_WORDS: tuple[str, ...] = (
    "MUST",
    "ALWAYS",
    "NEVER",
    "ONLY",
    "CRITICAL",
    "IMPORTANT",
    "RESOLVE",
    "PREFER",
    "ENSURE",
    "STRICT",
    "VERIFY",
)

_REGIONS = (
    ("<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"),
    ("<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"),
)
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class GateResult(Generic[SkillT]):
    """What holds after a decision: the action, and the current and best skill with their scores."""

    action: GateAction
    current_skill: SkillT
    current_score: float
    best_skill: SkillT
    best_score: float
    best_step: int

    @property
    def accepted(self) -> bool:
        """Whether the candidate became the current skill."""
        return self.action not in ("reject", "inconclusive")


def compute_semantic_density(text: str, leading_words: Iterable[str] | None = None) -> float:
    """Share (0..1) of the words of `text` that are leading words; 0.0 for a text without words.

    Words are runs of ASCII letters and digits, compared without case. Protected regions do not count; of a region
    without an end marker only the start marker is left out.
    """
    words = _WORD.findall(_without_regions(text).lower())
    if not words:
        return 0.0
    leading = {word.lower() for word in (DEFAULT_LEADING_WORDS if leading_words is None else leading_words)}
    return sum(word in leading for word in words) / len(words)


def _without_regions(text: str) -> str:
    for start, end in _REGIONS:
        while (begin := text.find(start)) >= 0:
            stop = text.find(end, begin)
            text = text[:begin] + " " + (text[begin + len(start) :] if stop < 0 else text[stop + len(end) :])
    return text


def select_gate_score(  # noqa: PLR0913 - a public signature
    hard: float,
    soft: float,
    metric: str = "hard",
    mixed_weight: float = 0.5,
    *,
    skill_text: str = "",
    use_semantic_density: bool = False,
    semantic_density_weight: float = 0.0,
    leading_words: Iterable[str] | None = None,
) -> float:
    """The one number that the gate compares.

    `hard` and `soft` are means in 0..1. `mixed` is `(1 - w) * hard + w * soft` with `w` kept within 0..1. With
    `use_semantic_density`, `semantic_density_weight * density(skill_text)` is added. Only the means that the metric
    uses are looked at. Raises ValueError for an unknown metric and for a number that is not finite, naming it.
    """
    score = _metric_score(hard, soft, metric, mixed_weight)
    if use_semantic_density:
        weight = _finite("semantic density weight", semantic_density_weight)
        score += weight * compute_semantic_density(skill_text, leading_words)
    return score


def _metric_score(hard: float, soft: float, metric: str, mixed_weight: float) -> float:
    if metric == "hard":
        return _finite("hard score", hard)
    if metric == "soft":
        return _finite("soft score", soft)
    if metric == "mixed":
        weight = min(1.0, max(0.0, _finite("mixed weight", mixed_weight)))
        return (1.0 - weight) * _finite("hard score", hard) + weight * _finite("soft score", soft)
    raise ValueError(f"unknown gate metric {metric!r}: expected hard, soft or mixed")


def evaluate_gate(  # noqa: PLR0913 - a public signature
    candidate_skill: SkillT,
    cand_hard: float,
    current_skill: SkillT,
    current_score: float,
    best_skill: SkillT,
    best_score: float,
    best_step: int,
    global_step: int,
    *,
    cand_soft: float = 0.0,
    metric: str = "hard",
    mixed_weight: float = 0.5,
    use_gate: bool = True,
    significant: bool = True,
) -> GateResult[SkillT]:
    """Decide about a candidate from its mean scores.

    Better than the current and the best skill: `accept_new_best`. Better than the current one only: `accept`.
    Otherwise `reject`, ties included; "better" means by more than `TIE_TOLERANCE`. A better candidate whose gain is
    not `significant` is `inconclusive`, and nothing changes. With `use_gate` off the candidate always becomes
    current (`force_accept`), and best only if it is better than the best.
    A score that `select_gate_score` made passes as `cand_hard` under the metric `hard`.

    Raises ValueError for an unknown metric, and for a score that is not finite, naming which one.
    """
    score = _metric_score(cand_hard, cand_soft, metric, mixed_weight)
    _finite("current score (the baseline)", current_score)
    _finite("best score", best_score)
    new_best = is_better(score, best_score)
    action: GateAction = "reject"
    if not use_gate:
        action = "force_accept"
    elif is_better(score, current_score):
        action = ("accept_new_best" if new_best else "accept") if significant else "inconclusive"
    if action in ("reject", "inconclusive"):
        return GateResult(action, current_skill, current_score, best_skill, best_score, best_step)
    if new_best:
        return GateResult(action, candidate_skill, score, candidate_skill, score, global_step)
    return GateResult(action, candidate_skill, score, best_skill, best_score, best_step)


def flips(
    current: Mapping[str, float], candidate: Mapping[str, float], *, success: float = 1.0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of the items that the candidate gained and lost: (gained, lost), each in the order of `current`.

    The mappings give the hard score of each item; an item is solved from `success` on. Items that only one side
    has are left out. Raises ValueError for a score that is not finite, naming the item.
    """
    gained, lost = [], []
    for item_id, before in current.items():
        if item_id not in candidate:
            continue
        was = _finite(f"current score of item {item_id!r}", before) >= success - TIE_TOLERANCE
        now = _finite(f"candidate score of item {item_id!r}", candidate[item_id]) >= success - TIE_TOLERANCE
        if now and not was:
            gained.append(item_id)
        elif was and not now:
            lost.append(item_id)
    return tuple(gained), tuple(lost)


def is_better(score: float, other: float) -> bool:
    """Whether `score` is higher than `other` by more than `TIE_TOLERANCE`."""
    return score > other and not math.isclose(score, other, rel_tol=TIE_TOLERANCE, abs_tol=TIE_TOLERANCE)


def _finite(name: str, value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"gate: {name} not finite ({number}); an item without a score must not enter a mean")
    return number
