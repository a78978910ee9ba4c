"""An item, what became of it under a skill, and what that took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from skillopt.types.canonical import JsonObject, content_hash
from skillopt.types.fields import known_fields

ItemStatus = Literal["ok", "error"]


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
        return cls(**known_fields(cls, data))


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
        known = known_fields(cls, data)
        known["id"] = str(data["id"])
        known["trajectory"] = tuple(data.get("trajectory") or ())
        usage = data.get("usage")
        known["usage"] = usage if isinstance(usage, Usage) else Usage.from_dict(usage or {})
        extras = dict(data.get("extras") or {})
        extras.update({k: v for k, v in data.items() if k not in known and k != "extras"})
        known["extras"] = extras
        return cls(**known)
