"""What providers do to people: each row of the guide's table, against a server on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from patience import given_time, until

from skillopt import errors
from skillopt.model import Limits, ModelCall, ModelReply, Session
from skillopt.testing import (
    LoopbackServer,
    ScriptedModel,
    chat_completion,
    garbage,
    hang,
    reset,
    role,
    stall,
    status,
    trickle,
)
from skillopt.testing.faults import Fault

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "providers.md"
ROWS = {
    cells[0]: (cells[1].strip("`"), cells[2])
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("|") and not re.match(r"\|(---| What happens)", line)
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
LIMITS = Limits(retries=1, retry_first_wait_seconds=0.002, retry_longest_wait_seconds=0.01)
FILTERED = {
    "code": "content_filter",
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
}
REFUSAL = "> I'm sorry, I can't help with that."
CUT = chat_completion("half an ans", finish_reason="length")
STREAM = (
    'data: {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Par"}}]}\n\n'
    ': keep-alive\n\ndata: {"choices": [{"index": 0, "delta": {"content": "is"}}]}\n\n'
)
STREAM_END = (
    'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}\n\n'
)


def failed(code: int, error: Mapping[str, Any] | str) -> Fault:
    return status(code, body=json.dumps({"error": error if isinstance(error, Mapping) else {"message": error}}))


@dataclass(frozen=True)
class Case:
    """What the server always does, and after how many requests that is settled."""

    row: str
    fault: Fault | None = None
    reply: Any = "ok"
    asked_by: str = "target"
    requests: int = 1
    text: str = ""
    says: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


QUICK = 0.1
SLOW = {"timeout_seconds": QUICK}
TOO_LONG_ERROR = {
    "code": "context_length_exceeded",
    "message": "maximum context length is 10 tokens; you sent 20 tokens",
}
AGAIN, UNTIL = "tried again", "a wait above `model.retry_after_ceiling_seconds`"
NO_MODEL = "404, 405, a redirect, a model that is not there or not for this account"
PARAMETER = "a parameter is not taken (`temperature`, `max_tokens`, `reasoning_effort` …)"
PASSING, DECLINES = "408, 409, 425, 5xx", "the optimizer declines, in a field or in words"
WRONG_JSON, TOO_LONG = "the body is no JSON, or JSON of another kind", "the prompt does not fit (400, 413)"
CASES = [
    Case("429 while nothing is served", status(429, {"retry-after-ms": "5"}), requests=2),
    Case("429 while nothing is served", status(429), requests=2),
    Case(UNTIL, status(429, {"Retry-After": "86400"})),
    *(Case("401, 403", status(code), says="openai_compatible_api_key") for code in (401, 403)),
    Case("402, or 429 because the credit is used up", status(402)),
    Case("402, or 429 because the credit is used up", failed(429, {"code": "insufficient_quota", "message": "pay"})),
    *(Case(NO_MODEL, status(code)) for code in (404, 405, 302)),
    Case(NO_MODEL, failed(400, "The model `x` does not exist or you do not have access to it.")),
    Case(NO_MODEL, failed(403, "model not supported on this account: you have no access to the model")),
    *(Case(PASSING, status(code), requests=2) for code in (408, 409, 425, 500, 502, 503, 504, 529)),
    Case("the connection breaks", reset(), requests=2),
    Case("the connection is accepted and nothing comes", hang(5), requests=2, settings=SLOW),
    Case("half of the answer comes, then nothing", stall(5), requests=2, settings=SLOW),
    Case("a byte comes now and then", trickle(0.02), requests=2, settings=SLOW),
    *(Case(WRONG_JSON, garbage(body), requests=2) for body in ("<html>Bad gateway</html>", "{}", "[1]", '{"choices"')),
    Case("an error in a body sent as 200", garbage('{"error": {"code": 429, "message": "slow down"}}'), requests=2),
    Case(TOO_LONG, garbage(json.dumps({"error": TOO_LONG_ERROR}))),
    Case(
        "401, 403", garbage('{"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}')
    ),
    Case("a stream of events that nobody asked for", garbage(STREAM + STREAM_END), text="Paris"),
    Case("a stream of events that nobody asked for", garbage(STREAM + "data: [DONE]\n\n"), text="Paris"),
    Case("such a stream that breaks off", garbage(STREAM), requests=2),
    Case("empty text", reply=chat_completion(" \n"), requests=2),
    Case("thinking and no answer", reply=chat_completion(None, reasoning_content="It is 42"), requests=2),
    Case("the target's answer is cut off at its token limit", reply=CUT, requests=2, text="half an ans"),
    Case(
        "the limit comes before any answer",
        reply=chat_completion(None, finish_reason="length", reasoning_content="hm"),
        requests=2,
        says="no final answer, the token limit came first while the model was thinking; raise max_tokens",
    ),
    Case("the optimizer's reply is cut off", reply=CUT, requests=2, asked_by="optimizer"),
    Case("the target declines", reply=chat_completion(None, refusal="I won't."), text="I won't."),
    Case("the target declines", reply=REFUSAL, text=REFUSAL),
    Case(DECLINES, reply=chat_completion(None, refusal="I won't."), asked_by="optimizer", says="I won't."),
    Case(DECLINES, reply=REFUSAL, asked_by="optimizer", says="I can't help with that"),
    Case("a content filter takes the answer", reply=chat_completion("", finish_reason="content_filter")),
    Case("a content filter stops the request (400)", failed(400, FILTERED)),
    Case(
        TOO_LONG,
        failed(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000"),
    ),
    Case(TOO_LONG, status(413)),
    Case("another 400, 422", status(400)),
    Case("another 400, 422", status(422)),
]


def outcome(session: Session, asked_by: str) -> ModelReply | errors.ModelError:
    try:
        return session.ask(asked_by, "system", "What is the capital of France?", stage="rollout")
    except errors.ModelError as error:
        return error


def session_for(server: LoopbackServer, **options: Any) -> Session:
    settings = dict(options.pop("settings", {}))
    return Session({name: server.role(name, **settings) for name in ("target", "optimizer")}, limits=LIMITS, **options)


def check(row: str, said: ModelReply | errors.ModelError) -> None:
    """The outcome is what the row says: its class, and what its class means."""
    name, then = ROWS[row]
    if name == "none":
        assert isinstance(said, ModelReply), said
        assert then.startswith("goes on")
        return
    assert isinstance(said, errors.ModelError)
    ours = next(kind for kind in type(said).__mro__ if kind.__module__ == "skillopt.errors")
    assert ours.__name__ == name, said
    words = "stops the run" if said.fatal else AGAIN if said.retryable else "not tried again"
    assert then.startswith(words)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row[:40])
def test_row(case: Case) -> None:
    def once(seconds: float) -> tuple[ModelReply | errors.ModelError, int]:
        with (
            LoopbackServer(case.reply, faults=lambda _: case.fault) as server,
            session_for(server, settings=dict.fromkeys(case.settings, seconds)) as session,
        ):
            return outcome(session, case.asked_by), len(server.requests)

    said, requests = given_time(once, lambda made: made[1] == case.requests, QUICK)
    check(case.row, said)
    assert requests == case.requests
    assert isinstance(said, ModelReply) or case.says in str(said)
    assert not isinstance(said, ModelReply) or said.text == case.text


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.requests == 2 and not case.text], ids=lambda c: c.row[:40]
)
def test_what_passes_is_got_over(case: Case) -> None:
    def once(seconds: float) -> ModelReply | errors.ModelError:
        replies = iter([case.reply, "fine"] if case.fault is None else ["fine"])
        with (
            LoopbackServer(lambda _: next(replies), faults=[case.fault]) as server,
            session_for(server, settings=dict.fromkeys(case.settings, seconds)) as session,
        ):
            return outcome(session, case.asked_by)

    said = given_time(once, lambda said: isinstance(said, ModelReply), QUICK)
    assert isinstance(said, ModelReply) and said.text == "fine"
    assert said.usage.prompt_tokens == (10 if case.fault else 20)  # what the first attempt took is counted


def test_every_row_is_checked() -> None:
    own = {name for name in OWN_TESTS if name in ROWS}
    assert {case.row for case in CASES} | own == set(ROWS)


def test_nothing_answers() -> None:
    said = outcome(Session({"target": role("http://127.0.0.1:9")}, limits=LIMITS), "target")
    check("nothing answers at the address", said)


def test_no_room() -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    def once_the_other_is_refused(_: object) -> str:
        until(lambda: len(server.requests) >= 2)
        return "ok"

    with LoopbackServer(once_the_other_is_refused, max_in_flight=1, retry_after=30) as server:
        session = session_for(server, emit=lambda kind, **data: heard.append((kind, data)))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(2) as pool:
            said = list(pool.map(lambda _: session.ask("target", "", "x", stage="rollout").text, range(2)))
    assert said == ["ok", "ok"]  # and nobody waited for 30 s
    (retry,) = [data for kind, data in heard if kind == "model_retry"]
    assert ROWS["429 while other requests are served"] and (retry["error"], retry["wait_s"]) == ("RateLimitError", 0)


@pytest.mark.parametrize(
    "said",
    [
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) is.",
        "`temperature` is deprecated for this model.",
    ],
)
def test_a_parameter_is_left_out_for_the_whole_run(said: str) -> None:  # C137
    def faults(number: int) -> Fault | None:
        return failed(400, said) if "temperature" in server.requests[number - 1].body else None

    with LoopbackServer("ok", faults=faults) as server, session_for(server, settings={"temperature": 0.3}) as session:
        for _ in range(3):
            check(PARAMETER, outcome(session, "target"))
        assert len(server.requests) == 4
        assert session.notes == (
            "openai_compatible/loopback does not take the parameter temperature; it was left out.",
        )


@pytest.mark.parametrize(
    ("said", "prompt", "limit"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9,000 tokens.",
            9000,
            8192,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 210000, 200000),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 5000, 4096),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1200000, 1048576),
        ("the request exceeds the available context size (4096 tokens)", 9, 4096),  # 37 characters by our estimate
        ("too many tokens", 9, None),
    ],
)
def test_both_sizes_are_said(said: str, prompt: int, limit: int | None) -> None:
    with LoopbackServer(faults=lambda _: failed(400, said)) as server, session_for(server) as session:
        error = outcome(session, "target")
    assert isinstance(error, errors.ContextTooLongError)
    assert (error.prompt_tokens, error.limit) == (prompt, limit)
    assert f"{prompt:,}" in str(error) and ("not known" if limit is None else f"{limit:,}") in str(error)


def test_a_prompt_that_would_fit_with_a_smaller_limit_on_the_reply_is_told_so() -> None:
    said = "This model's maximum context length is 4096 tokens and your request has 10 input tokens"
    with LoopbackServer(faults=lambda _: failed(400, said)) as server, session_for(server) as session:
        assert "Lower max_tokens" in str(outcome(session, "target"))


def test_a_larger_limit_is_tried_once_and_what_it_takes_is_counted() -> None:
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        cut = request["max_tokens"] <= 100
        return chat_completion("half" if cut else "whole", finish_reason="length" if cut else "stop")

    with LoopbackServer(reply) as server, session_for(server, settings={"max_tokens": 100}) as session:
        said = outcome(session, "optimizer")
        assert isinstance(said, ModelReply)
        assert (said.text, said.finish_reason, said.usage.total_tokens, said.usage.calls) == ("whole", "stop", 30, 1)
        assert [request.body["max_tokens"] for request in server.requests] == [100, 200]
        assert session.usage.details()[0]["retries"] == 1


@pytest.mark.parametrize("fault", [failed(400, "max_tokens is too large: this model takes 4096"), status(500)])
def test_when_the_larger_limit_is_refused_the_first_reply_counts(fault: Fault) -> None:
    with LoopbackServer(CUT, faults=lambda number: fault if number > 1 else None) as server:
        said = outcome(session_for(server), "target")
    assert isinstance(said, ModelReply) and (said.text, said.finish_reason) == ("half an ans", "length")


def test_no_limit_is_made_larger_than_the_widest_or_without_retries() -> None:
    with LoopbackServer(CUT) as server:
        session_for(server).ask("target", "", "x", stage="s", max_completion_tokens=65_536)
        Session({"target": server.role()}, limits=Limits(retries=0)).ask("target", "", "x", stage="s")
        assert len(server.requests) == 2


def test_what_a_backend_cannot_carry_is_not_sent() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = ModelCall(messages=({"role": "user", "content": [image]},), stage="s")
    model = ScriptedModel(["never"])
    with pytest.raises(errors.UnsupportedCallError, match="mock_chat cannot carry images") as caught:
        Session({"target": model.role()}).call("target", call)
    assert isinstance(caught.value, NotImplementedError) and isinstance(caught.value, errors.BadRequestError)
    assert model.calls == []
    check("tools or images for a backend that cannot carry them", caught.value)


def test_another_model_answers() -> None:
    models = iter(["m-1", "m-2"])
    with LoopbackServer(lambda _: chat_completion("ok", model=next(models))) as server:
        session = session_for(server)
        for _ in range(2):
            check("another model answers than before", outcome(session, "target"))
    assert session.notes == ("openai_compatible/loopback was answered by m-2, and before by m-1.",)


def test_a_notice_is_said_once_a_model() -> None:  # C143
    heard: list[str] = []
    reply = chat_completion('<tool_call>{"name": "search", "arguments": {}}</tool_call>')
    tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
    call = ModelCall(messages=({"role": "user", "content": "x"},), tools=tools, stage="s")
    with LoopbackServer(reply) as server:
        session = session_for(
            server, emit=lambda kind, **data: heard.append(data["text"]) if kind == "notice" else None
        )
        for _ in range(3):
            session.call("target", call)
    assert len(heard) == 1 and "server tool parser is off" in heard[0]
    assert session.notes == tuple(heard)


OWN_TESTS: Mapping[str, Callable[..., None]] = {
    "nothing answers at the address": test_nothing_answers,
    "429 while other requests are served": test_no_room,
    PARAMETER: test_a_parameter_is_left_out_for_the_whole_run,
    "tools or images for a backend that cannot carry them": test_what_a_backend_cannot_carry_is_not_sent,
    "another model answers than before": test_another_model_answers,
}
