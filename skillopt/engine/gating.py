"""One look at the selection split: evaluate a candidate, let the gate decide, and move who is current and best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.state import Progress, Standing
from skillopt.evaluation.evaluate import Evaluation, common_items
from skillopt.evaluation.gate import GateResult, evaluate_gate, flips, select_gate_score
from skillopt.skill.document import Skill
from skillopt.types import JsonObject


@dataclass(frozen=True, slots=True)
class Candidate:
    """A skill that asks to become current. `path`: its file in the run; `origin`: who wrote it; `step`: when."""

    skill: Skill
    path: str
    origin: str
    step: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the selection split showed and decided. Scores are those that the gate compared."""

    action: str
    new_best: bool
    scored: Evaluation
    current_score: float
    candidate_score: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the candidate became current."""
        return "accept" in self.action

    def record(self, metric: str) -> JsonObject:
        """The fields of a step record that say what was seen."""
        return {
            "selection_hard": round(self.scored.hard, 6),
            "selection_soft": round(self.scored.soft, 6),
            "selection_errors": self.scored.n_errors,
            "selection_gained": len(self.gained),
            "selection_lost": len(self.lost),
            "gate_metric": metric,
            "candidate_gate_score": round(self.candidate_score, 6),
        }


def gate_score(kit: Kit, means: tuple[float, float], skill: Skill) -> float:
    """The number that the gate compares, from the mean (hard, soft) of `skill`."""
    settings = kit.config.evaluation
    return select_gate_score(
        *means,
        settings.gate_metric,
        settings.gate_mixed_weight,
        skill_text=skill.text,
        use_semantic_density=settings.use_semantic_density,
        semantic_density_weight=settings.semantic_density_weight,
        leading_words=settings.leading_words or None,
    )


def look(kit: Kit, progress: Progress, candidate: Candidate, out_dir: Path) -> tuple[Progress, Look]:
    """Evaluate `candidate` on the selection split and decide; the progress with the new current and best skill.

    Where items failed on either side, both skills are compared on the items that both were graded on.
    """
    scored = kit.evaluate(candidate.skill, SELECTION, purpose="selection", out_dir=out_dir)
    seen = _compare(kit, progress, candidate, scored)
    kit.emit(
        "gate",
        action=seen.action,
        metric=kit.config.evaluation.gate_metric,
        current=seen.current_score,
        candidate=seen.candidate_score,
        best=seen.candidate_score if seen.new_best else progress.best.score,
        gained=seen.gained,
        lost=seen.lost,
    )
    return _moved(progress, candidate, seen), seen


def _compare(kit: Kit, progress: Progress, candidate: Candidate, scored: Evaluation) -> Look:
    before, current_score, means = progress.current.scores, progress.current.score, (scored.hard, scored.soft)
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    if before is not None:
        gained, lost = flips(before.hard_by_item, scored.hard_by_item)
        if scored.n_errors or before.n_errors:
            shared = common_items(before, scored)
            current_score, means = gate_score(kit, before.on(shared), progress.current.skill), scored.on(shared)
    candidate_score = gate_score(kit, means, candidate.skill)
    decision: GateResult[str] = evaluate_gate(
        "candidate",
        candidate_score,
        "current",
        current_score,
        "best",
        progress.best.score,
        progress.best_step,
        candidate.step,
        use_gate=kit.config.evaluation.use_gate,
    )
    new_best = decision.best_skill == "candidate"
    return Look(decision.action, new_best, scored, current_score, candidate_score, gained, lost)


def _moved(progress: Progress, candidate: Candidate, seen: Look) -> Progress:
    if not seen.accepted:
        return progress
    standing = Standing(candidate.skill, seen.candidate_score, candidate.origin, candidate.path, seen.scored)
    progress = replace(progress, current=standing)
    return replace(progress, best=standing, best_step=candidate.step) if seen.new_best else progress
