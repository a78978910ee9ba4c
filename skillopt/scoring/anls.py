"""ANLS, the score of DocVQA: how few letters of a short answer are wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skillopt.errors import ConfigError
from skillopt.scoring.base import RIGHT, BenchmarkScorer, Score, best_of, expected_got
from skillopt.scoring.normalize import casefold_text

_PAPER_HARD = 0.999
_LONGEST = 50_000


@dataclass(frozen=True, slots=True)
class Anls(BenchmarkScorer):
    """Average normalised Levenshtein similarity (Biten et al. 2019, "Scene Text Visual Question Answering").

    With `d` = edit distance / length of the longer text, `soft` is `1 - d`, and 0 where `d` reaches `threshold`
    (default 0.5); the best reference counts. Texts are compared without regard to case and spacing.

    `mode: strict` (default): `hard` is 1 only if the two are equal; no references, no marks. `mode: paper`: `hard` is
    1 if `soft` reaches 0.999, so that a long answer may hold a wrong letter, and an empty answer to an item without
    references has full marks. Of two texts above 50,000 characters only equality is looked at.
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise ConfigError(f"scorer 'anls': threshold is {self.threshold}; expected more than 0 and at most 1.")

    def _compare(self, answer: str, reference: str) -> Score:
        soft = self._similarity(casefold_text(answer), casefold_text(reference))
        if soft == 1.0:
            return RIGHT
        return Score(0.0, soft, expected_got(reference, answer, f"ANLS {soft:.2f}"))

    def _published(self, answer: str, references: Sequence[str]) -> Score:
        golds = [references] if isinstance(references, str) else list(references)
        return best_of(self._published_score(answer, gold) for gold in golds or [""])

    def _published_score(self, answer: str, gold: str) -> Score:
        soft = self._similarity(*(" ".join(text.lower().split()) for text in (answer, gold)))
        if soft >= _PAPER_HARD:
            return Score(1.0, soft, "correct.")
        return Score(0.0, soft, expected_got(gold, answer, f"ANLS {soft:.2f}"))

    def _similarity(self, left: str, right: str) -> float:
        """1 for equal texts, 0 beyond the threshold, else the share of letters that need no edit."""
        if left == right:
            return 1.0
        longest, shortest = max(len(left), len(right)), min(len(left), len(right))
        far = math.ceil(self.threshold * longest)
        if not shortest or longest - shortest >= far or shortest > _LONGEST:
            return 0.0
        from rapidfuzz.distance import Levenshtein

        share = Levenshtein.distance(left, right, score_cutoff=far) / longest
        return 0.0 if share >= self.threshold else 1.0 - share
