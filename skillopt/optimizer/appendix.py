"""The appendix of a skill: notes that remind the agent of rules which exist and were not followed.

Notes are kept in a protected region that no edit can touch. They are merged without regard to case and punctuation,
and compacted by one optimizer call when there are too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillopt.errors import ReplyError
from skillopt.prompts import load_prompt
from skillopt.prompts.asking import Asks, Question, ask_typed
from skillopt.prompts.sections import join_sections, section
from skillopt.skill.document import Skill
from skillopt.skill.regions import (
    append_to_appendix_field,
    extract_appendix_notes,
    has_appendix_field,
    inject_empty_appendix_field,
)
from skillopt.tracking.events import Emit

__all__ = [
    "Merged",
    "add_notes",
    "append_to_appendix_field",
    "consolidate_appendix_notes",
    "extract_appendix_notes",
    "has_appendix_field",
    "inject_empty_appendix_field",
    "notes_of",
    "with_notes",
]

STAGE = "appendix_consolidate"
CONSOLIDATE_TOKENS = 4096
LONGEST_NOTE = 600
"""Characters that a note may have. A longer one is no reminder, and nothing but its length bounds it."""

_NOTES_TOKENS = 8_000


@dataclass(frozen=True, slots=True)
class Merged:
    """A skill with notes added. `added`: how many are new; `too_long`: how many were left out for their length."""

    skill: Skill
    added: int
    too_long: int = 0


def notes_of(skill: Skill) -> tuple[str, ...]:
    """The notes of a skill's appendix, in order; empty without one."""
    return tuple(extract_appendix_notes(skill.text))


def add_notes(skill: Skill, notes: Iterable[str]) -> Merged:
    """The skill with the notes that its appendix lacks, at the end of it. Nothing new gives the same skill."""
    given = list(notes)
    usable = [note for note in given if len(" ".join(note.split())) <= LONGEST_NOTE]
    before = notes_of(skill)
    merged = Skill.parse(append_to_appendix_field(skill.text, usable), skill.files)
    return Merged(merged, len(notes_of(merged)) - len(before), len(given) - len(usable))


def with_notes(skill: Skill, notes: Sequence[str]) -> Skill:
    """The skill with exactly these notes in its appendix."""
    bare = replace(skill, regions=tuple(region for region in skill.regions if region.kind != "appendix"))
    text = inject_empty_appendix_field(append_to_appendix_field(bare.text, notes))
    return Skill.parse(text, skill.files)


def consolidate_appendix_notes(
    notes: Sequence[str], *, session: Asks, emit: Emit | None = None
) -> tuple[str, ...] | None:
    """A shorter list that says the same, from one optimizer call; None when there is no usable one.

    A reply is used only when it holds at least one note and fewer notes than before. A failed call changes nothing
    and is told as an event. Raises what ends a run (fatal model errors, a used-up budget, an interruption).
    """
    listed = "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))
    user = join_sections(section(f"Notes ({len(notes)})", listed, "notes", _NOTES_TOKENS))
    question = Question(STAGE, load_prompt(STAGE), user, max_completion_tokens=CONSOLIDATE_TOKENS)
    answer = ask_typed(session, question, _parse)
    if answer.value is None:
        if emit is not None:
            emit("consolidation_failed", stage=STAGE, reason=answer.reason)
        return None
    shorter = notes_of(with_notes(Skill.parse(""), answer.value))
    return shorter if 0 < len(shorter) < len(notes) else None


def _parse(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Read `{"appendix_notes": [text, ...]}`. Raises ReplyError (`wrong_shape`)."""
    rows = data.get("appendix_notes")
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        raise ReplyError('"appendix_notes" must be a list of texts', "wrong_shape")
    return tuple(row for row in rows if row.strip() and len(row) <= LONGEST_NOTE)
