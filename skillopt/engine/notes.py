"""The notes of a step: reminders that its analysts wrote go into the appendix of the current skill.

Notes bypass the gate, but not the evaluation: a skill whose notes changed is another text, and what becomes current
always has a score. So a step that adds notes costs one more evaluation of the selection split; one that adds nothing
new costs nothing. The best skill is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skillopt.config.run_config import RunConfig
from skillopt.engine.gating import gate_score
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.leaks import find_leaks, leak_reasons
from skillopt.engine.state import Progress, Standing
from skillopt.gradient.skill_aware import SkillAware
from skillopt.optimizer.appendix import add_notes, consolidate_appendix_notes, notes_of, with_notes
from skillopt.prompts.asking import Asks
from skillopt.prompts.modes import FULL_REWRITE
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, RawPatch, Usage
from skillopt.utils.files import atomic_write_json, atomic_write_text

FOLDER = "notes_eval"
ACCEPTED = "accepted_skill.md"


@dataclass(frozen=True, slots=True)
class Flushed:
    """The progress after the notes of a step, the fields of its record, and what the evaluation cost."""

    progress: Progress
    fields: JsonObject = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


def skill_aware(config: RunConfig, skill: Skill) -> SkillAware | None:
    """How analysts that look at `skill` sort failures; None when they do not (switched off, or whole rewrites)."""
    optimizer = config.optimizer
    if not optimizer.use_skill_aware_reflection or optimizer.skill_update_mode == FULL_REWRITE.name:
        return None
    return SkillAware(optimizer.skill_aware_appendix_source != "failure_only", notes_of(skill))


def flush_notes(kit: Kit, progress: Progress, patches: Sequence[RawPatch], step: int, session: Asks) -> Flushed:
    """Merge the notes of a step's raw patches into the appendix of the current skill, and score what comes of it.

    Call it once in every step, after the gate if there was one. Writes `appendix_notes.json`. With skill-aware
    reflection off, and without notes, nothing happens. Raises what an evaluation and an optimizer call raise.
    """
    if skill_aware(kit.config, progress.current.skill) is None:
        return Flushed(progress)
    current = progress.current.skill
    given = [note for patch in patches for note in patch.appendix_notes]
    kept = _without_leaks(kit, current, given, step)
    merged = add_notes(current, kept)
    skill = _consolidated(kit, merged.skill, session, step)
    after = notes_of(skill)
    atomic_write_json(
        kit.folder.step(step) / "appendix_notes.json", {"step_notes": given, "appendix_after": list(after)}
    )
    fields: JsonObject = {
        "n_execution_lapse_notes": len(given),
        "n_appendix_notes_added": merged.added,
        "n_appendix_notes_total": len(after),
    }
    if refused := len(given) - len(kept) + merged.too_long:
        fields["n_appendix_notes_refused"] = refused
    if skill.text != merged.skill.text:
        fields["n_appendix_notes_consolidated"] = len(notes_of(merged.skill)) - len(after)
    if skill.text == current.text:
        return Flushed(progress, fields)
    return _scored(kit, progress, skill, step, fields)


def notes_folder(kit: Kit, history: Iterable[Mapping[str, Any]], origin: str = "") -> Path | None:
    """Where the current skill was scored, if it became current by its notes; None if it was a gate that let it in.

    `origin`: who wrote its body. Guidance written at the end of an epoch is younger than the notes of that epoch.
    """
    epoch = int(origin.rpartition("_")[2]) if origin.startswith("slow_update_") else 0
    for record in reversed([record for record in history if record.get("epoch", epoch + 1) > epoch]):
        if "notes_hard" in record:
            return kit.folder.step(int(record["step"])) / FOLDER
        if "accept" in str(record.get("action", "")):
            return None
    return None


def _without_leaks(kit: Kit, current: Skill, notes: Sequence[str], step: int) -> list[str]:
    """The notes that hold nothing which a skill must not hold."""
    if not find_leaks(kit, add_notes(current, notes).skill, current):
        return list(notes)
    kept: list[str] = []
    for note in notes:
        leaks = find_leaks(kit, add_notes(current, [note]).skill, current)
        if leaks:
            kit.emit("leak_refused", step=step, found=[f"note: {reason}" for reason in leak_reasons(leaks)])
        else:
            kept.append(note)
    return kept


def _consolidated(kit: Kit, skill: Skill, session: Asks, step: int) -> Skill:
    """The skill with a shorter appendix where it holds too many notes and the optimizer found a shorter list."""
    most, notes = kit.config.optimizer.skill_aware_consolidate_threshold, notes_of(skill)
    if most <= 0 or len(notes) <= most:
        return skill
    shorter = consolidate_appendix_notes(notes, session=session, emit=kit.emit)
    if shorter is None:
        return skill
    compact = with_notes(skill, shorter)
    leaks = find_leaks(kit, compact, skill)
    if leaks:
        kit.emit("leak_refused", step=step, found=[f"appendix: {reason}" for reason in leak_reasons(leaks)])
        return skill
    return compact


def _scored(kit: Kit, progress: Progress, skill: Skill, step: int, fields: JsonObject) -> Flushed:
    """`skill` as the current one, evaluated; its writer stays the one of the body."""
    scored = kit.evaluate(skill, SELECTION, purpose="appendix_notes", out_dir=kit.folder.step(step) / FOLDER)
    before, best = progress.current, progress.best
    score = gate_score(kit, (scored.hard, scored.soft), skill)
    current = Standing(skill, score, before.origin, before.path, scored)
    if best.path == kit.folder.relative(kit.folder.skill(step)):
        # That file will hold the skill with its notes; the best skill is the one that the gate saw.
        path = kit.folder.step(step) / ACCEPTED
        atomic_write_text(path, best.skill.text)
        best = replace(best, path=kit.folder.relative(path))
    kit.emit("notes_added", step=step, added=fields["n_appendix_notes_added"], score=score, score_before=before.score)
    fields |= {
        "notes_hard": round(scored.hard, 6),
        "notes_soft": round(scored.soft, 6),
        "notes_gate_score": round(score, 6),
    }
    return Flushed(replace(progress, current=current, best=best), fields, scored.usage)
