"""Skill-aware reflection: analysts tell faults of the skill from faults in following it.

A rule that is wrong or missing calls for an edit. A right rule that was not followed calls for a short reminder, a
note, which goes to the appendix of the skill and not through the gate. Nothing here is switched on for a whole
process: reflection is told by its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from skillopt.prompts import load_prompt
from skillopt.utils.invisible import strip_invisible

Side = Literal["failure", "success"]

NOTES_KEY = "appendix_notes"
MOST_NOTES = 16
"""Notes of one reply that are used. They bypass the gate, so a reply must not flood the skill."""

_TEXT_KEYS = ("note", "content")


@dataclass(frozen=True, slots=True)
class SkillAware:
    """How reflection treats failures to follow the skill.

    `success_notes`: whether analysts of successes may write notes too. `notes`: those that the skill holds already.
    """

    success_notes: bool = True
    notes: tuple[str, ...] = ()

    def takes_notes(self, side: Side) -> bool:
        """Whether the notes of this kind of analyst are used."""
        return side == "failure" or self.success_notes

    def augment(self, prompt: str, side: Side) -> str:
        """The system prompt of an analyst with what skill-aware reflection asks for."""
        if side == "failure":
            return augment_error_prompt(prompt)
        return augment_success_prompt(prompt, takes_notes=self.success_notes)

    @property
    def listed(self) -> str:
        """The notes that are there already, as a list for a prompt; empty without any."""
        return "\n".join(f"- {note}" for note in self.notes)


def augment_error_prompt(prompt: str) -> str:
    """The prompt of an analyst of failures that also sorts them and writes notes."""
    return _joined(prompt, "skill_aware_error")


def augment_success_prompt(prompt: str, *, takes_notes: bool = True) -> str:
    """The prompt of an analyst of successes that may label its edits and, with `takes_notes`, write notes."""
    prompt = _joined(prompt, "skill_aware_success")
    return _joined(prompt, "skill_aware_success_notes") if takes_notes else prompt


def extract_appendix_notes(data: Mapping[str, object]) -> tuple[str, ...]:
    """The notes of a reply, white space collapsed, each once; empty when there is nothing that can be read as notes.

    `appendix_notes` is a list of texts or of objects with `note` or `content`, or one of either. Entries of another
    kind are left out, and so are those after the first `MOST_NOTES`.
    """
    value = data.get(NOTES_KEY)
    entries = value if isinstance(value, (list, tuple)) else [value]
    return tuple(dict.fromkeys(note for note in map(_note, entries) if note))[:MOST_NOTES]


def _note(entry: object) -> str:
    if isinstance(entry, Mapping):
        texts = (entry.get(key) for key in _TEXT_KEYS)
        entry = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    return " ".join(strip_invisible(entry).split()) if isinstance(entry, str) else ""


def _joined(prompt: str, name: str) -> str:
    return f"{prompt.rstrip()}\n\n{load_prompt(name)}"
