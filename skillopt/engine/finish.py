"""The end of a run: is the last skill the best after all, how do the skills do on the test split, and the summary.

`summary.json` is written before the tests and again after each of them, so that a test that fails loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import skillopt
from skillopt.engine.accounts import spending
from skillopt.engine.gating import counted, gate_score, next_share
from skillopt.engine.kit import SELECTION, TEST, Kit
from skillopt.engine.model_notes import data_notes, note_models
from skillopt.engine.setup import paid
from skillopt.engine.state import Progress
from skillopt.evaluation.evaluate import Evaluation, common_items, compare, write_buckets
from skillopt.evaluation.gate import evaluate_gate
from skillopt.model.usage import cost_of
from skillopt.skill.document import Skill
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, atomic_write_text


def finish(kit: Kit, progress: Progress, initial: Skill, total_steps: int) -> tuple[Progress, JsonObject]:
    """Final selection check, test evaluations and summary. Returns the last progress and the summary."""
    progress, final, best = _final_selection(kit, progress)
    atomic_write_text(kit.folder.best_skill, progress.best.skill.text)
    summary = _summary(kit, progress, total_steps) | _selection(kit, progress, initial, final, best)
    _save(kit, summary)
    if kit.config.evaluation.eval_test and _has_tests(kit):
        tested = {}
        for which, skill in (("baseline", initial), ("best", progress.best.skill), ("final", progress.current.skill)):
            tested[which] = _test(kit, which, skill)
            summary |= _test_fields(which, tested[which])
            _save(kit, summary)
        summary["test_delta_hard"] = _gain(tested["baseline"], tested["best"])
        summary["final_test_delta_hard"] = _gain(tested["baseline"], tested["final"])
        summary["test_comparison"] = compare(tested["baseline"], tested["best"]).to_dict()
        _save(kit, summary)
    return progress, summary


def _gain(before: Evaluation, after: Evaluation) -> float:
    """How much the mean hard score rose, over the items that both were graded on."""
    shared = common_items(before, after)
    return round(after.on(shared)[0] - before.on(shared)[0], 6)


def _selection(kit: Kit, progress: Progress, initial: Skill, final: Evaluation, best: Evaluation) -> JsonObject:
    """Scores on the selection split: the initial, the best and the last skill, and what the first two differ by."""
    baseline = kit.evaluate(initial, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
    return {
        "baseline_selection_hard": round(progress.baseline[0], 6),
        "baseline_selection_soft": round(progress.baseline[1], 6),
        "best_selection_score": round(progress.best.score, 6),
        "best_selection_hard": round(best.hard, 6),
        "best_selection_soft": round(best.soft, 6),
        "final_selection_hard": round(final.hard, 6),
        "final_selection_soft": round(final.soft, 6),
        "selection_n": len(final.graded),
        "selection_comparison": compare(baseline, best).to_dict(),
    }


def _final_selection(kit: Kit, progress: Progress) -> tuple[Progress, Evaluation, Evaluation]:
    """Score the last skill once more (from the store unless an item has no score yet); promote it if it is better.

    Returns the progress, and the evaluations of the last skill and of what is best after that. Last and best skill are
    compared on the items that both were graded on. Under the paired gate this is a look like any other: it takes its
    share of the error budget, and a gain that is not significant promotes nothing.
    """
    current, best = progress.current, progress.best
    scored = kit.evaluate(current.skill, SELECTION, purpose="final selection", out_dir=kit.folder.final_selection)
    if current.skill.hash == best.skill.hash:
        return progress, scored, scored
    held = kit.evaluate(best.skill, SELECTION, purpose="best", out_dir=kit.folder.best_selection)
    shared = common_items(held, scored)
    score, bar = gate_score(kit, scored.on(shared), current.skill), gate_score(kit, held.on(shared), best.skill)
    share = next_share(kit, progress)
    significant = share is None or compare(held, scored, measure=kit.gate_score).p_value <= share
    decision = evaluate_gate(
        "current", score, "best", bar, "best", bar, progress.best_step, progress.step, significant=significant
    )
    progress = counted(kit, progress, share)
    if not decision.accepted:
        return progress, scored, held
    own = gate_score(kit, (scored.hard, scored.soft), current.skill)
    return replace(progress, best=replace(current, score=own), best_step=progress.step), scored, scored


def _has_tests(kit: Kit) -> bool:
    loader = kit.adapter.get_dataloader()
    if loader is None:
        return True
    batch = loader.build_eval_batch(env_num=0, split=TEST, seed=kit.config.train.seed)
    if not batch.payload:
        kit.emit("notice", text="The test split is empty, so there is no final test.")
    return bool(batch.payload)


def _test(kit: Kit, which: str, skill: Skill) -> Evaluation:
    kit.emit("test_started", purpose=which)
    folder = kit.folder.test(which)
    scored = kit.evaluate(skill, TEST, purpose=f"test {which}", out_dir=folder)
    write_buckets(folder, scored, kit.adapter.get_task_types())
    return scored


def _test_fields(which: str, scored: Evaluation) -> JsonObject:
    prefix = {"baseline": "baseline_test", "best": "test", "final": "final_test"}[which]
    return {
        f"{prefix}_hard": round(scored.hard, 6),
        f"{prefix}_soft": round(scored.soft, 6),
        f"{prefix}_n": len(scored.graded),
        f"{prefix}_errors": scored.n_errors,
    }


def _summary(kit: Kit, progress: Progress, total_steps: int) -> JsonObject:
    return {
        "version": f"skillopt-{skillopt.__version__}",
        "config": kit.config.public(),
        "gate_metric": kit.config.evaluation.gate_metric,
        "gate_policy": kit.config.evaluation.gate_policy,
        "best_step": progress.best_step,
        "current_origin": progress.current.origin,
        "best_origin": progress.best.origin,
        "total_steps": total_steps,
        **{f"total_{name}": number for name, number in _outcomes(progress.history).items()},
        "epoch_stats": _epochs(progress.history),
        "total_wall_time_s": round(progress.wall_time_s, 3),
        **dict.fromkeys(
            [f"{p}_{m}" for p in ("baseline_test", "test", "final_test") for m in ("hard", "soft")]
            + ["test_delta_hard", "final_test_delta_hard", "test_comparison"]
        ),
    }


def _outcomes(history: Sequence[JsonObject]) -> dict[str, int]:
    """How many steps ended in which way. An inconclusive look is neither an accept nor a reject."""
    actions = [str(record["action"]) for record in history]
    return {
        "accepts": sum("accept" in action for action in actions),
        "rejects": sum("reject" in action for action in actions),
        "inconclusive": sum(action == "inconclusive" for action in actions),
        "skips": sum(action.startswith(("skip", "no_change")) for action in actions),
    }


def _epochs(history: Sequence[JsonObject]) -> list[JsonObject]:
    out = []
    for epoch in sorted({record["epoch"] for record in history}):
        records = [record for record in history if record["epoch"] == epoch]
        out.append(
            {
                "epoch": epoch,
                "steps": len(records),
                **_outcomes(records),
                "best_score_at_epoch_end": records[-1]["best_score"],
                "current_score_at_epoch_end": records[-1]["current_score"],
            }
        )
    return out


def _save(kit: Kit, summary: JsonObject) -> None:
    summary["usage"] = (kit.store.rollout_usage() + kit.store.reply_usage()).to_dict()
    summary |= spending(kit.session.usage)
    summary["model_notes"], summary["notices"] = note_models(kit), data_notes(kit)
    costs = [cost_of(key, usage, kit.session.prices) for key, usage in paid(kit.config, kit.store)]
    summary["cost_usd"] = None if None in costs else math.fsum(cost for cost in costs if cost is not None)
    atomic_write_json(kit.folder.summary, summary)
