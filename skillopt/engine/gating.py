"""One look at the selection split: evaluate a candidate, let the gate decide, and move who is current and best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from skillopt.engine.bounds import warn_oversized
from skillopt.engine.extent import extent_of
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.state import Progress, Standing, TrainState
from skillopt.evaluation.early_stop import Bar, Means
from skillopt.evaluation.evaluate import Evaluation, common_items, compare
from skillopt.evaluation.gate import GateResult, evaluate_gate, flips
from skillopt.evaluation.stats import Comparison, ErrorBudget
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
    """What one look at the selection split showed and decided. Scores are those that the gate compared.

    A look that stopped early rejects: `candidate_score` is then the highest score that was still possible, gained and
    lost items are those seen so far, and there is no comparison. `share` is the part of the run's error budget that
    the paired gate gave to this look; None under the strict gate.
    """

    action: str
    new_best: bool
    scored: Evaluation
    current_score: float
    candidate_score: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    comparison: Comparison | None = None
    share: float | None = None

    @property
    def accepted(self) -> bool:
        """Whether the candidate became current."""
        return "accept" in self.action

    @property
    def stopped_early(self) -> bool:
        """Whether the candidate was rejected before all items were run."""
        return not self.scored.complete

    @property
    def score(self) -> float | None:
        """The candidate's score; None when it was rejected before it had one."""
        return None if self.stopped_early else self.candidate_score

    def record(self, metric: str) -> JsonObject:
        """The fields of a step record that say what was seen; scores only when every item was run."""
        fields: JsonObject = {
            "selection_n": len(self.scored.results),
            "selection_total": self.scored.total,
            "stopped_early": self.stopped_early,
            "selection_errors": self.scored.n_errors,
            "selection_gained": len(self.gained),
            "selection_lost": len(self.lost),
            "gate_metric": metric,
        }
        if self.stopped_early:
            fields["candidate_gate_bound"] = round(self.candidate_score, 6)
        else:
            fields["selection_hard"] = round(self.scored.hard, 6)
            fields["selection_soft"] = round(self.scored.soft, 6)
            fields["candidate_gate_score"] = round(self.candidate_score, 6)
        if self.comparison is not None:
            fields["comparison"] = self.comparison.to_dict()
        if self.share is not None:
            fields["gate_share"] = float(f"{self.share:.6g}")
        return fields


def gate_score(kit: Kit, means: Means, skill: Skill) -> float:
    """The number that the gate compares, from the mean (hard, soft) of `skill`."""
    score: float = kit.gate_score(means, skill.text)
    return score


def look(kit: Kit, progress: Progress, candidate: Candidate, out_dir: Path) -> tuple[Progress, Look]:
    """Evaluate `candidate` on the selection split and decide; the progress with the new current and best skill.

    Where items failed on either side, both skills are compared on the items that both were graded on; what a skill
    keeps as its score is the one over all items that it was graded on itself. With
    `evaluation.early_stop: exact`, items are left out once the candidate cannot win any more.
    """
    against = _bar(kit, progress, candidate.skill)
    scored = kit.evaluate(candidate.skill, SELECTION, purpose="selection", out_dir=out_dir, against=against)
    share = next_share(kit, progress)
    seen = _judge(kit, progress, candidate, scored, share)
    kit.emit(
        "gate",
        action=seen.action,
        metric=kit.config.evaluation.gate_metric,
        current=seen.current_score,
        candidate=seen.candidate_score,
        best=seen.candidate_score if seen.new_best else progress.best.score,
        gained=seen.gained,
        lost=seen.lost,
        evaluated=len(scored.results),
        total=scored.total,
        stopped_early=seen.stopped_early,
        comparison=None if seen.comparison is None else seen.comparison.to_dict(),
    )
    if seen.accepted:
        warn_oversized(kit.emit, candidate.skill, progress.current.skill)
    return counted(kit, _moved(kit, progress, candidate, seen), share), seen


def next_share(kit: Kit, progress: Progress | TrainState) -> float | None:
    """What the next look may take of the run's error budget; None where the gate asks for no significance."""
    settings = kit.config.evaluation
    if not settings.use_gate or settings.gate_policy != "paired":
        return None
    return _budget(kit, progress).share(extent_of(kit.config, kit.adapter).looks)


def counted(kit: Kit, progress: Progress, share: float | None) -> Progress:
    """The progress after one more look that took this share."""
    spent = _budget(kit, progress).after(share or 0.0)
    return replace(progress, looks=spent.looks, alpha_spent=spent.spent)


def _budget(kit: Kit, progress: Progress | TrainState) -> ErrorBudget:
    return ErrorBudget(kit.config.evaluation.gate_alpha, progress.looks, progress.alpha_spent)


def _bar(kit: Kit, progress: Progress, skill: Skill) -> Bar | None:
    """What `skill` has to beat; None when its whole score is wanted in any case."""
    settings, current = kit.config.evaluation, progress.current
    before = current.scores
    if settings.early_stop != "exact" or not settings.use_gate or before is None or before.n_errors:
        return None
    return Bar(
        {item: (result.hard, result.soft) for item, result in before.graded.items()},
        current.score,
        partial(gate_score, kit, skill=current.skill),
        partial(gate_score, kit, skill=skill),
    )


def _judge(kit: Kit, progress: Progress, candidate: Candidate, scored: Evaluation, share: float | None) -> Look:
    before, current_score = progress.current.scores, progress.current.score
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    if before is not None:
        gained, lost = flips(before.hard_by_item, scored.hard_by_item)
    if not scored.complete:
        bound = current_score if scored.bound is None else scored.bound
        return Look("reject", False, scored, current_score, bound, gained, lost, None, share)
    means, comparison = _means(scored), None
    if before is not None:
        comparison = compare(before, scored, measure=kit.gate_score)
        if scored.n_errors or before.n_errors:
            shared = common_items(before, scored)
            current_score, means = gate_score(kit, before.on(shared), progress.current.skill), scored.on(shared)
    candidate_score = gate_score(kit, means, candidate.skill)
    best_score = _best_bar(progress, current_score, candidate_score - gate_score(kit, _means(scored), candidate.skill))
    decision: GateResult[str] = evaluate_gate(
        "candidate",
        candidate_score,
        "current",
        current_score,
        "best",
        best_score,
        progress.best_step,
        candidate.step,
        use_gate=kit.config.evaluation.use_gate,
        significant=share is None or (comparison is not None and comparison.p_value <= share),
    )
    new_best = decision.best_skill == "candidate"
    return Look(decision.action, new_best, scored, current_score, candidate_score, gained, lost, comparison, share)


def _means(scored: Evaluation) -> Means:
    return scored.hard, scored.soft


def _best_bar(progress: Progress, current_score: float, shift: float) -> float:
    """What the candidate's score has to pass to be the best, where scores may be those over fewer items.

    The current skill, when it is the best one, is measured on the same items as the candidate. Any other best skill
    and the candidate are compared by the scores of their own; `shift` is how far the candidate's is from its own.
    """
    if progress.best.skill.hash == progress.current.skill.hash:
        return current_score
    return progress.best.score + shift


def _moved(kit: Kit, progress: Progress, candidate: Candidate, seen: Look) -> Progress:
    if not seen.accepted:
        return progress
    score = gate_score(kit, _means(seen.scored), candidate.skill)
    standing = Standing(candidate.skill, score, candidate.origin, candidate.path, seen.scored)
    progress = replace(progress, current=standing)
    return replace(progress, best=standing, best_step=candidate.step) if seen.new_best else progress
