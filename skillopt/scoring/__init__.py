"""Pure scorers: an answer and its references in, a score and words for the optimizer out. No I/O, no model calls."""

from __future__ import annotations

from skillopt.scoring.base import Score, Scorer
from skillopt.scoring.registry import SCORERS, get_scorer, scorer_fingerprint
from skillopt.scoring.summary import ScoreSummary, compute_score, summarize_scores

__all__ = [
    "SCORERS",
    "Score",
    "ScoreSummary",
    "Scorer",
    "compute_score",
    "get_scorer",
    "scorer_fingerprint",
    "summarize_scores",
]
