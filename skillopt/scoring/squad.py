"""The scores of SearchQA: exact match, token F1 and containment of short answers."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from skillopt.scoring.base import RIGHT, BenchmarkScorer, Mode, Score, expected_got
from skillopt.scoring.normalize import squad_script
from skillopt.scoring.text import F1, Exact, token_f1

_EXACT, _F1 = Exact(), F1()


@dataclass(frozen=True, slots=True)
class SquadScores:
    """Exact match (0 or 1), token F1 (0..1), and `sub_em`: 1 if answer or reference holds the other."""

    em: float
    f1: float
    sub_em: float


@dataclass(frozen=True, slots=True)
class Squad(BenchmarkScorer):
    """Exact match as `hard`, token F1 as `soft`, after the evaluation script of SQuAD (Rajpurkar et al. 2016).

    `mode: strict` (default): as the scorers `exact` and `f1`; an answer of which the script leaves nothing ("The", "!")
    is compared as it is written. `mode: paper`: the script to the letter, in which such answers are all the same, and
    references given as one text are read letter by letter.
    """

    def _compare(self, answer: str, reference: str) -> Score:
        return _both(_EXACT(answer, (reference,)), _F1(answer, (reference,)))

    def _published(self, answer: str, references: Sequence[str]) -> Score:
        scores = _published(answer, references)
        if scores.em:
            return RIGHT
        if not references:
            return Score(0.0, 0.0, "the item has no reference answer.")
        return Score(0.0, scores.f1, expected_got(" | ".join(references[:5]), answer, f"F1 {scores.f1:.2f}"))


def squad_scores(answer: str, references: Sequence[str], mode: Mode = "strict") -> SquadScores:
    """The three scores of a result row.

    `strict`: one text as `references` is one reference, and a text of which the script leaves nothing holds nothing
    and is held by nothing. `paper`: the published formulas, in which an empty answer is part of every reference.
    """
    if mode == "paper":
        return _published(answer, references)
    golds = (references,) if isinstance(references, str) else references
    em = _EXACT(answer, golds).hard
    return SquadScores(em, _F1(answer, golds).soft, max(em, _contained(_bare(answer), [_bare(g) for g in golds])))


def _both(exact: Score, f1: Score) -> Score:
    return RIGHT if exact.hard else Score(0.0, f1.soft, f1.feedback if f1.soft < 1.0 else exact.feedback)


def _bare(text: str) -> str:
    return squad_script(unicodedata.normalize("NFC", text))


def _contained(given: str, golds: Sequence[str]) -> float:
    return float(any(given and gold and (given in gold or gold in given) for gold in golds))


def _published(answer: str, references: Sequence[str]) -> SquadScores:
    given = squad_script(answer)
    golds = [squad_script(reference) for reference in references]
    f1 = max((token_f1(given.split(), gold.split()) for gold in golds), default=0.0)
    return SquadScores(float(given in golds), f1, float(any(given in gold or gold in given for gold in golds)))
