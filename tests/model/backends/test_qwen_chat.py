"""The Qwen backend against a server on loopback."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest

from skillopt import errors
from skillopt.config.resolve import resolve
from skillopt.model.backends.qwen_chat import complete, thinking_mode
from skillopt.model.values import CallContext, ModelCall, Resources
from skillopt.testing import LoopbackServer, chat_completion, status
from skillopt.types import RoleConfig

HELLO = ModelCall(messages=({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße 東京"}))


def role_of(server: LoopbackServer, role: str = "target", *, environ: dict[str, str] | None = None, **keys: Any):
    """The role as a run would have it, resolved from keys and environment."""
    given = {f"{role}_backend": "qwen", f"{role}_model": "qwen-test", **{f"qwen_chat_{n}": v for n, v in keys.items()}}
    return resolve(flags={**given, "qwen_chat_base_url": server.url}, environ=environ or {}).roles[role]


def ask(role: RoleConfig, call: ModelCall = HELLO, **context: Any):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return complete(call, role, CallContext(60.0, **context))


def test_the_payload_with_built_in_settings() -> None:
    with LoopbackServer("hi") as server:
        ask(role_of(server))
    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.body == {
        "model": "qwen-test",
        "messages": [dict(m) for m in HELLO.messages],
        "max_tokens": 8000,
        "temperature": 0.7,
    }
    assert "Authorization" not in request.headers
    assert request.headers["Content-Type"] == "application/json"


def test_the_payload_with_everything_set() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    call = replace(HELLO, tools=tools, tool_choice="required", effort="high")
    with LoopbackServer("hi", key="qk") as server:
        environ = {"QWEN_CHAT_USE_MAX_COMPLETION_TOKENS": "1", "QWEN_CHAT_API_KEY": "qk"}
        keys = {"temperature": "0.2", "max_tokens": 100, "thinking_mode": "disabled"}
        ask(role_of(server, environ=environ, **keys), call, cap_factor=2)
    assert server.requests[0].body == {
        "model": "qwen-test",
        "messages": [dict(m) for m in HELLO.messages],
        "max_completion_tokens": 200,
        "temperature": 0.2,
        "tools": tools,
        "tool_choice": "required",
        "chat_template_kwargs": {"enable_thinking": False},
    }


@pytest.mark.parametrize("word", ["", "none", "off", "null", "OFF"])
def test_words_that_leave_the_temperature_out(word: str) -> None:
    with LoopbackServer("hi") as server:
        ask(role_of(server, environ={"QWEN_CHAT_TEMPERATURE": word}))
        ask(role_of(server, environ={"QWEN_CHAT_TEMPERATURE": "0"}))
    assert "temperature" not in server.requests[0].body
    assert server.requests[1].body["temperature"] == 0


@pytest.mark.parametrize(
    ("word", "sent"),
    [
        *((word, None) for word in ("server_default", "server-default", "unset", "auto", "none", "null", "")),
        *((word, True) for word in ("1", "true", "yes", "on", "enabled", "enable", "Enabled", True)),
        *((word, False) for word in ("0", "false", "no", "off", "disabled", "DISABLE", False)),
    ],
)
def test_thinking_words(word: object, sent: bool | None) -> None:
    with LoopbackServer("hi") as server:
        ask(role_of(server, thinking_mode=word))
    body = server.requests[0].body
    assert body.get("chat_template_kwargs") == (None if sent is None else {"enable_thinking": sent})


def test_a_word_that_is_none_is_refused() -> None:
    with LoopbackServer() as server, pytest.raises(errors.ConfigError, match="thinking_mode"):
        role_of(server, thinking_mode="enabeld")


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({}, "server_default"),
        ({"thinking_mode": None, "enable_thinking": True}, "enabled"),
        ({"thinking_mode": "", "enable_thinking": False}, "server_default"),
        ({"thinking_mode": "disabled"}, "disabled"),
    ],
)
def test_thinking_of_settings_that_nobody_resolved(settings: dict[str, Any], mode: str) -> None:
    assert thinking_mode(settings) == mode


def test_one_warning_a_role_and_session_while_the_server_decides() -> None:
    resources = Resources()
    with LoopbackServer("hi") as server:
        roles = [role_of(server, name) for name in ("target", "optimizer")]
        with pytest.warns(RuntimeWarning) as caught:
            for role in (*roles, *roles):
                complete(HELLO, role, CallContext(60.0, resources=resources))
        complete(HELLO, role_of(server, thinking_mode="enabled"), CallContext(60.0))  # a warning would be an error
    assert [str(w.message).split(" model")[0] for w in caught] == ["Whether the target", "Whether the optimizer"]
    assert "model.target_qwen_chat_thinking_mode" in str(caught[0].message)


@pytest.mark.parametrize("code", [400, 422])
def test_a_gateway_that_refuses_the_thinking_field_is_told_with_the_setting(code: int) -> None:  # C139
    refusal = '{"error": {"message": "Unrecognized request argument supplied: chat_template_kwargs"}}'
    with LoopbackServer(faults=[status(code, body=refusal)]) as server:
        with pytest.raises(errors.ModelSetupError) as caught:
            ask(role_of(server, thinking_mode="enabled"))
        ask(role_of(server))
    said = str(caught.value)
    assert "Unrecognized request argument" in said
    assert "model.target_qwen_chat_thinking_mode" in said and "TARGET_QWEN_CHAT_THINKING_MODE" in said
    assert "chat_template_kwargs" in server.requests[0].body  # asked for, so never left out in silence
    assert "chat_template_kwargs" not in server.requests[1].body


def test_another_refusal_stays_what_it_is() -> None:
    refusal = status(400, body='{"error": {"message": "bad"}}')
    with LoopbackServer(faults=[refusal]) as server, pytest.raises(errors.BadRequestError) as caught:
        ask(role_of(server, thinking_mode="enabled"))
    assert "thinking_mode" not in str(caught.value)


def test_the_reply_is_read() -> None:
    calls = [{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g", "arguments": "{}"}}]
    usage = {"input_tokens": 3, "output_tokens": 2}
    body = chat_completion("thought\n</think>\n\nanswer", tool_calls=calls, usage=usage, finish_reason="tool_calls")
    with LoopbackServer(body) as server:
        reply = ask(role_of(server))
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("answer", "thought", "tool_calls")
    assert [c.id for c in reply.tool_calls] == ["qwen_tool_0", "qwen_tool_1"]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (3, 2, 5)


def test_each_role_has_its_own_settings() -> None:
    with LoopbackServer("hi") as server:
        flags = {
            "backend": "qwen",
            "optimizer_backend": "qwen",
            "qwen_chat_base_url": server.url,
            "qwen_chat_max_tokens": 50,
            "target_qwen_chat_max_tokens": 20,
            "optimizer_qwen_chat_thinking_mode": "on",
        }
        environ = {"OPTIMIZER_QWEN_CHAT_MODEL": "o", "QWEN_CHAT_MODEL": "t"}
        roles = resolve(flags=flags, environ=environ).roles
        for name in ("optimizer", "target"):
            ask(roles[name])
    assert [(r.body["model"], r.body["max_tokens"]) for r in server.requests] == [("o", 50), ("t", 20)]
    assert ["chat_template_kwargs" in r.body for r in server.requests] == [True, False]
