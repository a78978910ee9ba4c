"""The OpenAI-shaped backend against a server on loopback."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from skillopt.testing import LoopbackServer
from skillopt.testing.bodies import chat_completion
from skillopt.testing.faults import Fault, garbage, hang, reset, stall, status, trickle
from skillopt_sleep.backends import transport
from skillopt_sleep.backends.openai_api import OpenAIBackend
from skillopt_sleep.errors import CallFailed, UsageProblem
from skillopt_sleep.types import TaskRecord

KEY = "marked-key-0123456789"
MakeTask = Callable[..., TaskRecord]


@pytest.fixture
def compat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "openai_compatible")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)


def at(server: LoopbackServer, model: str = "m", **settings: Any) -> OpenAIBackend:
    backend = OpenAIBackend(model, endpoint=server.url)
    backend.egress._sleep = lambda _: None
    for name, value in settings.items():
        setattr(backend, name, value)
    return backend


@contextmanager
def failing(*faults: Fault | None) -> Iterator[LoopbackServer]:
    with LoopbackServer("fine", faults=list(faults)) as server:
        yield server


@pytest.mark.usefixtures("compat")
def test_a_compatible_server_gets_one_user_message_and_the_key() -> None:
    with LoopbackServer("fine", key=KEY) as server:
        assert at(server).call("hello") == "fine"
    (request,) = server.requests
    assert request.route == "/v1/chat/completions"
    assert request.body == {"model": "m", "max_tokens": 8192, "messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.usefixtures("compat")
def test_the_provider_s_usage_is_counted() -> None:
    with LoopbackServer("fine") as server:
        backend = at(server)
        backend.call("hello")
    assert backend.tokens_used() == 15


@pytest.mark.parametrize("mode", ["api_key", "key", ""])
def test_azure_gets_a_deployment_and_the_key_in_its_own_header(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", mode)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SKILLOPT_SLEEP_CHAT_EXTRA_BODY", '{"ignored": 1}')
    with LoopbackServer("fine") as server:
        backend = OpenAIBackend("my model", endpoint=server.url.removesuffix("/v1") + "/")
        assert backend.call("hello") == "fine"
    (request,) = server.requests
    assert request.route == "/openai/deployments/my%20model/chat/completions"
    assert request.query == {"api-version": "2024-12-01-preview"}
    assert request.key == KEY
    assert "authorization" not in {name.lower() for name in request.headers}
    assert request.body["max_completion_tokens"] == 16384
    assert "max_tokens" not in request.body
    assert "ignored" not in request.body


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize(
    ("base", "path"),
    [("", "/v1"), ("/", "/v1"), ("/v1/", "/v1"), ("/api/v2", "/api/v2"), ("/v1/chat/completions", "/v1")],
)
def test_every_spelling_of_an_endpoint_works(base: str, path: str) -> None:
    backend = OpenAIBackend("m", endpoint=f"http://127.0.0.1:9{base}")
    assert backend.url == f"http://127.0.0.1:9{path}/chat/completions"


def test_the_endpoint_is_the_argument_then_the_environment_then_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageProblem, match="AZURE_OPENAI_ENDPOINT"):
        OpenAIBackend().check()
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/")
    assert OpenAIBackend().url.startswith("https://x.openai.azure.com/openai/deployments/gpt-5.5/")
    assert OpenAIBackend(endpoint="https://y.openai.azure.com").url.startswith("https://y.")
    with pytest.raises(UsageProblem, match="address"):
        OpenAIBackend(endpoint="x.openai.azure.com").check()


@pytest.mark.parametrize("mode", ["managed_identity", "aad", "azure_ad", "azure_cli", ""])
@pytest.mark.parametrize(
    "endpoint", ["https://evil.example", "http://x.openai.azure.com", "https://x.openai.azure.com.evil.example"]
)
def test_a_sign_in_token_goes_to_azure_only(monkeypatch: pytest.MonkeyPatch, mode: str, endpoint: str) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", mode)
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    backend = OpenAIBackend("m", endpoint=endpoint)
    with pytest.raises(CallFailed, match="openai_compatible") as failure:
        backend.call("hello")
    assert failure.value.kind == "setup"
    assert "evil" not in str(failure.value)


def test_a_missing_identity_package_names_the_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "managed_identity")
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(CallFailed, match="pip install azure-identity"):
        OpenAIBackend("m", endpoint="https://x.openai.azure.com").call("hello")


def test_an_unknown_mode_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "managed_identiy")
    with pytest.raises(UsageProblem, match="managed_identity"):
        OpenAIBackend()


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize(("value", "cap"), [("100", 100), ("x", 8192), ("-1", 8192), ("0", 8192), ("", 8192)])
def test_the_cap_of_a_compatible_server(monkeypatch: pytest.MonkeyPatch, value: str, cap: int) -> None:
    monkeypatch.setenv("SKILLOPT_SLEEP_COMPAT_MAX_TOKENS", value)
    with LoopbackServer() as server:
        backend = at(server)
        backend.call("hello")
    assert server.requests[0].body["max_tokens"] == cap
    assert bool(backend.notices) == (value not in ("", "100"))


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize(
    ("value", "sent"), [('{"top_k": 3}', {"top_k": 3}), ("[1]", {}), ("{", {}), ('{"messages": []}', {})]
)
def test_an_extra_body_joins_the_request(monkeypatch: pytest.MonkeyPatch, value: str, sent: dict[str, int]) -> None:
    monkeypatch.setenv("SKILLOPT_SLEEP_CHAT_EXTRA_BODY", value)
    with LoopbackServer() as server:
        at(server).call("hello")
    body = server.requests[0].body
    assert {key: body[key] for key in body if key not in ("model", "max_tokens", "messages")} == sent
    assert body["messages"][0]["content"] == "hello"


@pytest.mark.usefixtures("compat")
def test_a_refused_parameter_is_left_out_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLOPT_SLEEP_CHAT_EXTRA_BODY", '{"temperature": 0, "top_k": 1}')
    said = [
        '{"error": {"message": "Unsupported parameter: max_tokens, use max_completion_tokens"}}',
        '{"error": {"message": "temperature is not supported with this model"}}',
    ]
    with failing(*(status(400, body=words) for words in said)) as server:
        backend = at(server)
        assert backend.call("one") == backend.call("two") == "fine"
    bodies = [request.body for request in server.requests]
    assert len(bodies) == 4
    for body in bodies[2:]:
        assert "max_tokens" not in body
        assert "temperature" not in body
        assert body["max_completion_tokens"] == 8192
        assert body["top_k"] == 1


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize(
    ("faults", "kind", "requests"),
    [
        ([status(401, body='{"error": "bad key"}')], "auth", 1),
        ([status(402)], "auth", 1),
        ([status(404, body='{"error": {"code": "model_not_found"}}')], "setup", 1),
        ([status(302, {"Location": "http://127.0.0.1:1/"})], "setup", 1),
        ([status(400, body='{"error": {"message": "maximum context length is 10 tokens"}}')], "refused", 1),
        ([status(400, body='{"error": {"code": "content_filter"}}')], "refused", 1),
        ([status(400)], "refused", 1),
        ([status(503)] * 9, "transient", 5),
        ([reset()] * 9, "transient", 5),
        ([garbage()] * 9, "transient", 5),
        ([status(429)] * 9, "rate", 5),
        ([status(429, {"Retry-After": "86400"})] * 9, "rate", 1),
    ],
)
def test_what_a_server_does_wrong_has_one_kind_and_one_policy(
    faults: Sequence[Fault], kind: str, requests: int
) -> None:
    with failing(*faults) as server:
        backend = at(server)
        with pytest.raises(CallFailed) as failure:
            backend.call("hello")
    assert failure.value.kind == kind
    assert len(server.requests) == requests
    assert len(backend.egress._memory) == 0


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize("fault", [status(503), status(429, {"retry-after-ms": "5"}), reset(), garbage("{}")])
def test_passing_faults_are_overcome(fault: Fault) -> None:
    with failing(fault, fault) as server:
        assert at(server).call("hello") == "fine"
    assert len(server.requests) == 3


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize("fault", [hang(20), stall(20), trickle(0.05)])
def test_the_time_of_a_call_is_kept_whatever_the_server_does(fault: Fault) -> None:
    with failing(fault) as server:
        backend = at(server, timeout=0.4, tries=1)
        begun = time.monotonic()
        with pytest.raises(CallFailed, match="did not answer within") as failure:
            backend.call("hello")
        assert time.monotonic() - begun < 15
    assert failure.value.kind == "transient"


@pytest.mark.usefixtures("compat")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (chat_completion(None, refusal="I will not."), "refused"),
        (chat_completion(None, finish_reason="content_filter"), "refused"),
        (chat_completion("", finish_reason="length"), "empty"),
        (chat_completion("  "), "empty"),
        ({"choices": []}, "transient"),
        ({"error": {"code": 401, "message": "no"}}, "auth"),
    ],
)
def test_a_reply_without_text_is_a_failure(body: dict[str, Any], kind: str) -> None:
    with LoopbackServer(lambda _: body) as server, pytest.raises(CallFailed) as failure:
        at(server, tries=1).call("hello")
    assert failure.value.kind == kind


@pytest.mark.usefixtures("compat")
def test_thinking_in_front_of_an_answer_and_parts_are_read() -> None:
    parts = [{"type": "text", "text": "<think>hm</think>\n4"}, {"type": "text", "text": "2"}]
    with LoopbackServer(lambda _: chat_completion(None, content=parts)) as server:
        assert at(server).call("hello") == "42"


@pytest.mark.usefixtures("compat")
def test_no_key_shows_in_a_failure_that_repeats_it() -> None:
    with failing(status(400, body=json.dumps({"error": f"you sent Bearer {KEY} as {KEY}"}))) as server:
        backend = at(server)
        with pytest.raises(CallFailed) as failure:
            backend.call("hello")
    assert KEY not in str(failure.value) + failure.value.detail + backend.last_call_error


@pytest.mark.usefixtures("compat")
def test_a_key_goes_nowhere_else_after_a_redirect() -> None:
    with LoopbackServer() as other:
        fault = status(307, {"Location": f"{other.url}/chat/completions"})
        with failing(fault) as server, pytest.raises(CallFailed, match="redirect"):
            at(server).call("hello")
    assert other.requests == []


@pytest.mark.usefixtures("compat")
def test_nothing_at_the_address_is_a_passing_failure() -> None:
    backend = OpenAIBackend("m", endpoint="http://127.0.0.1:1")
    backend.tries = 1
    with pytest.raises(CallFailed, match="failed") as failure:
        backend.call("hello")
    assert failure.value.kind == "transient"


def call_of(name: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}


@pytest.mark.usefixtures("compat")
def test_stand_in_tools_are_functions_and_their_calls_are_recorded(task: MakeTask) -> None:
    def reply(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return "found three"
        return chat_completion(None, tool_calls=[call_of("notes_search"), call_of("unknown")])

    with LoopbackServer(reply) as server:
        backend = at(server)
        said = backend.attempt_with_tools(task(), "", "", ["notes.search", "read"])
    assert said == ("found three", ["notes.search"])
    first, second = server.requests
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["notes_search", "read"]
    assert [message["role"] for message in second.body["messages"]] == ["user", "assistant", "tool", "tool"]
    assert backend.tokens_used() == 30


@pytest.mark.usefixtures("compat")
def test_a_model_that_only_calls_tools_has_to_answer_at_last(task: MakeTask) -> None:
    def reply(body: dict[str, Any]) -> Any:
        return chat_completion(None, tool_calls=[call_of("search")]) if "tools" in body else "done"

    with LoopbackServer(reply) as server:
        assert at(server).attempt_with_tools(task(), "", "", ["search"]) == ("done", ["search"])
    assert len(server.requests) == 4


def test_other_kinds_of_addresses_are_refused() -> None:
    for url in ("file:///etc/passwd", "ftp://h/x", "nonsense"):
        with pytest.raises(CallFailed) as failure:
            transport.post(transport.HttpRequest(url, "it", b"{}", {}), seconds=1.0)
        assert failure.value.kind == "setup"
