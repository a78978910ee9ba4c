"""What all scorers share: the score, the rule for blank answers, the best of several references.

Knows nothing of any single way to compare; each scorer adds one `_compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from skillopt.errors import DataError

Mode = Literal["strict", "paper"]
"""Whose rules score an answer: `strict` ours, `paper` the published formula with its flaws."""

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Score:
    """What one answer is worth: `hard` and `soft` in 0..1, and a short sentence of feedback for the optimizer."""

    hard: float
    soft: float
    feedback: str = ""


RIGHT = Score(1.0, 1.0, "correct.")


def best_of(scores: Iterable[Score]) -> Score:
    """The best score, by hard, then soft, then order; no scores, no marks."""
    nothing = Score(0.0, 0.0, "the item has no reference answer.")
    return max(scores, key=lambda score: (score.hard, score.soft), default=nothing)


def shorten(text: str, limit: int = _SHOWN) -> str:
    """`text` on one line in quotes, at most `limit` characters of it."""
    line = " ".join(text.split())
    return f"'{line if len(line) <= limit else line[: limit - 1] + '…'}'"


def expected_got(reference: str, answer: str, note: str = "") -> str:
    """The usual feedback: what was expected, what came, and why that differs."""
    return f"expected {shorten(reference)}, got {shorten(answer)}" + (f" ({note})" if note else "") + "."


@dataclass(frozen=True, slots=True)
class Scorer:
    """Base of all scorers: call it with an answer and its references.

    Rules that hold for every scorer: the best reference counts (by hard, then soft, then order); a blank answer is
    right only if a reference is blank; a blank reference matches only a blank answer; no references, no marks. A
    scorer never raises for any text.
    """

    def __call__(self, answer: str, references: Sequence[str]) -> Score:
        """Score `answer` against the best of `references`."""
        if isinstance(references, str):
            references = (references,)
        blank = any(not reference.strip() for reference in references)
        if not answer.strip():
            return RIGHT if blank else Score(0.0, 0.0, "the answer is empty.")
        filled = [reference for reference in references if reference.strip()] or self._without_references()
        if not filled:
            why = f"expected an empty answer, got {shorten(answer)}." if blank else "the item has no reference answer."
            return Score(0.0, 0.0, why)
        return best_of(self._compare(answer, reference) for reference in filled)

    def check_references(self, references: Sequence[str], where: str = "item") -> None:
        """Raise DataError, naming `where`, if this scorer could never accept an answer for these references."""
        if not references and not self._without_references():
            raise DataError(f"{where}: there is no reference answer; give at least one.")
        for reference in references:
            reason = self._refuse(reference) if reference.strip() else ""
            if reason:
                raise DataError(f"{where}: the reference {shorten(reference)} {reason}.")

    def _without_references(self) -> list[str]:
        """References to use when the item has none."""
        return []

    def _refuse(self, reference: str) -> str:
        """Why `reference` cannot work with this scorer, or an empty text."""
        del reference
        return ""

    def _compare(self, answer: str, reference: str) -> Score:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class BenchmarkScorer(Scorer):
    """A scorer with a published formula beside its own rules.

    `mode`: `strict` (default) keeps the rules of every scorer; `paper` repeats the published formula, also where that
    gives marks for nothing, so that published numbers can be compared.
    """

    mode: Mode = "strict"

    def __call__(self, answer: str, references: Sequence[str]) -> Score:
        """Score `answer` against the best of `references`, by the rules of `mode`."""
        if self.mode == "paper":
            return self._published(answer, references)
        return Scorer.__call__(self, answer, references)

    def _published(self, answer: str, references: Sequence[str]) -> Score:
        raise NotImplementedError
