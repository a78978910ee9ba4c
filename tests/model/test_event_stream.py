"""Streams of events put together."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.model.event_stream import decode_body


def stream(*events: Any, done: bool = True) -> str:
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")


def part(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def test_a_body_that_is_no_stream_is_json() -> None:
    assert decode_body(' {"a": [1]}') == {"a": [1]}
    with pytest.raises(ValueError, match="Expecting value"):
        decode_body("<html>")


@given(st.lists(st.text(max_size=8), max_size=8))
def test_texts_are_joined(pieces: list[str]) -> None:
    data = decode_body(stream(*(part(content=piece) for piece in pieces)))
    assert data["choices"][0]["message"].get("content", "") == "".join(pieces)


def test_thinking_tool_calls_usage_model_and_finish() -> None:
    first = {"index": 0, "id": "c1", "function": {"name": "find", "arguments": '{"q"'}}
    rest = [{"index": 0, "function": {"arguments": ': "x"}'}}, {"index": 1, "id": "c2", "function": {"name": "stop"}}]
    data = decode_body(
        ": ping\nevent: message\n"
        + stream(
            {"model": "m", "id": "1", "choices": []},
            part(role="assistant", reasoning_content="hm"),
            part(tool_calls=[first]),
            part(tool_calls=rest),
            {
                "choices": [
                    {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
                    {"index": 1, "delta": {"content": "no"}},
                ]
            },
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        )
    )
    (choice,) = data["choices"]
    assert (data["model"], data["usage"]["prompt_tokens"], choice["finish_reason"]) == ("m", 3, "tool_calls")
    message = choice["message"]
    assert (message["reasoning_content"], "content" in message) == ("hm", False)
    assert [(call["id"], call["function"]) for call in message["tool_calls"]] == [
        ("c1", {"name": "find", "arguments": '{"q": "x"}'}),
        ("c2", {"name": "stop"}),
    ]


def test_an_error_in_it_takes_the_place_of_everything() -> None:
    error = {"error": {"code": 429, "message": "slow down"}}
    assert decode_body(stream(part(content="a"), error)) == error


@pytest.mark.parametrize("text", [stream(part(content="a"), done=False), "data: {", "data: \n"])
def test_one_that_breaks_off_is_nothing(text: str) -> None:
    with pytest.raises(ValueError):
        decode_body(text)


@given(st.text(max_size=200))
def test_anything_gives_a_value_or_an_error_of_reading(text: str) -> None:
    with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
        decode_body("data: " + text)
