"""What analysts and merges reply, as checked values.

An item that cannot be used is left out with the reason; a reply with none left is refused as a whole. What an item is
depends on the update mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from skillopt.errors import ReplyError
from skillopt.gradient.reply_items import count_or_none, read_reply_item
from skillopt.gradient.skill_aware import extract_appendix_notes
from skillopt.prompts.modes import PATCH, UpdateMode
from skillopt.types import FailureSummaryEntry, Patch, PatchItem, RawPatch


@dataclass(frozen=True, slots=True)
class PatchReply:
    """The usable items of a reply in their order, its reasoning, and why other items were left out."""

    edits: tuple[PatchItem, ...]
    reasoning: str = ""
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnalystReply:
    """A patch with the kinds of failure that the analyst saw (empty for an analyst of successes), and its notes."""

    patch: PatchReply
    failure_summary: tuple[FailureSummaryEntry, ...] = ()
    appendix_notes: tuple[str, ...] = ()


def parse_analyst(data: Mapping[str, Any], mode: UpdateMode = PATCH, *, takes_notes: bool = False) -> AnalystReply:
    """Read an analyst's object: `{"patch": {"edits": [...]}, ...}` or, without the wrapper, `{"edits": [...]}`.

    With `takes_notes`, a reply may hold `appendix_notes`, and needs no patch when it does. What it says about the
    size of its group is not looked at. Raises ReplyError (`wrong_shape`).
    """
    notes = extract_appendix_notes(data) if takes_notes else ()
    if notes and data.get("patch") is None and mode.payload_key not in data:
        return AnalystReply(PatchReply(()), _failure_summary(data.get("failure_summary")), notes)
    patch = data.get("patch", data)
    if not isinstance(patch, Mapping):
        key = mode.payload_key
        raise ReplyError(f'"patch" must be an object with a list "{key}", not {_kind(patch)}', "wrong_shape")
    return AnalystReply(parse_patch(patch, mode), _failure_summary(data.get("failure_summary")), notes)


def parse_patch(data: Mapping[str, Any], mode: UpdateMode = PATCH) -> PatchReply:
    """Read `{"reasoning": ..., "edits": [...]}`. Raises ReplyError (`wrong_shape`) naming what is wrong.

    An empty list is an answer (nothing to change); a list in which no item can be used is not.
    """
    key = mode.payload_key
    if key not in data:
        keys = ", ".join(sorted(repr(str(name)[:40]) for name in list(data)[:8])) or "none"
        raise ReplyError(f'the key "{key}" is missing; found {keys}', "wrong_shape")
    rows = data[key]
    if not isinstance(rows, list):
        raise ReplyError(f'"{key}" must be a list of objects, not {_kind(rows)}', "wrong_shape")
    items, dropped = _read_items(rows, mode)
    if rows and not items:
        raise ReplyError(f"no {mode.label} can be used: {'; '.join(dropped[:5])}", "wrong_shape")
    reasoning = data.get("reasoning")
    return PatchReply(tuple(items), reasoning if isinstance(reasoning, str) else "", tuple(dropped))


def _read_items(rows: Sequence[object], mode: UpdateMode) -> tuple[list[PatchItem], list[str]]:
    items: list[PatchItem] = []
    dropped: list[str] = []
    for index, row in enumerate(rows):
        item = read_reply_item(row, mode.item_type)
        if isinstance(item, str):
            dropped.append(f"{mode.payload_key}[{index}]: {item}")
        else:
            items.append(item)
    return items, dropped


def read_raw_patch(data: Mapping[str, Any], mode: UpdateMode = PATCH, *, takes_notes: bool = False) -> RawPatch:
    """The raw patch of an environment that reflects by itself, read as leniently as an analyst's reply.

    Keys: those of an analyst's reply, and `source_type`, `batch_size`, `item_ids`. A `batch_size` that is no count
    is left out. Raises ReplyError (`wrong_shape`).
    """
    reply = parse_analyst(data, mode, takes_notes=takes_notes)
    ids = data.get("item_ids")
    return RawPatch(
        patch=Patch(reply.patch.edits, reply.patch.reasoning),
        source_type="success" if data.get("source_type") == "success" else "failure",
        batch_size=count_or_none(data.get("batch_size")) or 0,
        failure_summary=reply.failure_summary,
        item_ids=tuple(str(item) for item in ids) if isinstance(ids, (list, tuple)) else (),
        appendix_notes=reply.appendix_notes,
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
