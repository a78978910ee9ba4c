# A copy of skillopt/types.py, made by scripts/vendor.py: change the original, then run that.
"""The values that travel between rooms. Frozen, without behaviour beyond reading and writing themselves.

Values that a reader of run files knows as JSON have `to_dict` and `from_dict`; `from_dict` ignores unknown
keys so that files written by a later version can still be read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

EditOp = Literal["append", "insert_after", "replace", "delete"]
SourceType = Literal["failure", "success", "mixed"]
ItemStatus = Literal["ok", "error"]
JsonObject = dict[str, Any]
_T = TypeVar("_T")


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, non-ASCII kept. Equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def content_hash(*parts: object) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `parts`. The key under which finished work is kept."""
    return hashlib.sha256(canonical_json(list(parts)).encode("utf-8", "surrogatepass")).hexdigest()


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(cls)}
    return {key: value for key, value in data.items() if key in names}


def _without(data: dict[str, Any], empty: tuple[str, ...]) -> dict[str, Any]:
    return {k: v for k, v in data.items() if not (k in empty and (v is None or v == ""))}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls. `known` is False when a provider reported no token counts for some call in it."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    known: bool = True

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            known=self.known and other.known,
        )

    def to_dict(self) -> JsonObject:
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "known": self.known,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        return cls(**_known(cls, data))


@dataclass(frozen=True, slots=True)
class Item:
    """One task of a data set. `id` is unique in the whole data set; `data` holds every field as it was read."""

    id: str
    data: Mapping[str, Any]

    @property
    def content(self) -> str:
        """Hash of id and data: two items with equal content are the same task."""
        return content_hash(self.id, dict(self.data))

    def to_dict(self) -> JsonObject:
        return {**self.data, "id": self.id}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Item:
        return cls(id=str(data["id"]), data=dict(data))


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """What became of one item under one skill.

    `hard` and `soft` lie in 0..1 and mean something only when `status` is `ok`; an `error` never enters a mean.
    `trajectory` lists what happened, in order: entries with `role` and `content`, or `type: tool_call` with `cmd`
    and `obs`, or `action` and `env_feedback`.
    """

    id: str
    hard: float = 0.0
    soft: float = 0.0
    status: ItemStatus = "ok"
    error: str = ""
    n_turns: int = 0
    fail_reason: str = ""
    task_type: str = ""
    task_description: str = ""
    predicted_answer: str = ""
    question: str = ""
    reference_text: str = ""
    target_system_prompt: str = ""
    target_user_prompt: str = ""
    spreadsheet_preview: str = ""
    trajectory: tuple[Mapping[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def to_dict(self) -> JsonObject:
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        out["trajectory"] = [dict(entry) for entry in self.trajectory]
        out["usage"] = self.usage.to_dict()
        out["extras"] = dict(self.extras)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RolloutResult:
        """Read a stored row or an adapter's result dict; keys that are not fields go to `extras`."""
        known = _known(cls, data)
        known["id"] = str(data["id"])
        known["trajectory"] = tuple(data.get("trajectory") or ())
        usage = data.get("usage")
        known["usage"] = usage if isinstance(usage, Usage) else Usage.from_dict(usage or {})
        extras = dict(data.get("extras") or {})
        extras.update({k: v for k, v in data.items() if k not in known and k != "extras"})
        known["extras"] = extras
        return cls(**known)


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
        return _without(
            out, ("target", "support_count", "source_type", "merge_level", "update_origin", "update_target")
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Edit:
        return cls(**_known(cls, data))


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
        return _without(out, ("support_count", "source_type", "merge_level"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Suggestion:
        return cls(**_known(cls, data))


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
        return _without(out, ("support_count", "source_type", "merge_level"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SkillCandidate:
        return cls(**{**_known(cls, data), "change_summary": tuple(data.get("change_summary") or ())})


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
        return cls(**_known(cls, data))


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


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """Everything that one role (`optimizer` or `target`) needs to make calls, resolved once.

    `settings` holds the provider's own fields by their names in the provider's row. `secrets` names those among
    them that must never be shown; `repr` leaves the whole mapping out. `result_settings` names the fields that can
    change a reply (address and temperature, not time-outs), which make up the fingerprint.
    """

    role: str
    backend: str
    model: str
    effort: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = frozenset()
    result_settings: frozenset[str] = frozenset()

    @property
    def fingerprint(self) -> str:
        """Hash of what can change a reply: backend, model, effort and the result settings, never a secret."""
        shown = {k: v for k, v in self.settings.items() if k in self.result_settings - self.secrets}
        return content_hash(self.backend, self.model, self.effort, shown)

    def with_settings(self, **changes: Any) -> RoleConfig:
        return replace(self, settings={**self.settings, **changes})
