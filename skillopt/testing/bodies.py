"""Bodies of replies as providers send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillopt.types import JsonObject

_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


def chat_completion(
    text: str | None,
    *,
    finish_reason: str = "stop",
    model: str = "loopback",
    usage: Mapping[str, Any] | None = None,
    **message: Any,
) -> JsonObject:
    """A Chat Completions body. Further keywords (`reasoning_content`, `tool_calls`, `refusal`) go into the message."""
    counts = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} if usage is None else dict(usage)
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": counts,
    }


def responses_body(
    text: str = "",
    *,
    tool_calls: Sequence[Mapping[str, Any]] = (),
    finish: str = "stop",
    model: str = "loopback",
    usage: Mapping[str, Any] | None = None,
    reasoning: str = "",
) -> JsonObject:
    """A body of the Responses API.

    `tool_calls` have the shape of Chat Completions. `finish`: `stop`, `length`, `content_filter`, or `refusal`, which
    makes the text one. `reasoning`: text of a reasoning summary.
    """
    counts = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15} if usage is None else dict(usage)
    cut = _CUT.get(finish)
    return {
        "id": "resp_loopback",
        "object": "response",
        "model": model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": cut} if cut else None,
        "error": None,
        "output": _output(text, tool_calls, refused=finish == "refusal", reasoning=reasoning),
        "usage": counts,
    }


def _output(text: str, tool_calls: Sequence[Mapping[str, Any]], *, refused: bool, reasoning: str) -> list[JsonObject]:
    part = {"type": "refusal", "refusal": text} if refused else {"type": "output_text", "text": text, "annotations": []}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": reasoning}]}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    calls = [_function_call(call, number) for number, call in enumerate(tool_calls, 1)]
    return [*([thought] if reasoning else []), *([said] if text else []), *calls]


def _function_call(call: Mapping[str, Any], number: int) -> JsonObject:
    function = call.get("function") or {}
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": call.get("id") or f"call_{number}",
        "name": function.get("name"),
        "arguments": function.get("arguments", "{}"),
        "status": "completed",
    }
