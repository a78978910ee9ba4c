"""Small executables that play the command lines of coding agents, with the events that these print.

cli = fake_codex(tmp_path, "Paris")
session = Session({"optimizer": cli_role("codex_exec", cli, "optimizer")})
cli.calls[0].value("--cd"), cli.calls[0].stdin
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt.testing.cli import CliTurn, FakeCli, claude_result
from skillopt.types import JsonObject

CODEX_USAGE: Mapping[str, int] = {
    "input_tokens": 11,
    "cached_input_tokens": 3,
    "output_tokens": 5,
    "reasoning_output_tokens": 2,
}


def fake_codex(folder: Path, *replies: str | Mapping[str, Any], **faults: Any) -> FakeCli:
    """A fake `codex` that answers `replies` in order, the last one again and again; objects as JSON.

    `faults` shape every turn as in `codex_turn`.
    """
    return FakeCli(folder, "codex", [codex_turn(reply, **faults) for reply in replies or ("ok",)])


def codex_turn(reply: str | Mapping[str, Any] = "ok", **faults: Any) -> CliTurn:
    """One call of `codex exec --json`: its events, and `reply` in the last-message file.

    `faults`: fields of `CliTurn` (`stdout` replaces the events, `files` what is written), `usage` of the completed
    turn (None: none is told), and `error`: the turn fails with these words and exit code 1, and writes no file.
    """
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    usage, error = faults.pop("usage", CODEX_USAGE), faults.pop("error", "")
    if error:
        end = ({"type": "error", "message": error}, {"type": "turn.failed", "error": {"message": error}})
        return CliTurn(**{"stdout": _lines(*_CODEX_START, *end), "code": 1, **faults})
    told = {"usage": dict(usage)} if usage is not None else {}
    said = {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}}
    out = _lines(*_CODEX_START, said, {"type": "turn.completed", **told})
    return CliTurn(**{"stdout": out, "files": {"--output-last-message": text}, **faults})


def fake_copilot(folder: Path, *replies: str, **faults: Any) -> FakeCli:
    """A fake `copilot` that answers `replies` in order, the last one again and again.

    `faults` shape every turn as in `copilot_turn`.
    """
    return FakeCli(folder, "copilot", [copilot_turn(reply, **faults) for reply in replies or ("ok",)])


def copilot_turn(reply: str = "ok", **faults: Any) -> CliTurn:
    """One call of `copilot --output-format json`: its events with the assistant's message.

    `faults`: fields of `CliTurn` (`stdout` replaces the events), `heard`: the prompt that it repeats, and `error`: the
    session fails with these words, HTTP status `status_code` and exit code 1.
    """
    heard, error = faults.pop("heard", None), faults.pop("error", "")
    status_code = faults.pop("status_code", None)
    events: list[JsonObject] = [] if heard is None else [_event("user.message", content=heard)]
    if error:
        events.append(_event("session.error", errorType="query", message=error, statusCode=status_code))
        return CliTurn(**{"stdout": _lines(*events, {"type": "result", "exitCode": 1}), "code": 1, **faults})
    events.append(_event("assistant.message", content=reply, model="gpt-fake", toolRequests=[]))
    return CliTurn(**{"stdout": _lines(*events, {"type": "result", "exitCode": 0}), **faults})


def fake_claude_code(folder: Path, *replies: str, **faults: Any) -> FakeCli:
    """A fake `claude` that answers `replies` in order, the last one again and again.

    `faults`: fields of `CliTurn` (`stdout` replaces the whole output), and otherwise fields of the result event
    (`is_error`, `subtype`, `usage`, …).
    """
    turn_fields = _turn_fields(faults)
    turns = [CliTurn(**{"stdout": claude_result(reply, **faults), **turn_fields}) for reply in replies or ("ok",)]
    return FakeCli(folder, "claude", turns)


def fake_cursor(folder: Path, *replies: str, **faults: Any) -> FakeCli:
    """A fake `cursor-agent` that answers `replies` in order, the last one again and again.

    `faults` shape every turn as in `cursor_turn`.
    """
    return FakeCli(folder, "cursor-agent", [cursor_turn(reply, **faults) for reply in replies or ("ok",)])


def cursor_turn(reply: str = "ok", **faults: Any) -> CliTurn:
    """One call of `cursor-agent --output-format stream-json`: its events with one tool call and the result.

    `faults`: fields of `CliTurn` (`stdout` replaces the events), and otherwise fields of the result event; None leaves
    one out.
    """
    turn_fields = _turn_fields(faults)
    ends = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1200, "result": reply, **faults}
    read = {"readToolCall": {"args": {"path": "/private/task.md"}, "result": {"content": "private words"}}}
    events: tuple[JsonObject, ...] = (
        {"type": "system", "subtype": "init", "model": "composer-fake", "permissionMode": "default"},
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "hello"}]}},
        {"type": "tool_call", "subtype": "started", "call_id": "c1", "tool_call": read},
        {"type": "tool_call", "subtype": "completed", "call_id": "c1", "tool_call": read},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": reply}]}},
        {name: value for name, value in ends.items() if value is not None} | {"session_id": "cursor-session"},
    )
    return CliTurn(**{"stdout": _lines(*events), **turn_fields})


def _turn_fields(faults: dict[str, Any]) -> dict[str, Any]:
    """Take the fields of `CliTurn` out of `faults`."""
    return {name: faults.pop(name) for name in tuple(faults) if name in CliTurn.__dataclass_fields__}


_CODEX_START: tuple[JsonObject, ...] = (
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
    {"type": "turn.started"},
)


def _event(kind: str, **data: Any) -> JsonObject:
    return {"type": kind, "data": data}


def _lines(*events: JsonObject) -> str:
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
