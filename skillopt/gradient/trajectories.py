"""Trajectories as text for an analyst: what the agent was asked, what it did, how it ended.

Pure rendering, apart from `load_trajectory`, which reads the conversation files that some environments write instead
of returning the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillopt.errors import SkillOptError
from skillopt.prompts.fence import fence
from skillopt.prompts.tokens import shorten_middle
from skillopt.types import RolloutResult
from skillopt.utils.files import read_text, safe_name

TRAJECTORY_TOKENS = 6000
"""What one trajectory may take in a prompt, by default."""

GROUP_TOKENS = 64_000
"""What all trajectories of a group may take together; in a large group each has an equal share of it."""

_RULE = "\n\n---\n\n"
_CUT_OFF = "[note] the last answer was cut off by the limit on its length"
_TEXT_FILES = ("target_system_prompt", "target_user_prompt", "spreadsheet_preview")
_TRACE_SUMMARY = "codex_trace_summary"
_TRACE_STEPS = "codex_probe_trace_steps"


def fmt_trajectory(entries: Iterable[Any]) -> str:
    """The entries of a conversation, each as one or more lines that begin with `[who]`."""
    return "\n".join(line for entry in entries for line in _lines(entry))


def _lines(entry: object) -> list[str]:
    if not isinstance(entry, Mapping):
        return [f"[agent] {entry}"]
    if entry.get("type") == "tool_call" and "cmd" in entry and "obs" in entry:
        return [f"[action] {entry['cmd']}", f"[obs]    {entry['obs']}"]
    if "action" in entry and "env_feedback" in entry:
        step = f"step {entry.get('step', '?')}"
        thought = [f"[{step} think] {entry['reasoning']}"] if entry.get("reasoning") else []
        return [*thought, f"[{step} action] {entry['action']}", f"[{step} obs] {entry['env_feedback']}"]
    role = entry.get("role") or "agent"
    content = entry.get("content")
    return [f"[{'verification' if role == 'system' else role}] {'' if content is None else content}"]


def fmt_result(result: RolloutResult, number: int) -> str:
    """One trajectory with its header and whatever else is known about it, not yet fenced."""
    return "\n\n".join([_header(result, number), *_extras(result), _conversation(result)])


def _header(result: RolloutResult, number: int) -> str:
    task_type = result.task_type or str(result.extras.get("instruction_type") or "")
    task = result.task_description or str(result.extras.get("instruction") or "") or result.question
    rows = [
        ("Trajectory", str(number)),
        ("Id", result.id),
        ("Task", task),
        ("Task type", task_type),
        ("Score", f"hard {result.hard:g}, soft {result.soft:g}"),
        ("Failure reason", str(result.fail_reason or "")),
        ("Steps", str(result.n_turns) if result.n_turns else ""),
    ]
    return "\n".join(f"{name}: {value}" for name, value in rows if value)


def _extras(result: RolloutResult) -> list[str]:
    steps = result.extras.get(_TRACE_STEPS)
    parts = [
        ("Hidden reference (the agent never saw it)", result.reference_text),
        ("System prompt of the agent", result.target_system_prompt),
        ("User prompt of the agent", result.target_user_prompt),
        ("Trace summary", str(result.extras.get(_TRACE_SUMMARY) or "")),
        ("Trace steps", json.dumps(steps, ensure_ascii=False, default=str) if steps else ""),
        ("Spreadsheet preview", result.spreadsheet_preview),
    ]
    return [f"{title}:\n{text}" for title, text in parts if text]


def _conversation(result: RolloutResult) -> str:
    text = "Conversation:\n" + fmt_trajectory(result.trajectory)
    return f"{text}\n{_CUT_OFF}" if result.extras.get("finish_reason") == "length" else text


def fmt_minibatch_trajectories(results: Sequence[RolloutResult], *, max_tokens: int = TRAJECTORY_TOKENS) -> str:
    """A group of trajectories, numbered from 1, fenced as data.

    Each is shortened in its middle to `max_tokens`, or to its share of `GROUP_TOKENS` if that is less.
    """
    share = min(max_tokens, GROUP_TOKENS // max(1, len(results)))
    blocks = (fence(_within(result, number, share), "trajectory") for number, result in enumerate(results, 1))
    return _RULE.join(blocks)


def _within(result: RolloutResult, number: int, max_tokens: int) -> str:
    return shorten_middle(fmt_result(result, number), max_tokens)


def load_trajectory(result: RolloutResult, prediction_dir: Path | None) -> RolloutResult:
    """The result with its conversation, read from `<prediction_dir>/<id>/conversation.json` if it carries none.

    The texts beside that file (prompts, previews) fill fields that are empty. A result whose file is missing, broken
    or outside the folder comes back without a trajectory.
    """
    if result.trajectory or prediction_dir is None:
        return result
    folder = _folder(result.id, prediction_dir)
    entries = _read_entries(folder / "conversation.json") if folder else ()
    if folder is None or not entries:
        return result
    texts: dict[str, Any] = {
        name: _read_if_there(folder / f"{name}.txt") for name in _TEXT_FILES if not getattr(result, name)
    }
    extras = dict(result.extras)
    summary = _read_if_there(folder / f"{_TRACE_SUMMARY}.txt")
    if summary and not extras.get(_TRACE_SUMMARY):
        extras[_TRACE_SUMMARY] = summary
    return replace(result, trajectory=entries, extras=extras, **texts)


def _folder(item_id: str, prediction_dir: Path) -> Path | None:
    root = prediction_dir.resolve()
    for name in (safe_name(item_id), item_id):
        folder = (root / name).resolve()
        if folder != root and folder.is_relative_to(root) and folder.is_dir():
            return folder
    return None


def _read_entries(path: Path) -> tuple[Any, ...]:
    try:
        value = json.loads(read_text(path))
    except (SkillOptError, OSError, ValueError, RecursionError):
        return ()
    return tuple(value) if isinstance(value, list) else ()


def _read_if_there(path: Path) -> str:
    try:
        return read_text(path)
    except (SkillOptError, OSError):
        return ""
