"""The trace of a Codex run: events as text, the text as steps, the steps in short.

A trace is lines of text; a line that is exactly `user`, `codex` or `exec` begins a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from skillopt.model.cli_chat import json_events
from skillopt.types import JsonObject

STEP_KINDS = ("user", "codex", "exec")
_STEP_CHARS = 500
_SHORT_STEPS = 2500
_ERROR_LINES = 3
_LETTER = re.compile(r"<answer>\s*([A-Ea-e])\s*</answer>")
_TAGGED = re.compile(r"<answer>.*?</answer>", re.DOTALL | re.IGNORECASE)
_TOKENS = re.compile(r"^tokens used\n([\d,]+)$", re.MULTILINE)


def events_as_text(output: str) -> str:
    """The events that `codex exec --json` prints as a trace; what is no event stays as it is."""
    events = json_events(output)
    if not events:
        return output
    return "\n".join(block for event in events if (block := _block(event)))


def parse_codex_raw(raw: str) -> dict[str, Any]:
    """`{steps: [{index, type, start_line, end_line, content}], trace_body}`; index and lines count from 1.

    `trace_body` is everything from the first step on.
    """
    lines = raw.splitlines()
    starts = [number for number, line in enumerate(lines) if line in STEP_KINDS]
    ends = [*starts[1:], len(lines)][: len(starts)]
    steps = [
        {
            "index": index,
            "type": lines[start],
            "start_line": start + 1,
            "end_line": end,
            "content": "\n".join(lines[start + 1 : end]).strip(),
        }
        for index, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    ]
    return {"steps": steps, "trace_body": "\n".join(lines[starts[0] :]) if starts else ""}


def format_codex_trace_steps(raw: str, max_chars: int = 4000) -> str:
    """A line `[n] type: summary` for each step, at most `max_chars` characters in all."""
    lines = [f"[{step['index']}] {step['type']}: {_step_summary(step)}" for step in parse_codex_raw(raw)["steps"]]
    text = "\n".join(lines)
    return text if len(text) <= max_chars else text[: max(0, max_chars - 1)].rstrip() + "…"


def extract_codex_trace_prefix(raw: str, *, after_step: int) -> str:
    """The trace from its first step to the end of step `after_step`."""
    lines = raw.splitlines()
    steps = [step for step in parse_codex_raw(raw)["steps"] if step["index"] <= after_step]
    return "\n".join(lines[steps[0]["start_line"] - 1 : steps[-1]["end_line"]]) if steps else ""


def summarize(trace: str, answer: str, settings: Mapping[str, str]) -> str:
    """A trace in short, for whoever looks for what the skill should say: what was read, what failed, each step."""
    trace = trace.partition("\n[stderr]\n")[0]
    commands = [step["content"] for step in parse_codex_raw(trace)["steps"] if step["type"] == "exec"]
    read = {name: any(name in command for command in commands) for name in ("task.md", "SKILL.md")}
    errors = [line for line in trace.splitlines() if line.startswith("ERROR:")][:_ERROR_LINES]
    letter, tokens = _LETTER.search(answer), _TOKENS.findall(trace)
    rows = [
        *settings.items(),
        *((f"read {name}", "yes" if done else "no") for name, done in read.items()),
        *(("error", line.removeprefix("ERROR:").strip()) for line in errors),
        ("answer format", _answer_format(answer)),
        *([("answer label", letter[1].upper())] if letter else []),
        *([("tokens used", tokens[-1])] if tokens else []),
    ]
    steps = format_codex_trace_steps(_TOKENS.sub("", trace), _SHORT_STEPS)
    return "\n".join([*(f"{name}: {value}" for name, value in rows), *(["steps:", steps] if steps else [])])


def _answer_format(answer: str) -> str:
    if not answer.strip():
        return "missing"
    if _LETTER.search(answer):
        return "well_formed"
    return "tagged_nonlabel" if _TAGGED.search(answer) else "plain_text"


def _step_summary(step: Mapping[str, Any]) -> str:
    lines = str(step["content"]).splitlines()
    text = " | ".join(lines[:2]) if step["type"] == "exec" else " ".join(" ".join(lines).split())
    return text if len(text) <= _STEP_CHARS else text[: _STEP_CHARS - 1] + "…"


def _block(event: JsonObject) -> str:
    """One event as lines; blank for one that says nothing."""
    kind, item = event.get("type"), event.get("item")
    if kind == "item.completed" and isinstance(item, Mapping):
        return _item_block(item)
    if kind == "turn.completed" and isinstance(event.get("usage"), Mapping):
        counts = (event["usage"].get(name) for name in ("input_tokens", "output_tokens"))
        return f"tokens used\n{sum(count for count in counts if isinstance(count, int)):,}"
    if kind in ("error", "turn.failed"):
        error = event.get("error")
        words = error.get("message") if isinstance(error, Mapping) else event.get("message")
        return f"ERROR: {' '.join(str(words or kind).split())}"
    return ""


def _item_block(item: Mapping[str, Any]) -> str:
    kind = item.get("type")
    if kind == "agent_message":
        return _step("codex", [str(item.get("text") or "")])
    if kind == "reasoning":
        return _step("codex", [f"(thinking) {item.get('text') or ''}"])
    if kind == "command_execution":
        status = "succeeded" if item.get("exit_code") == 0 else f"exited {item.get('exit_code')}"
        return _step("exec", [" ".join(str(item.get("command")).split()), status, str(item.get("aggregated_output"))])
    if kind == "error":
        return f"ERROR: {' '.join(str(item.get('message')).split())}"
    details = " ".join(f"{key}={value}" for key, value in item.items() if key not in ("id", "type", "status"))
    return _step("exec", [f"{kind} {details}".strip(), str(item.get("status") or "done")])


def _step(kind: str, texts: Iterable[str]) -> str:
    """A step whose lines cannot be taken for the beginning of another one."""
    lines = [line for text in texts for line in text.splitlines()]
    return "\n".join([kind, *(f" {line}" if line in STEP_KINDS else line for line in lines)])
