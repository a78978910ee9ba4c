"""The MiniMax backend against a server on loopback."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skillopt import errors
from skillopt.config.resolve import resolve
from skillopt.model.backends.minimax_chat import (
    DEFAULT_REGION,
    REGION_BASE_URLS,
    base_url_for_region,
    base_url_of,
    complete,
    normalize_region,
    thinking_type,
)
from skillopt.model.values import CallContext, ModelCall
from skillopt.testing import LoopbackServer, chat_completion, garbage

HELLO = ModelCall(messages=({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße 東京"}))


def role_of(server: LoopbackServer | None, role: str = "target", *, environ: dict[str, str] | None = None, **keys: Any):
    """The role as a run would have it, resolved from keys and environment."""
    address = {"minimax_base_url": server.url} if server else {}
    given = {f"{role}_backend": "minimax", **address, **{f"minimax_{name}": value for name, value in keys.items()}}
    return resolve(flags=given, environ=environ or {}).roles[role]


def ask(role: Any, call: ModelCall = HELLO, **context: Any):
    return complete(call, role, CallContext(60.0, **context))


def test_the_payload_with_built_in_settings() -> None:
    with LoopbackServer("hi") as server:
        ask(role_of(server))
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body == {
        "model": "MiniMax-M3",
        "messages": [dict(m) for m in HELLO.messages],
        "max_tokens": 8000,
        "temperature": 0.7,
        "thinking": {"type": "disabled"},
    }
    assert "Authorization" not in server.requests[0].headers


def test_the_payload_with_everything_set() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    call = replace(HELLO, tools=tools, tool_choice="auto", effort="high", model="other")
    with LoopbackServer("hi", key="mk") as server:
        role = role_of(
            server, environ={"MINIMAX_API_KEY": "mk"}, temperature="off", max_tokens=100, enable_thinking="true"
        )
        ask(role, call, cap_factor=3)
    assert server.requests[0].body == {
        "model": "other",
        "messages": [dict(m) for m in HELLO.messages],
        "max_tokens": 300,
        "tools": tools,
        "tool_choice": "auto",
        "thinking": {"type": "adaptive"},
    }


@pytest.mark.parametrize(
    ("model", "enabled", "kind"),
    [
        ("MiniMax-M2", False, "adaptive"),
        ("MiniMax-M2.5", False, "adaptive"),
        ("minimax-m2-stable", True, "adaptive"),
        ("MiniMax-M3", False, "disabled"),
        ("MiniMax-M3", True, "adaptive"),
        ("something-else", True, "adaptive"),
        ("something-else", False, "disabled"),
    ],
)
def test_thinking_type_by_model(model: str, enabled: bool, kind: str) -> None:
    assert thinking_type(model, enabled=enabled) == kind


def test_the_regions_are_exactly_these() -> None:
    assert DEFAULT_REGION == "global_en"
    assert dict(REGION_BASE_URLS) == {
        "global_en": "https://api.minimax.io/v1",
        "cn_zh": "https://api.minimaxi.com/v1",
    }


@pytest.mark.parametrize(
    ("given", "region"),
    [("", "global_en"), (None, "global_en"), ("  ", "global_en"), ("Global-EN", "global_en"), ("CN_zh ", "cn_zh")],
)
def test_region_names_are_normalised(given: str | None, region: str) -> None:
    assert normalize_region(given) == region
    assert base_url_for_region(given) == REGION_BASE_URLS[region]


def test_an_unknown_region_is_refused() -> None:
    with pytest.raises(errors.ConfigError, match="Unsupported MiniMax region 'mars'"):
        normalize_region("mars")
    with pytest.raises(errors.ConfigError, match="region"):
        role_of(None, region="mars")


@pytest.mark.parametrize(
    ("keys", "environ", "url"),
    [
        ({}, {}, "https://api.minimax.io/v1"),
        ({"region": "cn-zh"}, {}, "https://api.minimaxi.com/v1"),
        ({}, {"MINIMAX_REGION": "CN-ZH"}, "https://api.minimaxi.com/v1"),
        ({"region": "cn_zh", "base_url": "http://h/v1"}, {}, "http://h/v1"),
        ({"region": "cn_zh"}, {"MINIMAX_BASE_URL": "http://h/v1"}, "http://h/v1"),
        ({"region": "cn_zh", "base_url": ""}, {}, "https://api.minimaxi.com/v1"),
    ],
)
def test_the_address_follows_the_region_unless_it_is_given(keys: Any, environ: Any, url: str) -> None:
    assert base_url_of(role_of(None, environ=environ, **keys).settings) == url


def test_each_role_has_its_own_model_and_settings() -> None:  # W16
    with LoopbackServer("hi") as server:
        flags = {
            "optimizer_backend": "minimax",
            "target_backend": "minimax",
            "minimax_base_url": server.url,
            "minimax_model": "MiniMax-M3",
            "optimizer_minimax_model": "MiniMax-M2.5",
            "target_minimax_max_tokens": 9,
        }
        roles = resolve(flags=flags, environ={}).roles
        for name in ("optimizer", "target"):
            ask(roles[name])
    assert [(r.body["model"], r.body["max_tokens"], r.body["thinking"]["type"]) for r in server.requests] == [
        ("MiniMax-M2.5", 8000, "adaptive"),
        ("MiniMax-M3", 9, "disabled"),
    ]


def test_the_reply_is_read() -> None:
    body = chat_completion(
        "<think>\nhm\n</think>\n\nanswer", tool_calls=[{"function": {"name": "f"}}], finish_reason="tool_calls"
    )
    body["base_resp"] = {"status_code": 0, "status_msg": ""}
    with LoopbackServer(body) as server:
        reply = ask(role_of(server))
    assert (reply.text, reply.reasoning, reply.tool_calls[0].id) == ("answer", "hm", "minimax_tool_0")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1002, errors.RateLimitError),
        (1039, errors.RateLimitError),
        (1004, errors.AuthError),
        (2049, errors.AuthError),
        (1008, errors.AuthError),
        (2013, errors.BadRequestError),
        (1001, errors.TransientError),
        (1013, errors.TransientError),
        (9999, errors.TransientError),
    ],
)
def test_an_error_in_base_resp_has_its_class(code: int, expected: type[Exception]) -> None:
    body = json.dumps({"choices": None, "base_resp": {"status_code": code, "status_msg": "as scripted"}})
    with LoopbackServer(faults=[garbage(body)]) as server, pytest.raises(expected, match="as scripted") as caught:
        ask(role_of(server))
    assert caught.type is expected


@pytest.mark.parametrize("said", ["input new_sensitive", "output new_sensitive"])
def test_sensitive_text_is_a_content_filter(said: str) -> None:
    body = json.dumps({"choices": None, "base_resp": {"status_code": 1026, "status_msg": said}})
    with LoopbackServer(faults=[garbage(body)]) as server, pytest.raises(errors.ContentFilterError):
        ask(role_of(server))
