"""A Chat Completions body that came as a stream of events although nobody asked for one. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skillopt.types import JsonObject

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def decode_body(text: str) -> Any:
    """The JSON of a body; `data:` events of a stream are put together into the completion that they make up.

    Raises ValueError for what is neither and for a stream that breaks off; LookupError, TypeError or AttributeError for
    events of another shape.
    """
    start = text.lstrip()[:7]
    return _joined(text) if start.startswith(("data:", "event:", ":")) else json.loads(text)


def _joined(text: str) -> JsonObject:
    """One completion from all events. An event that is an error takes the place of everything."""
    whole: JsonObject = {}
    message: JsonObject = {"role": "assistant"}
    calls: dict[int, JsonObject] = {}
    finish = None
    for event in _events(text):
        if event.get("error"):
            return event
        whole.update({name: value for name, value in event.items() if name != "choices" and value is not None})
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            finish = choice.get("finish_reason") or finish
            _add(choice.get("delta") or choice.get("message") or {}, message, calls)
    if finish is None and "[DONE]" not in text:
        raise ValueError("the stream breaks off")
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {**whole, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _events(text: str) -> Iterator[JsonObject]:
    for line in text.splitlines():
        data = line[5:].strip() if line.startswith("data:") else ""
        if data and data != "[DONE]":
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


def _add(delta: JsonObject, message: JsonObject, calls: dict[int, JsonObject]) -> None:
    """Add what one event brings to the message and to its tool calls."""
    for name in _TEXTS:
        if isinstance(delta.get(name), str):
            message[name] = message.get(name, "") + delta[name]
    for part in delta.get("tool_calls") or ():
        call = calls.setdefault(int(part.get("index") or 0), {"type": "function", "function": {}})
        call["id"] = part.get("id") or call.get("id")
        for name, value in (part.get("function") or {}).items():
            call["function"][name] = call["function"].get(name, "") + (value or "")
