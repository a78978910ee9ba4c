"""What analysts and merges reply, as checked values.

Lenient where a slip is harmless (case of an operation, a null where nothing is needed, a count as text), strict where
guessing would change the meaning. An edit that cannot be used is left out with the reason; a reply with none left is
refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError, field_validator, model_validator

from skillopt.errors import ReplyError
from skillopt.types import Edit, FailureSummaryEntry, Patch, RawPatch


class EditReply(BaseModel):
    """One edit as a model wrote it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    op: Literal["append", "insert_after", "replace", "delete"]
    content: StrictStr = ""
    target: StrictStr = ""
    support_count: int | None = None
    source_type: Literal["failure", "success", "mixed", ""] = ""

    @field_validator("op", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("target", mode="before")
    @classmethod
    def _null_target(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("support_count", mode="before")
    @classmethod
    def _count(cls, value: object) -> int | None:
        return count_or_none(value)

    @field_validator("source_type", mode="before")
    @classmethod
    def _known_source(cls, value: object) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        return word if word in ("failure", "success", "mixed") else ""

    @model_validator(mode="before")
    @classmethod
    def _delete_needs_no_content(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("content") is None and _is_delete(data.get("op")):
            return {**data, "content": ""}
        return data

    @model_validator(mode="after")
    def _complete(self) -> EditReply:
        if self.op in ("append", "insert_after") and not self.content.strip():
            raise ValueError(f"content: {self.op} needs text")
        if self.op == "replace" and "content" not in self.model_fields_set:
            raise ValueError("content: replace needs text")
        if self.op in ("replace", "delete") and not self.target:
            raise ValueError(f"target: {self.op} needs the text to look for")
        return self

    def to_edit(self) -> Edit:
        """The edit as the other rooms know it."""
        return Edit(self.op, self.content, self.target, self.support_count, self.source_type)


def _is_delete(op: object) -> bool:
    return isinstance(op, str) and op.strip().lower() == "delete"


def count_or_none(value: object) -> int | None:
    """A whole number of at least 1, also given as text or as a float without a fraction; anything else is None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if 1 <= number < 1e9 and number == int(number) else None


@dataclass(frozen=True, slots=True)
class PatchReply:
    """The usable edits of a reply in their order, its reasoning, and why other edits were left out."""

    edits: tuple[Edit, ...]
    reasoning: str = ""
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnalystReply:
    """A patch with the kinds of failure that the analyst saw (empty for an analyst of successes)."""

    patch: PatchReply
    failure_summary: tuple[FailureSummaryEntry, ...] = ()


def parse_analyst(data: Mapping[str, Any]) -> AnalystReply:
    """Read an analyst's object: `{"patch": {"edits": [...]}, ...}` or, without the wrapper, `{"edits": [...]}`.

    What it says about the size of its group is not looked at. Raises ReplyError (`wrong_shape`).
    """
    patch = data.get("patch", data)
    if not isinstance(patch, Mapping):
        raise ReplyError(f'"patch" must be an object with a list "edits", not {_kind(patch)}', "wrong_shape")
    return AnalystReply(parse_patch(patch), _failure_summary(data.get("failure_summary")))


def parse_patch(data: Mapping[str, Any]) -> PatchReply:
    """Read `{"reasoning": ..., "edits": [...]}`. Raises ReplyError (`wrong_shape`) naming what is wrong.

    An empty list is an answer (nothing to change); a list in which no edit can be used is not.
    """
    if "edits" not in data:
        keys = ", ".join(sorted(repr(str(key)[:40]) for key in list(data)[:8])) or "none"
        raise ReplyError(f'the key "edits" is missing; found {keys}', "wrong_shape")
    rows = data["edits"]
    if not isinstance(rows, list):
        raise ReplyError(f'"edits" must be a list of objects, not {_kind(rows)}', "wrong_shape")
    edits, dropped = _read_edits(rows)
    if rows and not edits:
        raise ReplyError(f"no edit can be used: {'; '.join(dropped[:5])}", "wrong_shape")
    reasoning = data.get("reasoning")
    return PatchReply(tuple(edits), reasoning if isinstance(reasoning, str) else "", tuple(dropped))


def _read_edits(rows: Sequence[object]) -> tuple[list[Edit], list[str]]:
    edits: list[Edit] = []
    dropped: list[str] = []
    for index, row in enumerate(rows):
        edit = _read_edit(row)
        if isinstance(edit, Edit):
            edits.append(edit)
        else:
            dropped.append(f"edits[{index}]: {edit}")
    return edits, dropped


def _read_edit(row: object) -> Edit | str:
    """The edit, or what is wrong with it."""
    try:
        return EditReply.model_validate(row).to_edit()
    except ValidationError as error:
        return _first_problem(error)


def _first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, without a copy of the input."""
    problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def read_raw_patch(data: Mapping[str, Any]) -> RawPatch:
    """The raw patch of an environment that reflects by itself, read as leniently as an analyst's reply.

    Keys: those of an analyst's reply, and `source_type`, `batch_size`, `item_ids`. A `batch_size` that is no count
    is left out. Raises ReplyError (`wrong_shape`).
    """
    reply = parse_analyst(data)
    ids = data.get("item_ids")
    return RawPatch(
        patch=Patch(reply.patch.edits, reply.patch.reasoning),
        source_type="success" if data.get("source_type") == "success" else "failure",
        batch_size=count_or_none(data.get("batch_size")) or 0,
        failure_summary=reply.failure_summary,
        item_ids=tuple(str(item) for item in ids) if isinstance(ids, (list, tuple)) else (),
    )


def _failure_summary(value: object) -> tuple[FailureSummaryEntry, ...]:
    rows = [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
    return tuple(
        FailureSummaryEntry(_text(row, "failure_type"), count_or_none(row.get("count")) or 0, _text(row, "description"))
        for row in cast("list[Mapping[str, Any]]", rows)
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return value.strip() if isinstance(value, str) else ""


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
