"""The helpers of `skillopt.model.common`."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from skillopt.model import common

USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, dict.fromkeys(USAGE, 0)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, USAGE),
        (SimpleNamespace(prompt_tokens=3, completion_tokens=4, total_tokens=None), USAGE),
        (SimpleNamespace(prompt_tokens=3, completion_tokens=4, total_tokens=9), {**USAGE, "total_tokens": 9}),
        ({"prompt_tokens": 3}, {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}),
    ],
)
def test_usage_of_chat_completions(given: Any, expected: dict[str, int]) -> None:
    assert common.usage_from_openai_usage(given) == expected


def test_usage_of_responses() -> None:
    details = SimpleNamespace(cached_tokens=1)
    for given in ({"input_tokens": 3, "output_tokens": 4}, SimpleNamespace(input_tokens=3, output_tokens=4, d=details)):
        assert common.usage_from_responses_usage(given) == USAGE


@pytest.mark.parametrize("arguments", [None, "", " "])
def test_chat_messages(arguments: str | None) -> None:
    function = SimpleNamespace(name="f", arguments=arguments)
    message = SimpleNamespace(content=None, tool_calls=[SimpleNamespace(id="t", type="function", function=function)])
    plain = {"content": None, "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": arguments}}]}
    for given in (message, plain):
        compat = common.compat_message_from_chat_message(given)
        call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        assert compat.model_dump() == {"role": "assistant", "content": "", "tool_calls": [call]}
        assert compat.tool_calls[0].model_dump(mode="json") == call
    assert common.compat_message_from_chat_message({"content": "hi"}).model_dump() == {
        **{"role": "assistant", "content": "hi"}
    }


class _Sdk:
    """An object as an SDK makes it."""

    def __init__(self, **data: Any) -> None:
        self.data = data

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        assert mode == "json"
        return self.data


@pytest.mark.parametrize("make", [dict, SimpleNamespace, _Sdk])
def test_output_of_responses(make: Any) -> None:
    items = [
        make(type="reasoning", summary=[]),
        make(type="message", content=[{"type": "output_text", "text": "a"}, {"type": "text", "text": "b"}]),
        make(type="message", content=[{"type": "output_text", "text": "c"}]),
        make(type="function_call", call_id="c1", id="i1", name="f", arguments='{"x": 1}'),
        make(type="function_call", id="i2", name="g", input={"y": "ü"}),
    ]
    message = common.compat_message_from_responses_output(items)
    assert message.content == "abc"
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == [
        ("c1", "f", '{"x": 1}'),
        ("i2", "g", '{"y": "ü"}'),
    ]


def test_responses_only_models() -> None:
    assert common.needs_responses_api("GPT-5-Codex")
    assert common.needs_responses_api("codex-mini-latest")
    assert not common.needs_responses_api("gpt-5")
    assert not common.needs_responses_api("gpt-5-codexish")


def test_names_and_models() -> None:
    assert common.normalize_backend_name("GitHub-Copilot") == "copilot_chat"
    assert common.default_model_for_backend("minimax") == "MiniMax-M3"


def test_counting() -> None:
    assert [common.count_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    assert common.count_tokens("abcde", model="gpt-4o") == 2


def test_tracker_counts_from_many_threads() -> None:
    tracker = common.TokenTracker()

    def work() -> None:
        for _ in range(200):
            tracker.record("b", 1, 2)
            tracker.record("a", 1, 0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    summary = tracker.summary()
    assert list(summary) == ["a", "b", "_total"]
    assert summary["b"] == {"calls": 800, "prompt_tokens": 800, "completion_tokens": 1600, "total_tokens": 2400}
    assert summary["_total"]["calls"] == 1600
    tracker.reset()
    assert tracker.summary() == {"_total": dict.fromkeys(summary["a"], 0)}
