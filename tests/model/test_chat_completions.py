"""Building requests, sending them, reading replies: what all Chat Completions backends share."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from skillopt import errors
from skillopt import model as models
from skillopt.config.resolve import resolve
from skillopt.model.backends import openai_compatible
from skillopt.model.chat_completions import Dialect, build_payload, completions_url, parse_reply, post_json, token_cap
from skillopt.model.chat_reply import TOOL_PARSER_OFF
from skillopt.model.classify import Where
from skillopt.model.session import Session
from skillopt.model.transport_http import HttpAnswer
from skillopt.model.values import CallContext, ModelCall
from skillopt.testing import LoopbackServer, chat_completion, garbage, role

HELLO = ModelCall(messages=({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße 東京"}))
PLAIN = Dialect()
WHERE = Where("target", "m", "http://h")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Look it up",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
        },
    }
]


def payload_of(call: ModelCall = HELLO, dialect: Dialect = PLAIN, **more: Any) -> dict[str, Any]:
    return build_payload(call, role("http://h", **more), dialect)


def read(body: dict[str, Any], dialect: Dialect = PLAIN, call: ModelCall | None = None):
    return parse_reply(HttpAnswer(200, {}, json.dumps(body)), WHERE, dialect, call)


# --- address ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "http://h:9/v1/chat/completions",
        "http://h:9/v1/",
        "http://h:9",
        " http://h:9/v1 ",
        "http://h:9/",
        "HTTP://h:9/v1",
        "http://h:9/v1/chat/completions/",
    ],
)
def test_base_url_variants_mean_one_address(given: str) -> None:  # C140
    assert completions_url(given).lower() == "http://h:9/v1/chat/completions"


def test_base_url_keeps_path_and_query() -> None:
    assert completions_url("https://h/openai/v3") == "https://h/openai/v3/chat/completions"
    assert completions_url("https://h/v1?api-version=2") == "https://h/v1/chat/completions?api-version=2"


@pytest.mark.parametrize("given", ["", "h:9/v1", "ftp://h/v1", "http://", "http://a b/v1"])
def test_an_address_that_is_none_is_refused_with_the_form_expected(given: str) -> None:
    with pytest.raises(errors.ModelSetupError, match="http://host:8000/v1"):
        completions_url(given)


# --- request ---------------------------------------------------------------------------------------------------------


def test_payload_takes_the_smaller_limit_and_what_is_configured() -> None:
    payload = payload_of(
        replace(HELLO, tools=TOOLS, tool_choice="auto", model="other"), max_tokens=100, temperature=0.5
    )
    assert (payload["max_tokens"], payload["temperature"], payload["model"]) == (100, 0.5, "other")
    assert (payload["tools"], payload["tool_choice"]) == (TOOLS, "auto")
    assert payload_of(replace(HELLO, max_completion_tokens=7), max_tokens=100)["max_tokens"] == 7
    assert payload_of(replace(HELLO, temperature=0.0), temperature=0.5)["temperature"] == 0.0
    assert "tool_choice" not in payload_of(replace(HELLO, tool_choice="auto"))


def test_dropped_parameters_are_not_sent() -> None:  # C137
    settings = role("http://h", temperature=0.5)
    assert "temperature" not in build_payload(HELLO, settings, PLAIN, frozenset({"temperature"}))
    renamed = build_payload(HELLO, settings, PLAIN, frozenset({"max_tokens"}))
    assert "max_tokens" not in renamed and renamed["max_completion_tokens"] == 16384
    back = build_payload(
        HELLO, settings, Dialect(cap_field="max_completion_tokens"), frozenset({"max_completion_tokens"})
    )
    assert "max_completion_tokens" not in back and back["max_tokens"] == 16384
    neither = build_payload(HELLO, settings, PLAIN, frozenset({"max_tokens", "max_completion_tokens"}))
    assert not {"max_tokens", "max_completion_tokens"} & set(neither)


@pytest.mark.parametrize(
    ("asked", "setting", "factor", "expected"),
    [
        (16384, None, 1, 16384),
        (16384, 8000, 1, 8000),
        (16384, 8000, 2, 16000),
        (64000, None, 2, 65536),
        (100_000, None, 2, 100_000),
        (50, 8000, 4, 200),
    ],
)
def test_limits_are_widened_together(asked: int, setting: int | None, factor: int, expected: int) -> None:
    call = replace(HELLO, max_completion_tokens=asked)
    assert token_cap(call, role("http://h", max_tokens=setting), factor) == expected
    assert build_payload(call, role("http://h", max_tokens=setting), PLAIN, cap_factor=factor)["max_tokens"] == expected


def test_effort_goes_out_where_the_dialect_has_it() -> None:
    sends = Dialect(sends_effort=True)
    own = replace(role("http://h"), effort="high")
    assert build_payload(HELLO, own, sends)["reasoning_effort"] == "high"
    assert build_payload(replace(HELLO, effort="low"), own, sends)["reasoning_effort"] == "low"
    assert "reasoning_effort" not in build_payload(HELLO, role("http://h"), sends)
    assert "reasoning_effort" not in build_payload(HELLO, own, PLAIN)
    assert "reasoning_effort" not in build_payload(HELLO, own, sends, frozenset({"reasoning_effort"}))


@pytest.mark.parametrize(
    ("header", "sent"), [("Authorization", {"Authorization": "Bearer k-1"}), ("api-key", {"api-key": "k-1"})]
)
def test_the_key_goes_into_the_header_that_is_asked_for(header: str, sent: dict[str, str]) -> None:
    with LoopbackServer("hi") as server:
        context = CallContext(60.0)
        url = completions_url(server.url)
        answer, _ = post_json(url, {"messages": []}, server.role(), context, key="k-1", key_header=header)
        post_json(url, {"messages": []}, server.role(), context, key="", key_header=header)
    keys = [{n: v for n, v in r.headers.items() if n in ("Authorization", "api-key")} for r in server.requests]
    assert keys == [sent, {}]
    assert answer.status == 200


def test_one_pool_keeps_keys_and_headers_apart() -> None:
    with LoopbackServer("hi") as server:
        context = CallContext(60.0)
        for key, header in (("a", "api-key"), ("a", "Authorization"), ("b", "api-key")):
            post_json(completions_url(server.url), {}, server.role(), context, key=key, key_header=header)
    assert [(r.headers.get("api-key"), r.headers.get("Authorization")) for r in server.requests] == [
        ("a", None),
        (None, "Bearer a"),
        ("b", None),
    ]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_a_request_that_is_no_json_is_refused_unsent(value: object) -> None:
    with LoopbackServer("hi") as server, pytest.raises(errors.BadRequestError, match="written as JSON"):
        call = replace(HELLO, tools=[{"function": {"parameters": value}}])
        openai_compatible.complete(call, server.role(), CallContext(60.0))
    assert not server.requests


def test_images_pass_through_and_other_parts_are_refused_unsent() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    content = [{"type": "text", "text": "What is this?"}, image]
    with LoopbackServer("a cat") as server:
        call = ModelCall(messages=({"role": "user", "content": content},))
        assert openai_compatible.complete(call, server.role(), CallContext(60.0)).text == "a cat"
        with pytest.raises(errors.BadRequestError, match="message 1 has a part of type 'input_audio'"):
            bad = ModelCall(messages=({"role": "user", "content": [{"type": "input_audio"}]},))
            openai_compatible.complete(bad, server.role(), CallContext(60.0))
    assert [r.body["messages"] for r in server.requests] == [[{"role": "user", "content": content}]]


# --- reply -----------------------------------------------------------------------------------------------------------


def test_reply_is_read_whole() -> None:
    body = chat_completion(
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        finish_reason="tool_calls",
        model="m-2026",
        usage={
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        tool_calls=[{"function": {"name": "search", "arguments": ""}}],
        reasoning_content="hm",
    )
    reply = read(body)
    assert (reply.text, reply.finish_reason, reply.model, reply.reasoning) == ("ab", "tool_calls", "m-2026", "hm")
    usage = reply.usage
    counts = (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert counts == (1, 9, 4, 6, 3) and usage.known
    assert reply.message().model_dump(mode="json")["tool_calls"] == [
        {"id": "call_0", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    ]


def test_refusal_is_the_text_and_missing_usage_is_unknown() -> None:
    body = chat_completion(None, refusal="I cannot do that.")
    del body["usage"]
    reply = read(body)
    assert (reply.text, reply.finish_reason) == ("I cannot do that.", "refusal")
    assert not reply.usage.known


def test_a_tool_conversation_goes_back_and_forth() -> None:
    wanted = [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "東京"}'}}]
    bodies = iter([chat_completion(None, finish_reason="tool_calls", tool_calls=wanted), chat_completion("It rains.")])
    with LoopbackServer(lambda _: next(bodies)) as server:
        first = replace(HELLO, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "search"}})
        asked = openai_compatible.complete(first, server.role(), CallContext(60.0))
        result = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "rain"}
        after = (*HELLO.messages, asked.message().model_dump(mode="json"), result)
        answered = openai_compatible.complete(replace(first, messages=after), server.role(), CallContext(60.0))
    assert answered.text == "It rains."
    assert [dict(m) for m in server.requests[1].body["messages"][2:]] == [
        {"role": "assistant", "content": "", "tool_calls": wanted},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]


def test_ids_made_for_tool_calls_do_not_repeat_in_a_conversation() -> None:
    body = chat_completion(None, tool_calls=[{"function": {"name": "a"}}, {"function": {"name": "b"}}])
    first = read(body, Dialect(tool_prefix="qwen_tool_"))
    assert [c.id for c in first.tool_calls] == ["qwen_tool_0", "qwen_tool_1"]
    later = replace(HELLO, messages=(*HELLO.messages, first.message().model_dump()))
    assert [c.id for c in read(body, Dialect(tool_prefix="qwen_tool_"), later).tool_calls] == [
        "qwen_tool_2",
        "qwen_tool_3",
    ]


@pytest.mark.parametrize("code", [429, "429"])
def test_an_error_sent_as_200_keeps_its_class(code: object) -> None:
    hidden = {"error": {"code": code, "message": "busy"}}
    for body in (hidden, {"choices": [hidden]}):
        with pytest.raises(errors.RateLimitError, match="busy"):
            read(body)


@pytest.mark.parametrize("body", ["<html>", "[]", "null", '"x"', '{"choices": [null]}', '{"choices": {}}'])
def test_a_body_that_is_no_completion_is_transient(body: str) -> None:
    with pytest.raises(errors.TransientError, match=r"without a chat completion: .* check the base URL .*/v1"):
        parse_reply(HttpAnswer(200, {}, body), WHERE, PLAIN)


# --- a server that does not read tool calls --------------------------------------------------------------------------


class _Heard:
    def __init__(self) -> None:
        self.notices: list[str] = []

    def __call__(self, kind: str, **data: Any) -> None:
        if kind == "notice":
            self.notices.append(data["text"])


def test_a_tool_call_as_text_is_said_once_for_a_model() -> None:  # C143
    heard = _Heard()
    with LoopbackServer('<tool_call>{"name":"search"}</tool_call>') as server:
        session = Session({"target": server.role()}, emit=heard)
        replies = [session.call("target", replace(HELLO, tools=TOOLS)) for _ in range(3)]
        session.call("target", HELLO)
    assert [text.partition(": ")[2] for text in heard.notices] == [TOOL_PARSER_OFF]
    assert "server tool parser is off" in heard.notices[0]
    assert all(reply.text.startswith("<tool_call>") for reply in replies)


# --- effort ----------------------------------------------------------------------------------------------------------


def test_the_shipped_effort_is_not_sent_to_compatible_servers_but_a_chosen_one_is(tmp_path: Any) -> None:
    base = tmp_path / "base.yaml"
    base.write_text("model: {reasoning_effort: medium, backend: openai_compatible}\n", "utf-8")

    def effort(**flags: object) -> str:
        return resolve(base, flags=flags, environ={}).roles["target"].effort

    assert effort() == ""
    assert effort(reasoning_effort="medium") == "medium"
    assert effort(reasoning_effort="low") == "low"
    own = resolve({"model": {"reasoning_effort": "high", "backend": "openai_compatible"}}, environ={})
    assert own.roles["optimizer"].effort == "high"
    azure = resolve({"model": {"reasoning_effort": "medium"}}, environ={})
    assert azure.roles["optimizer"].effort == "medium"


# --- one call, one role value ----------------------------------------------------------------------------------------


def test_a_call_reads_one_role_value_while_another_thread_reconfigures() -> None:  # W39
    with (
        LoopbackServer("a", key="key-a") as a,
        LoopbackServer("b", key="key-b") as b,
        models.use_session(Session({"target": a.role(api_key="key-a")})),
    ):
        done = threading.Event()

        def reconfigure() -> None:
            while not done.is_set():
                for server, key in ((b, "key-b"), (a, "key-a")):
                    models.configure_openai_compatible(target_base_url=server.url, target_api_key=key)

        changer = threading.Thread(target=reconfigure)
        changer.start()
        try:
            texts = [models.chat_target("", "hi", retries=0)[0] for _ in range(40)]
        finally:
            done.set()
            changer.join()
    assert set(texts) <= {"a", "b"}  # a mixed pair would have been answered 401


# --- the official client says the same -------------------------------------------------------------------------------


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["plain", "tools"])
def test_the_request_equals_that_of_the_official_client(tools: list[dict[str, Any]] | None) -> None:
    openai = pytest.importorskip("openai")
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    messages = [*HELLO.messages, {"role": "user", "content": [{"type": "text", "text": "And this?"}, image]}]
    choice = {"tool_choice": "required"} if tools else {}
    call = ModelCall(tuple(messages), max_completion_tokens=77, temperature=0.25, effort="low", tools=tools, **choice)
    with LoopbackServer("hi") as server:
        ours = openai_compatible.complete(call, server.role(api_key="sk-test-1"), CallContext(60.0))
        with openai.OpenAI(base_url=server.url, api_key="sk-test-1", max_retries=0) as client:
            theirs = client.chat.completions.create(
                model="loopback",
                messages=messages,
                max_tokens=77,
                temperature=0.25,
                reasoning_effort="low",
                **({"tools": tools} if tools else {}),
                **choice,
            )
    mine, official = server.requests
    assert (mine.path, mine.body) == (official.path, official.body)
    sent = [{name.lower(): value for name, value in request.headers.items()} for request in server.requests]
    for name in ("authorization", "content-type", "accept"):
        assert sent[0][name] == sent[1][name]
    assert (ours.text, ours.finish_reason, ours.usage.total_tokens) == (
        theirs.choices[0].message.content,
        theirs.choices[0].finish_reason,
        theirs.usage.total_tokens,
    )


def test_garbage_after_200_is_shown_without_the_key() -> None:
    with (
        LoopbackServer(faults=[garbage("oops sk-secret-123456")]) as server,
        pytest.raises(errors.TransientError) as caught,
    ):
        openai_compatible.complete(HELLO, server.role(api_key="sk-secret-123456"), CallContext(60.0))
    assert "oops" in str(caught.value) and "sk-secret" not in str(caught.value)
