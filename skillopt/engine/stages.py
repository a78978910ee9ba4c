"""The stages of a step between its rollouts and the gate: aggregate, select, update. Each writes what it made."""

from __future__ import annotations

from skillopt.engine.kit import Kit
from skillopt.engine.work import Work
from skillopt.envs.fingerprint import package_folder
from skillopt.gradient.aggregate import merge_patches
from skillopt.optimizer.lr_autonomous import Evidence, decide_autonomous_learning_rate
from skillopt.optimizer.rewrite import Rewrite, RewriteSettings, first_candidate, rewrite_skill_from_suggestions
from skillopt.optimizer.schedule import edit_budget_at
from skillopt.optimizer.select import rank_and_select
from skillopt.optimizer.update import Update, replace_body, update_skill
from skillopt.skill.document import Skill
from skillopt.types import Patch
from skillopt.utils.files import atomic_write_json, atomic_write_text, read_text

REWRITE_PROMPT = "rewrite_skill"


def aggregate(kit: Kit, work: Work, current: Skill) -> Patch:
    """The step's raw patches as one patch."""
    failures, successes = work.side("failure"), work.side("success")
    kit.emit("phase", name="3/6 AGGREGATE", detail=f"{len(failures)} failure, {len(successes)} success patches")
    gradient = kit.config.gradient
    merged = merge_patches(
        failures,
        successes,
        current,
        session=work.optimizer,
        merge_batch_size=gradient.merge_batch_size,
        workers=gradient.analyst_workers,
        meta_skill_context=work.advice,
        emit=kit.emit,
        mode=work.mode,
    )
    atomic_write_json(kit.folder.step(work.plan.step) / "merged_patch.json", merged.to_dict())
    work.fields["n_edits_merged"] = len(merged.edits)
    return merged


def select(kit: Kit, work: Work, current: Skill, merged: Patch) -> Patch:
    """The items of the merged patch that the step's budget allows, the best first."""
    budget = _budget(kit, work, current, merged)
    detail = f"{work.mode.count(len(merged.edits))}, budget {'unlimited' if budget is None else budget}"
    kit.emit("phase", name="4/6 SELECT", detail=detail)
    ranked = rank_and_select(
        merged,
        len(merged.edits) if budget is None else budget,
        current,
        session=work.optimizer,
        meta_skill_context=work.advice,
        emit=kit.emit,
        mode=work.mode,
    )
    atomic_write_json(kit.folder.step(work.plan.step) / "ranked_edits.json", ranked.to_dict())
    work.fields |= {
        "n_edits_ranked": len(ranked.edits),
        "edit_budget": budget,
        "lr_control_mode": kit.config.optimizer.lr_control_mode if work.mode.limited else "none",
        "support_counts": [item.support_count for item in ranked.edits],
    }
    return ranked


def _budget(kit: Kit, work: Work, current: Skill, merged: Patch) -> int | None:
    """How many items the step may apply; None without a limit."""
    optimizer, plan = kit.config.optimizer, work.plan
    if optimizer.lr_control_mode == "none" or not work.mode.limited:
        return None
    scheduled = edit_budget_at(
        plan.step,
        plan.total_steps,
        optimizer.lr_scheduler,
        optimizer.learning_rate,
        optimizer.min_learning_rate,
    )
    if optimizer.lr_control_mode != "autonomous":
        return scheduled
    hard, soft = work.scores()
    decision = decide_autonomous_learning_rate(
        merged,
        current,
        Evidence(len(work.results), hard, soft, work.memory, work.advice),
        session=work.optimizer,
        scheduled=scheduled,
        mode=work.mode,
        emit=kit.emit,
    ).to_dict()
    atomic_write_json(kit.folder.step(plan.step) / "lr_decision.json", decision)
    work.fields["lr_decision"] = {key: value for key, value in decision.items() if key != "raw_response"}
    return int(decision["learning_rate"])


def update(kit: Kit, work: Work, current: Skill, ranked: Patch) -> Update | None:
    """The candidate that the ranked items give; None when a rewrite gave no usable text.

    `candidate_skill.md` is written in any case; without a candidate it holds the current skill.
    """
    kit.emit("phase", name="5/6 UPDATE", detail="")
    made = _rewritten(kit, work, current, ranked) if work.mode.rewrites else _edited(kit, work, current, ranked)
    skill = made.skill if made is not None else current
    atomic_write_text(kit.folder.step(work.plan.step) / "candidate_skill.md", skill.text)
    work.fields |= {"candidate_hash": skill.hash, "candidate_skill_len": len(skill.text)}
    return made


def _edited(kit: Kit, work: Work, current: Skill, ranked: Patch) -> Update:
    made = update_skill(current, ranked)
    rows = [row.to_dict() for row in made.outcome.rows]
    if rows:
        atomic_write_json(kit.folder.edit_report(work.plan.step), rows)
    work.fields["edit_apply_summary"] = made.outcome.summary()
    return made


def _rewritten(kit: Kit, work: Work, current: Skill, ranked: Patch) -> Update | None:
    rewrite = _write_anew(kit, work, current, ranked)
    made = replace_body(current, rewrite.new_skill) if rewrite.new_skill else None
    if made is None:
        reason = rewrite.error or "the new text has nothing in it"
        work.fields["rewrite_error"] = reason
        kit.emit("rewrite_failed", stage="rewrite", reason=reason)
        return None
    work.fields["rewrite_change_summary"] = list(rewrite.change_summary)
    if made.shrank:
        work.fields["shrank"] = True
        kit.emit(
            "notice",
            text=f"Step {work.plan.step}: the rewritten skill is less than half as long as the one before "
            f"({len(made.skill.body)} characters after {len(current.body)}); it may have been cut off.",
        )
    return made


def _write_anew(kit: Kit, work: Work, current: Skill, ranked: Patch) -> Rewrite:
    """The new body: written from suggestions by one more call, or the first of the whole rewrites."""
    folder, model = kit.folder.step(work.plan.step), kit.config.model
    if not work.mode.limited:
        rewrite = first_candidate(ranked)
        chosen = rewrite.candidate
        work.rewritten_from = () if chosen is None else (chosen,)
        shown = None if chosen is None else chosen.to_dict()
        atomic_write_json(
            folder / "full_rewrite_result.json", {"selected_candidate": shown, "merged_patch": ranked.to_dict()}
        )
        return rewrite
    work.rewritten_from = ranked.edits
    rewrite = rewrite_skill_from_suggestions(
        current,
        ranked,
        session=work.optimizer,
        settings=RewriteSettings(
            model.rewrite_max_completion_tokens, model.rewrite_reasoning_effort, _own_rewrite_prompt(kit)
        ),
        step_buffer_context=work.memory,
    )
    atomic_write_json(folder / "rewrite_result.json", rewrite.to_dict())
    return rewrite


def _own_rewrite_prompt(kit: Kit) -> str | None:
    """`prompts/rewrite_skill.md` beside the environment's class, if it is there."""
    folder = package_folder(type(kit.adapter))
    path = folder / "prompts" / f"{REWRITE_PROMPT}.md" if folder is not None else None
    return read_text(path) if path is not None and path.is_file() else None
