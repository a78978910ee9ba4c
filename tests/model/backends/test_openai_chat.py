"""Azure OpenAI and plain OpenAI over a real server; the official `openai` package says what a request looks like."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import openai
import pytest

from skillopt import errors
from skillopt.config.resolve import resolve
from skillopt.model.azure_auth import SignIn, TokenSource
from skillopt.model.backends.openai_chat import complete, request_url
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.model.values import CallContext, CompatAssistantMessage, CompatToolCall, CompatToolFunction, ModelCall
from skillopt.testing import LoopbackServer, RecordedRequest, chat_completion, responses_body, role, status

KEY = "loopback-key"
VERSION = "2024-12-01-preview"
CHAT, CODEX = "gpt-4o", "gpt-5-codex"
PNG = "data:image/png;base64,iVBORw0KGgo="
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
FLAT = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
TOOL_CALL = CompatToolCall("call_1", CompatToolFunction("f", '{"a": 1}'))
HELLO = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße 東京"})
IMAGE = (
    {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": PNG}}]},
)
TURNS = (
    *HELLO,
    CompatAssistantMessage("", [TOOL_CALL]).model_dump(),
    {"role": "tool", "tool_call_id": "call_1", "content": "12"},
)
CALLS = {
    "plain": ModelCall(messages=HELLO),
    "effort": ModelCall(messages=HELLO, effort="low", max_completion_tokens=100),
    "temperature": ModelCall(messages=HELLO, temperature=0.0),
    "image": ModelCall(messages=IMAGE),
    "tools": ModelCall(messages=TURNS, tools=[TOOL], tool_choice="auto", effort="low"),
    "one tool": ModelCall(messages=TURNS, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "f"}}),
}


def ours(server: LoopbackServer, call: ModelCall, model: str, **settings: Any) -> RecordedRequest:
    complete(call, server.role(backend="openai_chat", model=model, **settings), CallContext(60.0))
    return server.requests[-1]


def official_chat(client: openai.OpenAI, call: ModelCall, model: str) -> None:
    """The same request through the official package, written as a user of it would."""
    more: dict[str, Any] = {}
    if call.effort:
        more["reasoning_effort"] = call.effort
    if call.tools:
        more |= {"tools": list(call.tools), "tool_choice": call.tool_choice}
    if call.temperature is not None:
        more["temperature"] = call.temperature
    client.chat.completions.create(
        model=model, messages=list(call.messages), max_completion_tokens=call.max_completion_tokens, **more
    )


INPUTS: dict[str, dict[str, Any]] = {
    "plain": {"instructions": "Be brief.", "input": [{"role": "user", "content": "Grüße 東京"}]},
    "image": {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What?"},
                    {"type": "input_image", "image_url": PNG, "detail": "auto"},
                ],
            }
        ]
    },
    "tools": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Grüße 東京"},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "12"},
        ],
    },
}
INPUTS |= {"effort": INPUTS["plain"], "temperature": INPUTS["plain"], "one tool": INPUTS["tools"]}


def official_responses(client: openai.OpenAI, name: str, model: str) -> None:
    call = CALLS[name]
    more = dict(INPUTS[name])
    if call.effort:
        more["reasoning"] = {"effort": call.effort}
    if call.tools:
        choice = call.tool_choice if isinstance(call.tool_choice, str) else {"type": "function", "name": "f"}
        more |= {"tools": [FLAT], "tool_choice": choice}
    if call.temperature is not None:
        more["temperature"] = call.temperature
    client.responses.create(model=model, max_output_tokens=call.max_completion_tokens, **more)


def assert_alike(mine: RecordedRequest, theirs: RecordedRequest) -> None:
    assert mine.path == theirs.path
    assert mine.body == theirs.body
    sign = ("authorization", "api-key", "content-type")
    mine_headers, their_headers = ({k.lower(): v for k, v in r.headers.items()} for r in (mine, theirs))
    assert {n: mine_headers.get(n) for n in sign} == {n: their_headers.get(n) for n in sign}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("model", [CHAT, CODEX, "my deployment/é"])
def test_azure_requests_are_those_of_the_official_package(name: str, model: str) -> None:
    with LoopbackServer(key=KEY) as server:
        mine = ours(server, CALLS[name], model)
        with openai.AzureOpenAI(
            azure_endpoint=server.url.removesuffix("/v1"), api_version=VERSION, api_key=KEY, max_retries=0
        ) as client:
            official_responses(client, name, model) if model == CODEX else official_chat(client, CALLS[name], model)
        assert_alike(mine, server.requests[-1])
    assert mine.headers["api-key"] == KEY and "Authorization" not in mine.headers
    assert mine.query == {"api-version": VERSION}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("model", [CHAT, CODEX])
def test_compatible_requests_are_those_of_the_official_package(name: str, model: str) -> None:
    with LoopbackServer(key=KEY) as server:
        mine = ours(server, CALLS[name], model, auth_mode="openai_compatible")
        with openai.OpenAI(
            base_url=server.url, api_key=KEY, max_retries=0, default_headers={"User-Agent": "SkillOpt"}
        ) as client:
            official_responses(client, name, model) if model == CODEX else official_chat(client, CALLS[name], model)
        assert_alike(mine, server.requests[-1])
    assert mine.headers["User-Agent"] == "SkillOpt"
    assert mine.headers["Authorization"] == f"Bearer {KEY}" and "api-key" not in mine.headers
    assert mine.route == ("/v1/responses" if model == CODEX else "/v1/chat/completions")


def test_a_token_is_sent_as_the_official_package_sends_it() -> None:
    # A token never goes to a loopback server through `complete`, so the two halves are compared one by one.
    signed = SignIn("azure_cli", "https://x.openai.azure.com", "tok")
    client = openai.AzureOpenAI(
        azure_endpoint="https://x.openai.azure.com", api_version=VERSION, azure_ad_token_provider=lambda: "tok"
    )
    options = openai._models.FinalRequestOptions.construct(
        method="post", url="/chat/completions", json_data={"model": CHAT}
    )
    request = client._build_request(client._prepare_options(options))
    assert str(request.url) == request_url(signed, CHAT, VERSION)
    assert request.headers["Authorization"] == f"Bearer {signed.key}" and signed.key_header == "Authorization"


def test_paths_of_both_forms() -> None:
    azure = SignIn("api_key", "https://h/gateway", "k", "api-key")
    assert request_url(azure, "d", "v1") == "https://h/gateway/openai/deployments/d/chat/completions?api-version=v1"
    assert request_url(azure, "d", "v1", responses=True) == "https://h/gateway/openai/responses?api-version=v1"
    for given in ("http://h/v1", "http://h", "http://h/v1/chat/completions", "http://h/v1/responses"):
        plain = SignIn("openai_compatible", given, "k")
        assert request_url(plain, "d", "") == "http://h/v1/chat/completions"
        assert request_url(plain, "d", "", responses=True) == "http://h/v1/responses"
    keyed = SignIn("openai_compatible", "http://h/v1?a=responses", "k")
    assert request_url(keyed, "d", "", responses=True) == "http://h/v1/responses?a=responses"


@pytest.mark.parametrize(
    ("endpoint", "model", "version"),
    [
        ("no address", "d", "v"),
        ("https://h?x=1", "d", "v"),
        ("https://h", "..", "v"),
        ("https://h", "", "v"),
        ("https://h", "d", ""),
    ],
)
def test_what_makes_no_address_is_refused(endpoint: str, model: str, version: str) -> None:
    with pytest.raises(errors.ModelSetupError):
        request_url(SignIn("api_key", endpoint, "k", "api-key"), model, version)


def test_chat_payload_names_the_limit_as_reasoning_models_want_it_and_no_temperature() -> None:
    with LoopbackServer(key=KEY) as server:
        body = ours(server, CALLS["tools"], CHAT).body
        other = replace(server.role(backend="openai_chat", model=CHAT), effort="high")
        complete(CALLS["plain"], other, replace(CallContext(60.0), cap_factor=2))
        complete(CALLS["effort"], other, replace(CallContext(60.0), dropped=frozenset({"max_completion_tokens"})))
    assert body["max_completion_tokens"] == 16384 and body["reasoning_effort"] == "low"
    assert not {"temperature", "max_tokens"} & set(body)
    assert (server.requests[1].body["reasoning_effort"], server.requests[1].body["max_completion_tokens"]) == (
        "high",
        32768,
    )
    assert server.requests[2].body["max_tokens"] == 100


def test_replies_of_both_apis_have_one_shape() -> None:
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        calls = [TOOL_CALL.model_dump()]
        if "input" in request:
            return responses_body("Hm.", tool_calls=calls)
        return chat_completion("Hm.", tool_calls=calls, finish_reason="tool_calls")

    with LoopbackServer(reply) as server:
        replies = [
            complete(CALLS["tools"], server.role(backend="openai_chat", model=m), CallContext(60))
            for m in (CHAT, CODEX)
        ]
    assert replies[0] == replies[1]
    assert replies[0].tool_calls == (TOOL_CALL,) and replies[0].message().tool_calls[0].function.name == "f"


def test_a_token_mode_at_a_loopback_server_is_refused_and_nothing_is_sent() -> None:
    with LoopbackServer() as server:
        for mode in ("azure_cli", "aad"):
            held = CallContext(60.0)
            made = server.role(backend="openai_chat", auth_mode=mode)
            with pytest.raises(errors.ConfigError, match="openai_compatible"):
                complete(CALLS["plain"], made, held)
            with Session({"target": made}) as session, pytest.raises(errors.ConfigError):
                session.ask("target", "", "hi", stage="rollout")
    assert server.requests == []


def test_an_old_api_version_is_named_as_the_cause() -> None:
    body = json.dumps({"error": {"code": "BadRequest", "message": "Responses API is enabled only for api-version X"}})
    expected = pytest.raises(errors.ModelSetupError, match=r"azure_openai_api_version.*AZURE_OPENAI_API_VERSION")
    with LoopbackServer(faults=[status(400, body=body)]) as server, expected:
        ours(server, CALLS["plain"], CODEX)


def test_a_refused_token_says_whose_sign_in_it_was() -> None:
    ctx = CallContext(60.0)
    scope = "https://cognitiveservices.azure.com/.default"
    source = TokenSource(lambda: pytest.fail("not asked"), scope)
    source._held = type(source._held)("tok-123456", 9e12)
    ctx.resources.get(("azure_token", "azure_cli", scope, ""), lambda: source)

    class Refusing:
        def post(self, request: Any, **_: Any) -> Any:
            assert (request.key, request.key_header) == ("tok-123456", "Authorization")
            return type("Answer", (), {"status": 401, "headers": {}, "text": "bad tok-123456"})

    ctx.resources.get("http", Refusing)
    made = role("http://unused", backend="openai_chat", endpoint="https://x.openai.azure.com", auth_mode="azure_cli")
    with pytest.raises(errors.AuthError, match=r"azure_cli.*az login") as caught:
        complete(CALLS["plain"], made, ctx)
    assert "tok-123456" not in str(caught.value)


UNSUPPORTED = [
    ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", CHAT),
    ("reasoning.effort", "Unsupported parameter: 'reasoning.effort' is not supported with this model.", CODEX),
    ("reasoning", "Unknown parameter: 'reasoning'.", CODEX),
    ("max_output_tokens", "Unsupported parameter: max_output_tokens", CODEX),
    ("max_completion_tokens", "Unrecognized request argument supplied: max_completion_tokens", CHAT),
    ("temperature", "Unsupported value: 'temperature' does not support 0 with this model.", CHAT),
]


@pytest.mark.parametrize(("parameter", "message", "model"), UNSUPPORTED)
def test_a_refused_parameter_is_dropped_once_and_remembered(parameter: str, message: str, model: str) -> None:
    body = json.dumps({"error": {"message": message, "param": parameter}})
    call = ModelCall(messages=HELLO, effort="low", temperature=0.0, stage="s")
    with LoopbackServer(faults=[status(400, body=body)]) as server:
        made = server.role(backend="openai_chat", model=model)
        with Session({"target": made}, limits=Limits(retries=0)) as session:
            assert session.call("target", call).text == session.call("target", call).text == "ok"
    field = parameter.split(".")[0]
    assert [field in request.body for request in server.requests] == [True, False, False]


def test_roles_from_the_environment_make_calls() -> None:
    with LoopbackServer(lambda request: f"{request['model']} here", key="env-key-1") as server:
        azure, compat = server.url.removesuffix("/v1"), server.url
        environ = {
            "AZURE_OPENAI_ENDPOINT": azure,
            "AZURE_OPENAI_API_KEY": "env-key-1",
            "AZURE_OPENAI_AUTH_MODE": "api_key",
            "AZURE_OPENAI_API_VERSION": "2025-04-01-preview",
            "OPTIMIZER_AZURE_OPENAI_ENDPOINT": compat,
            "AZURE_OPENAI_OPTIMIZER_AUTH_MODE": "openai_compatible",
            "OPTIMIZER_DEPLOYMENT": "gpt-5.4-pro",
            "TARGET_DEPLOYMENT": "my-deployment",
        }
        with Session(resolve({"env": {"name": "x"}}, environ=environ).roles) as session:
            assert session.ask("target", "", "hi", stage="rollout").text == "my-deployment here"
            assert session.ask("optimizer", "", "hi", stage="reflect").text == "gpt-5.4-pro here"
    target, optimizer = server.requests
    assert target.path == "/openai/deployments/my-deployment/chat/completions?api-version=2025-04-01-preview"
    assert optimizer.path == "/v1/responses" and optimizer.headers["Authorization"] == "Bearer env-key-1"


def test_roles_at_two_endpoints_are_both_tried_before_a_run_and_a_wrong_key_shows_nowhere() -> None:
    with LoopbackServer(key="sk-right-key-1") as good, LoopbackServer(key="sk-right-key-1") as other:
        roles = {
            "optimizer": good.role("optimizer", backend="openai_chat", model=CODEX, api_key="sk-right-key-1"),
            "target": other.role("target", backend="openai_chat", model=CODEX, api_key="sk-right-key-1"),
        }
        with Session(roles) as session:
            session.preflight()
        assert (len(good.requests), len(other.requests)) == (1, 1)
        assert good.requests[0].body["max_output_tokens"] >= 16
        wrong = good.role(backend="openai_chat", api_key="sk-wrong-key-2")
        events: list[object] = []
        made = Session({"target": wrong}, emit=lambda kind, **data: events.append((kind, data)))
        with made as session, pytest.raises(errors.AuthError, match="AZURE_OPENAI_API_KEY") as caught:
            session.preflight()
    assert "sk-wrong-key-2" not in f"{caught.value!r} {events} {session.usage.summary()}"


@pytest.mark.parametrize("mode", ["api_key", "openai_compatible"])
def test_a_tool_that_the_service_runs_goes_to_the_responses_api_with_any_model(mode: str) -> None:
    call = ModelCall(messages=HELLO, tools=[{"type": "web_search"}])
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    found = responses_body("found")
    with LoopbackServer({**found, "output": [searched, *found["output"]]}) as server:
        reply = complete(call, server.role(backend="openai_chat", model=CHAT, auth_mode=mode), CallContext(60.0))
    request = server.requests[-1]
    assert (request.responses, request.body["tools"], request.body["model"]) == (True, [{"type": "web_search"}], CHAT)
    assert (reply.text, reply.finish_reason, reply.tool_calls) == ("found", "stop", ())
