"""The update modes: what a step proposes, and how that is called in JSON, in prompts and in messages.

| mode | a patch holds | the candidate comes from |
|---|---|---|
| `patch` | edits | applying them |
| `rewrite_from_suggestions` | suggestions | one call that writes a new body from the selected ones |
| `full_rewrite_minibatch` | whole new bodies | the first of them after merging |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillopt.errors import ConfigError
from skillopt.prompts import load_prompt
from skillopt.types import PAYLOAD_KEYS, Edit, PatchItem, Suggestion


@dataclass(frozen=True, slots=True)
class UpdateMode:
    """One update mode.

    `payload_key`: where the items stand in a reply. `label`, `labels`: what one and several of them are called.
    `suffix`: of the prompt files. `max_completion_tokens`: of replies that hold items. `limited`: whether a step has a
    budget of items, and a ranking when there are more.
    """

    name: str
    payload_key: str
    label: str
    labels: str
    suffix: str = ""
    max_completion_tokens: int = 16384
    limited: bool = True

    @property
    def item_type(self) -> type[PatchItem]:
        """The class of its items."""
        return PAYLOAD_KEYS[self.payload_key]

    @property
    def rewrites(self) -> bool:
        """Whether the candidate is a text that a model wrote as a whole."""
        return self.item_type is not Edit

    def prompt(self, stage: str) -> str:
        """The system prompt of a stage: the file of this mode, else the plain one."""
        if self.suffix:
            try:
                return load_prompt(f"{stage}{self.suffix}")
            except FileNotFoundError:
                pass
        return load_prompt(stage)

    def count(self, number: int) -> str:
        """A number of items in words, such as `1 edit` or `3 suggestions`."""
        return f"{number} {self.label if number == 1 else self.labels}"


PATCH = UpdateMode("patch", "edits", "edit", "edits")
SUGGESTIONS = UpdateMode("rewrite_from_suggestions", "revise_suggestions", "suggestion", "suggestions", "_rewrite")
FULL_REWRITE = UpdateMode(
    "full_rewrite_minibatch",
    "skill_candidates",
    "skill candidate",
    "skill candidates",
    "_full_rewrite",
    max_completion_tokens=64000,
    limited=False,
)

UPDATE_MODES: Mapping[str, UpdateMode] = {mode.name: mode for mode in (PATCH, SUGGESTIONS, FULL_REWRITE)}


def update_mode(name: str) -> UpdateMode:
    """The mode called `name`. Raises ConfigError for another name."""
    if name not in UPDATE_MODES:
        raise ConfigError(f"Unknown update mode {name!r}: expected one of {', '.join(UPDATE_MODES)}")
    return UPDATE_MODES[name]


def item_text(item: PatchItem) -> str:
    """What of an item can end up in a skill, or steer what does."""
    if isinstance(item, Edit):
        return item.content
    if isinstance(item, Suggestion):
        return "\n".join(text for text in (item.title, item.motivation, item.instruction) if text)
    return item.new_skill


def describe_item(item: PatchItem) -> str:
    """An item in full, as a list for a model shows it: its kind and where it comes from, then its texts by name."""
    facts = [_kind(item)]
    if item.support_count is not None:
        facts.append(f"support {item.support_count}")
    if item.source_type:
        facts.append(f"from {item.source_type}")
    if item.merge_level is not None:
        facts.append(f"merge level {item.merge_level}")
    return "\n".join([", ".join(facts), *(f"{name}: {text}" for name, text in _texts(item) if text)])


def _kind(item: PatchItem) -> str:
    if isinstance(item, Edit):
        return item.op
    if isinstance(item, Suggestion):
        return f"{item.type or 'suggestion'}, priority {item.priority_hint}"
    return "whole skill"


def _texts(item: PatchItem) -> tuple[tuple[str, str], ...]:
    if isinstance(item, Edit):
        return ("target", item.target), ("content", item.content)
    if isinstance(item, Suggestion):
        return ("title", item.title), ("motivation", item.motivation), ("instruction", item.instruction)
    return ("title", item.title), ("changes", "; ".join(item.change_summary)), ("text", item.new_skill)


def summarize_item(item: PatchItem) -> str:
    """An item in one line, as the memory of earlier steps shows it."""
    if isinstance(item, Edit):
        target = f" at {item.target!r}" if item.target else ""
        return f"{item.op}{target}{f': {item.content}' if item.content else ''}"
    if isinstance(item, Suggestion):
        words = " - ".join(text for text in (item.title, item.instruction) if text)
        return f"{item.type or 'suggestion'}: {words}"
    changes = "; ".join(item.change_summary) or "no summary"
    return (
        f"whole skill{f' from {item.source_type}' if item.source_type else ''}: {item.title or 'untitled'} ({changes})"
    )
