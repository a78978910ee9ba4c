"""From two evaluations to a decision of the gate."""

from __future__ import annotations

from skillopt.engine.kit import Kit
from skillopt.engine.state import Progress
from skillopt.evaluation.evaluate import Evaluation, common_items
from skillopt.evaluation.gate import GateResult, evaluate_gate, flips, select_gate_score
from skillopt.skill.document import Skill


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


def judge(
    kit: Kit, progress: Progress, current: Skill, candidate: Skill, scored: Evaluation, *, step: int
) -> GateResult[str]:
    """Decide whether a candidate replaces the current skill; skills are named by their paths in the run.

    Where items failed on either side, both skills are compared on the items that both were graded on.
    """
    state, before = progress.state, progress.scores
    current_score, means = state.current_score, (scored.hard, scored.soft)
    if scored.n_errors or before.n_errors:
        shared = common_items(before, scored)
        current_score, means = gate_score(kit, before.on(shared), current), scored.on(shared)
    candidate_score = gate_score(kit, means, candidate)
    decision = evaluate_gate(
        kit.folder.relative(kit.folder.skill(step)),
        candidate_score,
        state.current_skill_path,
        current_score,
        state.best_skill_path,
        state.best_score,
        state.best_step,
        step,
        use_gate=kit.config.evaluation.use_gate,
    )
    gained, lost = flips(
        {item: result.hard for item, result in before.graded.items()},
        {item: result.hard for item, result in scored.graded.items()},
    )
    kit.emit(
        "gate",
        action=decision.action,
        metric=kit.config.evaluation.gate_metric,
        current=current_score,
        candidate=candidate_score,
        best=decision.best_score,
        gained=gained,
        lost=lost,
    )
    return decision
