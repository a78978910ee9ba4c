"""The Responses API's shapes, both ways, checked against the types that OpenAI publishes in its package."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt import errors
from skillopt.model.classify import Where
from skillopt.model.responses_api import (
    build_payload,
    flat_tool,
    flat_tool_choice,
    needs_responses_api,
    parse_reply,
    reply_from,
    to_input,
)
from skillopt.model.transport_http import HttpAnswer
from skillopt.model.values import CallContext, CompatAssistantMessage, CompatToolCall, CompatToolFunction, ModelCall
from skillopt.testing import responses_body, role

ROLE = role("http://h/v1", backend="openai_chat", model="gpt-5-codex")
WHERE = Where("target", "gpt-5-codex", "http://h")
PNG = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}, "strict": True},
}
CALL = CompatToolCall("call_9", CompatToolFunction("weather", '{"city": "Köln"}'))
CONVERSATION = (
    {"role": "system", "content": "Be brief."},
    {"role": "system", "content": "Be kind."},
    {"role": "developer", "content": "Metric units."},
    {"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "image_url", "image_url": {"url": PNG}}]},
    CompatAssistantMessage("Let me look.", [CALL]).model_dump(),
    {"role": "tool", "tool_call_id": "call_9", "content": "12 °C"},
    {"role": "assistant", "content": "It is 12 °C."},
)
CTX = CallContext(60.0)


@pytest.mark.parametrize(
    ("model", "needed"),
    [
        ("gpt-5.3-codex", True),
        ("GPT-5-Codex-2026", True),
        ("codex-mini", True),
        ("codex-mini-latest", True),
        ("gpt-5.4-pro", True),
        ("gpt-5.4", False),
        ("gpt-5.4-protest", False),
        ("gpt-5-codexes", False),
        ("gpt-4o", False),
        ("", False),
    ],
)
def test_which_models_need_it(model: str, needed: bool) -> None:
    assert needs_responses_api(model) is needed


def test_a_whole_conversation() -> None:
    payload = build_payload(ModelCall(messages=CONVERSATION), ROLE, CTX)
    assert payload == {
        "model": "gpt-5-codex",
        "instructions": "Be brief.\n\nBe kind.",
        "max_output_tokens": 16384,
        "input": [
            {"role": "developer", "content": "Metric units."},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Where?"},
                    {"type": "input_image", "image_url": PNG, "detail": "auto"},
                ],
            },
            {"role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "call_9", "name": "weather", "arguments": '{"city": "Köln"}'},
            {"type": "function_call_output", "call_id": "call_9", "output": "12 °C"},
            {"role": "assistant", "content": "It is 12 °C."},
        ],
    }


def test_the_input_fits_the_published_types() -> None:
    from openai.types.responses import ResponseInputParam
    from pydantic import TypeAdapter

    TypeAdapter(ResponseInputParam).validate_python(to_input(CONVERSATION))


def test_an_assistant_message_without_text_is_its_calls_only() -> None:
    [item] = to_input([CompatAssistantMessage("", [CALL]).model_dump()])
    assert item["type"] == "function_call"
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert to_input([{"role": "assistant", "content": parts}]) == [{"role": "assistant", "content": "a\nb"}]
    assert to_input([{"role": "assistant", "content": None, "refusal": "No."}])[0]["content"] == "No."
    assert to_input([{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}])[0]["content"] == "No."


def test_what_has_no_form_is_refused_unsent() -> None:
    for message in (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "/home/me/x.png"}}]},
        {"role": "function", "content": "x"},
        {"role": "user", "content": 5},
    ):
        with pytest.raises(errors.BadRequestError):
            build_payload(ModelCall(messages=(message,)), ROLE, CTX)


def test_tools_are_flat_and_others_pass() -> None:
    assert flat_tool(WEATHER) == {
        "type": "function",
        "name": "weather",
        "description": "d",
        "parameters": {"type": "object"},
        "strict": True,
    }
    assert flat_tool({"type": "function", "function": {"name": "f"}}) == {"type": "function", "name": "f"}
    for other in ({"type": "web_search"}, {"type": "web_search_preview", "x": 1}, {"type": "function", "name": "flat"}):
        assert flat_tool(other) == other


@pytest.mark.parametrize(
    ("given_choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "weather"}}, {"type": "function", "name": "weather"}),
        ({"type": "function", "name": "weather"}, {"type": "function", "name": "weather"}),
        ({"type": "web_search"}, {"type": "web_search"}),
    ],
)
def test_tool_choice(given_choice: Any, sent: Any) -> None:
    assert flat_tool_choice(given_choice) == sent
    payload = build_payload(ModelCall(messages=CONVERSATION, tools=[WEATHER], tool_choice=given_choice), ROLE, CTX)
    assert payload["tool_choice"] == sent
    assert "tool_choice" not in build_payload(ModelCall(messages=CONVERSATION, tool_choice=given_choice), ROLE, CTX)


def test_effort_limit_and_temperature() -> None:
    call = ModelCall(messages=CONVERSATION, effort="low", max_completion_tokens=1000, temperature=0.0)
    payload = build_payload(call, replace(ROLE, effort="high"), replace(CTX, cap_factor=2))
    assert (payload["reasoning"], payload["max_output_tokens"], payload["temperature"]) == (
        {"effort": "low"},
        2000,
        0.0,
    )
    assert (
        build_payload(ModelCall(messages=CONVERSATION, max_completion_tokens=1), ROLE, CTX)["max_output_tokens"] == 16
    )
    assert build_payload(ModelCall(messages=CONVERSATION), replace(ROLE, effort="high"), CTX)["reasoning"] == {
        "effort": "high"
    }


def test_refused_parameters_are_left_out() -> None:
    call = ModelCall(messages=CONVERSATION, effort="low", temperature=0.5)
    dropped = frozenset({"reasoning_effort", "temperature", "max_output_tokens"})
    payload = build_payload(call, ROLE, replace(CTX, dropped=dropped))
    assert set(payload) == {"model", "instructions", "input"}


def answer(body: Any) -> HttpAnswer:
    return HttpAnswer(200, {}, body if isinstance(body, str) else json.dumps(body))


def test_a_reply_with_everything() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 140,
    }
    body = responses_body(
        "Looking.", tool_calls=[CALL.model_dump()], usage=usage, reasoning="Hmm.", model="gpt-5-codex-1"
    )
    reply = parse_reply(answer(body), WHERE)
    assert (reply.text, reply.finish_reason, reply.reasoning, reply.model) == (
        "Looking.",
        "tool_calls",
        "Hmm.",
        "gpt-5-codex-1",
    )
    assert reply.tool_calls == (CALL,)
    spent = reply.usage
    assert (spent.prompt_tokens, spent.completion_tokens, spent.cached_tokens, spent.reasoning_tokens, spent.known) == (
        100,
        40,
        60,
        30,
        True,
    )


def test_the_fakes_body_is_what_the_official_package_reads() -> None:
    from openai.types.responses import Response

    body = responses_body("Hi ", tool_calls=[CALL.model_dump()], reasoning="r")
    shell = {"created_at": 0, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    official = Response.model_validate({**body, **shell, "usage": None})
    assert official.output_text == reply_from(body).text == "Hi "


@pytest.mark.parametrize(
    ("finish", "text", "expected"),
    [
        ("stop", "x", "stop"),
        ("length", "x", "length"),
        ("content_filter", "", "content_filter"),
        ("refusal", "I will not.", "refusal"),
    ],
)
def test_why_it_ended(finish: str, text: str, expected: str) -> None:
    reply = reply_from(responses_body(text, finish=finish))
    assert (reply.text, reply.finish_reason) == (text, expected)


def test_parts_and_messages_are_joined_and_ids_have_fallbacks() -> None:
    body = responses_body()
    body["output"] = [
        {"type": "message", "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}]},
        {"type": "web_search_call", "id": "ws"},
        {"type": "message", "content": [{"type": "text", "text": "c"}]},
        {"type": "function_call", "id": "fc_1", "name": "f", "arguments": ""},
        {"type": "function_call", "name": "g", "input": {"a": 1}},
    ]
    reply = reply_from(body)
    assert reply.text == "abc"
    assert [(c.id, c.function.arguments) for c in reply.tool_calls] == [("fc_1", "{}"), ("call_4", '{"a": 1}')]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "rate_limit_exceeded", "message": "slow down"}, errors.RateLimitError),
        ({"code": "server_error", "message": "oops"}, errors.TransientError),
        ({"code": "invalid_prompt", "message": "no"}, errors.BadRequestError),
        ({"code": 429, "message": "gateway"}, errors.RateLimitError),
        (
            {"code": "context_length_exceeded", "message": "exceeds the context window of this model"},
            errors.ContextTooLongError,
        ),
    ],
)
def test_a_failed_reply_is_a_typed_error(error: dict[str, Any], kind: type[errors.ModelError]) -> None:
    with pytest.raises(kind):
        parse_reply(answer({"status": "failed", "error": error, "output": []}), WHERE)


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", "null", "{}", '{"output": 5}', '{"output": [{"type": "message", "content": [5]}]}']
)
def test_a_body_that_is_no_response_is_tried_again(body: str) -> None:
    with pytest.raises(errors.TransientError, match="without a response object"):
        parse_reply(answer(body), WHERE)


def test_a_response_that_is_not_finished_is_tried_again() -> None:
    with pytest.raises(errors.TransientError, match="in_progress"):
        parse_reply(answer({"status": "in_progress", "output": []}), WHERE)


TEXTS = st.text(min_size=1, max_size=30)
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda r, t: {"role": r, "content": t}, st.sampled_from(["system", "user", "assistant"]), TEXTS),
        st.builds(lambda ts: {"role": "user", "content": [{"type": "text", "text": t} for t in ts]}, st.lists(TEXTS)),
        st.builds(lambda t: {"role": "tool", "tool_call_id": "c", "content": t}, TEXTS),
        st.builds(
            lambda n, a: CompatAssistantMessage("", [CompatToolCall("c", CompatToolFunction(n, a))]).model_dump(),
            TEXTS,
            TEXTS.filter(str.strip).map(str.strip),
        ),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_no_text_is_lost_on_the_way_out(messages: list[dict[str, Any]]) -> None:
    payload = build_payload(ModelCall(messages=tuple(messages)), ROLE, CTX)
    sent = _strings([payload.get("instructions", ""), payload["input"]])
    for text in _strings([[m["content"], m.get("tool_calls")] for m in messages]):
        assert any(text in other for other in sent)


@given(TEXTS, st.lists(st.tuples(TEXTS, TEXTS.map(lambda t: json.dumps({"a": t}))), max_size=3))
def test_no_text_is_lost_on_the_way_back(text: str, calls: list[tuple[str, str]]) -> None:
    made = [CompatToolCall(f"id{n}", CompatToolFunction(*call)) for n, call in enumerate(calls)]
    reply = parse_reply(answer(responses_body(text, tool_calls=[call.model_dump() for call in made])), WHERE)
    assert reply.text == text and list(reply.tool_calls) == made


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, inner in value.items() if key not in ("type", "id", "role") for text in _strings(inner)]
    return [text for inner in value for text in _strings(inner)] if isinstance(value, list) else []
