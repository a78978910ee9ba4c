"""Result rows of custom environments: read, checked, and joined with the trajectory files beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillopt.envs.base import is_unit_value
from skillopt.errors import DataError
from skillopt.types import RolloutResult, Usage
from skillopt.utils.files import safe_name
from skillopt.utils.invisible import replace_surrogates

_LONGEST_NAME = 255  # bytes; what file systems take
_TEXT_FIELDS = (
    "error",
    "fail_reason",
    "task_type",
    "task_description",
    "predicted_answer",
    "question",
    "reference_text",
    "target_system_prompt",
    "target_user_prompt",
    "spreadsheet_preview",
)
_ALIASES = {"task_type": "instruction_type", "task_description": "instruction", "predicted_answer": "answer"}
_FILES = {
    "target_system_prompt": "target_system_prompt.txt",
    "target_user_prompt": "target_user_prompt.txt",
    "spreadsheet_preview": "spreadsheet_preview.txt",
    "codex_trace_summary": "codex_trace_summary.txt",
}


def error_result(item_id: str, reason: str) -> RolloutResult:
    """The result of an item that has no score, with the reason in words."""
    return RolloutResult(id=item_id, status="error", error=reason)


def plain(result: RolloutResult) -> RolloutResult:
    """A result as it comes back from the store: JSON values only, so that fresh and stored results are the same.

    Numbers that JSON lacks (NaN, infinities) become None, and halves of surrogate pairs, which no file and no request
    can hold, U+FFFD. A result that JSON cannot hold at all becomes an error.
    """
    try:
        text = replace_surrogates(json.dumps(result.to_dict(), default=str, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        return error_result(result.id, f"item {result.id!r} is ungraded: its result cannot be kept as JSON ({error})")
    return RolloutResult.from_dict(json.loads(text, parse_constant=lambda _: None))


def checked(result: object, item_id: str) -> RolloutResult:
    """The result of an environment's `run_item`, as an error when it is of another item or has no usable score."""
    if not isinstance(result, RolloutResult):
        return error_result(item_id, f"item {item_id!r} is ungraded: run_item returned {type(result).__name__}")
    if result.id != item_id:
        return error_result(item_id, f"item {item_id!r} is ungraded: run_item returned a result for {result.id!r}")
    reason = _no_score(result.id, result.hard, result.soft) if result.ok else ""
    return replace(result, status="error", error=reason, hard=0.0, soft=0.0) if reason else result


def result_from_row(row: object) -> RolloutResult:
    """A custom environment's result (dict, RolloutResult, or an object with `to_dict`) as a checked value.

    A row without a usable score is an error. Raises DataError for a row that is no mapping or has no id.
    """
    data = _as_mapping(row)
    fields = dict(data)
    for name, alias in _ALIASES.items():
        if fields.get(name) in (None, ""):
            fields[name] = data.get(alias)
    for name in _TEXT_FIELDS:
        fields[name] = _text(fields.get(name))
    fields["n_turns"] = data["n_turns"] if isinstance(data.get("n_turns"), int) else 0
    fields["trajectory"] = _entries(data.get("trajectory"))
    fields["usage"] = data["usage"] if isinstance(data.get("usage"), (Usage, Mapping)) else None
    fields["extras"] = data["extras"] if isinstance(data.get("extras"), Mapping) else None
    reason = _why_error(data)
    fields["status"] = "error" if reason else "ok"
    fields["error"] = reason
    fields["hard"], fields["soft"] = (0.0, 0.0) if reason else (_number(data, "hard"), _number(data, "soft"))
    return RolloutResult.from_dict(fields)


def with_prediction_files(result: RolloutResult, out_dir: Path) -> RolloutResult:
    """The result with what `predictions/<id>/` holds of it, where the row itself says nothing."""
    folder = prediction_folder(out_dir, result.id)
    if folder is None:
        return result
    changes: dict[str, Any] = {}
    if not result.trajectory:
        changes["trajectory"] = _conversation(folder / "conversation.json")
    extras = dict(result.extras)
    for name, file in _FILES.items():
        path = folder / file
        known = extras.get(name) if name == "codex_trace_summary" else getattr(result, name)
        if known or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if name == "codex_trace_summary":
            extras[name] = text
        else:
            changes[name] = text
    return replace(result, extras=extras, **changes)


def prediction_folder(out_dir: Path, item_id: str) -> Path | None:
    """The folder in which an environment left the files of an item, or None. Never outside `out_dir`."""
    root = out_dir / "predictions"
    for name in dict.fromkeys((item_id, safe_name(item_id))):
        if not name or "\0" in name or len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
            continue
        folder = root / name
        inside = folder.resolve().is_relative_to(root.resolve()) and folder.resolve() != root.resolve()
        if inside and folder.is_dir():
            return folder
    return None


def _as_mapping(row: object) -> Mapping[str, Any]:
    data = row
    if not isinstance(row, Mapping):
        to_dict = getattr(row, "to_dict", None)
        data = to_dict() if callable(to_dict) else None
    if not isinstance(data, Mapping):
        raise DataError(f"The environment's rollout returned a {type(row).__name__}, not a result dict.")
    if data.get("id") in (None, ""):
        raise DataError("The environment's rollout returned a result without an id; each needs the id of its item.")
    return data


def _why_error(data: Mapping[str, Any]) -> str:
    item_id = str(data["id"])
    stated = _text(data.get("error"))
    if data.get("agent_ok") is False or data.get("status") == "error" or stated:
        return stated or _text(data.get("fail_reason")) or "the environment reported an error without a reason"
    return _no_score(item_id, data.get("hard", 0.0), data.get("soft", 0.0))


def _no_score(item_id: str, hard: object, soft: object) -> str:
    for name, value in (("hard", hard), ("soft", soft)):
        if not is_unit_value(value):
            return f"item {item_id!r} is ungraded: {name} is {value!r}, not a number in 0..1"
    return ""


def _number(data: Mapping[str, Any], name: str) -> float:
    return float(data.get(name, 0.0))


def _text(value: object) -> str:
    if value is None or value is False:
        return ""
    return value if isinstance(value, str) else str(value)


def _conversation(path: Path) -> tuple[Mapping[str, Any], ...]:
    try:
        return _entries(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return ()


def _entries(value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(e if isinstance(e, Mapping) else {"role": "agent", "content": str(e)} for e in value)
