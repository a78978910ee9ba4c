"""What the optimizer proposes: the items of a patch, the patch, and an analyst's reply around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from skillopt.types.canonical import JsonObject
from skillopt.types.fields import known_fields, without_empty

EditOp = Literal["append", "insert_after", "replace", "delete"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to the editable body. `target` is the anchor (unused by `append`)."""

    op: str = "append"
    content: str = ""
    target: str = ""
    support_count: int | None = None
    source_type: str = ""
    merge_level: int | None = None
    update_origin: str = ""
    update_target: str = ""

    def to_dict(self) -> JsonObject:
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        return without_empty(
            out, ("target", "support_count", "source_type", "merge_level", "update_origin", "update_target")
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Edit:
        return cls(**known_fields(cls, data))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One piece of advice to the writer of the next version: what to change and why.

    `type`: add_rule, remove_rule, merge_rules, reorganize, compress or clarify. `priority_hint`: high, medium or low.
    """

    type: str = ""
    title: str = ""
    motivation: str = ""
    instruction: str = ""
    priority_hint: str = "medium"
    support_count: int | None = None
    source_type: str = ""
    merge_level: int | None = None

    def to_dict(self) -> JsonObject:
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        return without_empty(out, ("support_count", "source_type", "merge_level"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Suggestion:
        return cls(**known_fields(cls, data))


@dataclass(frozen=True, slots=True)
class SkillCandidate:
    """A whole new body for the skill, with what changed in it."""

    title: str = ""
    change_summary: tuple[str, ...] = ()
    new_skill: str = ""
    support_count: int | None = None
    source_type: str = ""
    merge_level: int | None = None

    def to_dict(self) -> JsonObject:
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        out["change_summary"] = list(self.change_summary)
        return without_empty(out, ("support_count", "source_type", "merge_level"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SkillCandidate:
        return cls(**{**known_fields(cls, data), "change_summary": tuple(data.get("change_summary") or ())})


PatchItem = Edit | Suggestion | SkillCandidate
"""What a patch is made of. The items of one patch are of one kind, that of the update mode."""

PAYLOAD_KEYS: Mapping[str, type[Edit] | type[Suggestion] | type[SkillCandidate]] = {
    "edits": Edit,
    "revise_suggestions": Suggestion,
    "skill_candidates": SkillCandidate,
}
"""Under which key a patch's items stand in JSON, and what they are there."""


def read_item(data: Mapping[str, Any]) -> PatchItem:
    """The item that some `to_dict` wrote, told apart by its keys."""
    if "instruction" in data:
        return Suggestion.from_dict(data)
    return SkillCandidate.from_dict(data) if "change_summary" in data else Edit.from_dict(data)


@dataclass(frozen=True, slots=True)
class Patch:
    """An ordered list of changes with the reason for them.

    `edits` holds the items of whichever update mode is in force: edits, suggestions or skill candidates. In JSON they
    stand under the key of their kind (PAYLOAD_KEYS); a patch without items has the key `edits`.
    """

    edits: tuple[PatchItem, ...] = ()
    reasoning: str = ""
    ranking_details: Mapping[str, Any] | None = None

    @property
    def only_edits(self) -> tuple[Edit, ...]:
        """The items that are edits: all of them in the mode `patch`, none in the others."""
        return tuple(item for item in self.edits if isinstance(item, Edit))

    def to_dict(self) -> JsonObject:
        kind = type(self.edits[0]) if self.edits else Edit
        key = next(name for name, of in PAYLOAD_KEYS.items() if of is kind)
        out: JsonObject = {"reasoning": self.reasoning, key: [item.to_dict() for item in self.edits]}
        if self.ranking_details is not None:
            out["ranking_details"] = dict(self.ranking_details)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Patch:
        items: tuple[PatchItem, ...] = ()
        for key, kind in PAYLOAD_KEYS.items():
            rows = data.get(key) or ()
            items = items or tuple(row if isinstance(row, kind) else kind.from_dict(row) for row in rows)
        return cls(items, str(data.get("reasoning") or ""), data.get("ranking_details"))


@dataclass(frozen=True, slots=True)
class FailureSummaryEntry:
    """One kind of failure that an analyst saw in its group of trajectories."""

    failure_type: str = ""
    count: int = 0
    description: str = ""

    def to_dict(self) -> JsonObject:
        return {"failure_type": self.failure_type, "count": self.count, "description": self.description}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FailureSummaryEntry:
        return cls(**known_fields(cls, data))


@dataclass(frozen=True, slots=True)
class RawPatch:
    """One analyst's reply. `batch_size` is the real number of trajectories it was shown; `item_ids` names them.

    `appendix_notes` are reminders of rules that exist and were not followed (skill-aware reflection).
    """

    patch: Patch
    source_type: str = "failure"
    batch_size: int = 0
    failure_summary: tuple[FailureSummaryEntry, ...] = ()
    item_ids: tuple[str, ...] = ()
    appendix_notes: tuple[str, ...] = ()

    def to_dict(self) -> JsonObject:
        return {
            "patch": self.patch.to_dict(),
            "source_type": self.source_type,
            "batch_size": self.batch_size,
            "failure_summary": [entry.to_dict() for entry in self.failure_summary],
            "item_ids": list(self.item_ids),
            "appendix_notes": list(self.appendix_notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RawPatch:
        summary = tuple(FailureSummaryEntry.from_dict(e) for e in data.get("failure_summary") or ())
        return cls(
            patch=Patch.from_dict(data.get("patch") or {}),
            source_type=str(data.get("source_type") or "failure"),
            batch_size=int(data.get("batch_size") or 0),
            failure_summary=summary,
            item_ids=tuple(data.get("item_ids") or ()),
            appendix_notes=tuple(str(note) for note in data.get("appendix_notes") or ()),
        )
