"""The public setters and getters of the backends: signatures, blanks, last words, nothing written anywhere."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import skillopt.model as model
from skillopt.config.load import load_config
from skillopt.config.providers import PROVIDERS
from skillopt.errors import ConfigError
from skillopt.model import active
from skillopt.testing import ScriptedModel

SETTERS = {
    "openai_chat": (model.configure_azure_openai, True),
    "openai_compatible": (model.configure_openai_compatible, False),
    "qwen_chat": (model.configure_qwen_chat, True),
    "minimax_chat": (model.configure_minimax_chat, False),
    "codex_exec": (model.configure_codex_exec, False),
    "claude_code_exec": (model.configure_claude_code_exec, False),
    "cursor_exec": (model.configure_cursor_exec, False),
    "copilot_exec": (model.configure_copilot_exec, False),
    "copilot_chat": (model.configure_copilot_chat, False),
}
GETTERS: dict[str, Callable[[], dict[str, Any]]] = {
    "codex_exec": model.get_codex_exec_config,
    "claude_code_exec": model.get_claude_code_exec_config,
    "cursor_exec": model.get_cursor_exec_config,
    "copilot_exec": model.get_copilot_exec_config,
    "copilot_chat": model.get_copilot_chat_config,
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for row in PROVIDERS.values():
        for field in row.all_fields:
            for role in ("optimizer", "target"):
                for name in field.env_for(role):
                    monkeypatch.delenv(name, raising=False)
    for name in ("OPTIMIZER_BACKEND", "TARGET_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    before = active._DEFAULT.change(lambda _: None)
    yield
    active._DEFAULT.change(lambda _: before)


def settings(role: str = "target", backend: str | None = None) -> Mapping[str, Any]:
    return active.role_in_force(backend or model.active_session().role(role).backend, role).settings


@pytest.mark.parametrize(("backend", "setter", "by_role"), [(name, *pair) for name, pair in SETTERS.items()])
def test_signatures_say_what_the_rows_say(backend: str, setter: Callable[..., None], by_role: bool) -> None:
    parameters = inspect.signature(setter).parameters
    fields = {field.name: field for field in PROVIDERS[backend].all_fields}
    for name, parameter in parameters.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is None
        role, _, rest = name.partition("_")
        if name != "full_auto":
            found = fields.get({"timeout": "timeout_seconds"}.get(name, name))
            found = found or fields.get(rest if role in ("optimizer", "target") else "")
            assert found is not None and (found.key or found.role_key), name
    if by_role:
        shared = [name for name in parameters if not name.startswith(("optimizer_", "target_"))]
        roles = [f"{role}_{name}" for role in ("optimizer", "target") for name in shared]
        assert list(parameters) == [*shared, *roles]


@pytest.mark.parametrize("backend", SETTERS)
def test_nothing_given_changes_nothing(backend: str) -> None:
    setter, _ = SETTERS[backend]
    setter()
    before = {role: dict(active.role_in_force(backend, role).settings) for role in PROVIDERS[backend].roles}
    setter(**dict.fromkeys(name for name in inspect.signature(setter).parameters))
    assert before == {role: dict(active.role_in_force(backend, role).settings) for role in PROVIDERS[backend].roles}
    assert model.get_backend_name() == "azure_openai"


AZURE = ("endpoint", "api_version", "api_key", "auth_mode", "ad_scope", "managed_identity_client_id")


def test_azure_by_role_and_blanks() -> None:
    model.configure_azure_openai(endpoint=" https://a.openai.azure.com ", api_key="shared", target_api_key="own")
    model.configure_azure_openai(**{name: "" for name in AZURE}, optimizer_auth_mode="api_key", target_endpoint=" ")
    optimizer, target = model.active_session().role("optimizer"), model.active_session().role("target")
    assert (optimizer.settings["api_key"], target.settings["api_key"]) == ("shared", "own")
    assert target.settings["endpoint"] == "https://a.openai.azure.com"
    assert (optimizer.settings["auth_mode"], target.settings["auth_mode"]) == ("api_key", "azure_cli")
    model.configure_azure_openai(api_key="later")
    assert settings("target")["api_key"] == settings("optimizer")["api_key"] == "later"
    assert "later" not in repr(model.active_session().role("target"))


def test_shared_configuration_and_roles_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARGET_AZURE_OPENAI_ENDPOINT", "https://env-target")
    monkeypatch.setenv("AZURE_OPENAI_OPTIMIZER_ENDPOINT", "https://env-optimizer")
    assert model.get_target_backend() == "openai_chat"
    assert (settings("optimizer")["endpoint"], settings("target")["endpoint"]) == (
        "https://env-optimizer",
        "https://env-target",
    )
    model.configure_azure_openai(target_endpoint="https://given")
    assert (settings("optimizer")["endpoint"], settings("target")["endpoint"]) == (
        "https://env-optimizer",
        "https://given",
    )


def test_compat_last_word_holds() -> None:
    model.set_backend("compat")
    model.configure_openai_compatible(base_url="http://a/v1", target_base_url="http://t/v1", temperature=0.5)
    assert (settings("optimizer")["base_url"], settings("target")["base_url"]) == ("http://a/v1", "http://t/v1")
    model.configure_openai_compatible(base_url="http://b/v1", temperature="off", max_tokens="12")
    assert settings("target")["base_url"] == settings("optimizer")["base_url"] == "http://b/v1"
    assert (settings()["temperature"], settings()["max_tokens"]) == (None, 12)
    model.set_target_deployment("first")
    model.configure_openai_compatible(model="second")
    assert model.active_session().role("target").model == "second"
    model.set_target_deployment("third")
    assert model.active_session().role("target").model == "third"
    assert model.active_session().role("optimizer").model == "second"


@pytest.mark.parametrize(
    ("given", "optimizer", "target"),
    [
        ({}, "server_default", "server_default"),
        ({"thinking_mode": ""}, "server_default", "server_default"),
        ({"thinking_mode": "Enabled"}, "enabled", "enabled"),
        ({"thinking_mode": True, "target_thinking_mode": "off"}, "enabled", "disabled"),
        ({"enable_thinking": True}, "enabled", "enabled"),
        ({"enable_thinking": False}, "server_default", "server_default"),
        ({"enable_thinking": "yes", "target_enable_thinking": False}, "enabled", "server_default"),
        ({"enable_thinking": True, "thinking_mode": "on"}, "enabled", "enabled"),
        ({"optimizer_thinking_mode": "server-default"}, "server_default", "server_default"),
    ],
)
def test_qwen_thinking(given: dict[str, Any], optimizer: str, target: str) -> None:
    model.configure_qwen_chat(**given)
    assert model.get_qwen_thinking_modes() == {"optimizer": optimizer, "target": target}


def test_qwen_last_word_and_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    model.set_backend("qwen")
    model.configure_qwen_chat(enable_thinking=True)
    model.configure_qwen_chat(target_thinking_mode="disabled")
    assert model.get_qwen_thinking_modes() == {"optimizer": "enabled", "target": "disabled"}
    assert settings()["thinking_mode"] == "disabled"
    model.configure_qwen_chat(enable_thinking=True)
    assert settings()["thinking_mode"] == "enabled"
    for given in ({"thinking_mode": "disabled", "enable_thinking": True}, {"thinking_mode": "sometimes"}):
        with pytest.raises(ValueError, match=r"Conflicting Qwen thinking settings|thinking_mode must be one of"):
            model.configure_qwen_chat(base_url="http://elsewhere", **given)  # type: ignore[arg-type]
    assert (settings()["thinking_mode"], settings()["base_url"]) == ("enabled", "http://localhost:8000/v1")
    monkeypatch.setenv("QWEN_CHAT_THINKING_MODE", "enabled")
    model.configure_qwen_chat(optimizer_thinking_mode="server_default")
    assert model.get_qwen_thinking_modes()["optimizer"] == "server_default"


def test_qwen_blanks() -> None:
    model.set_backend("qwen")
    model.configure_qwen_chat(api_key="k", temperature=0.1, max_tokens=5, timeout_seconds=9, base_url="http://q")
    model.configure_qwen_chat(api_key="", temperature="", max_tokens="", timeout_seconds="", base_url="")
    assert dict(settings()) == {
        **settings(),
        "api_key": "",
        "temperature": None,
        "max_tokens": 5,
        "base_url": "http://q",
    }
    assert settings()["timeout_seconds"] == 9


def test_minimax() -> None:
    model.set_backend("minimax")
    model.configure_minimax_chat(region="CN-zh", api_key="k", temperature="none", enable_thinking=True)
    assert (settings()["region"], settings()["temperature"]) == ("cn_zh", None)
    with pytest.raises(ValueError, match="region"):
        model.configure_minimax_chat(region="mars", api_key="other")
    assert (settings()["region"], settings()["api_key"]) == ("cn_zh", "k")
    model.configure_minimax_chat(region="", base_url="http://own", api_key="")
    assert (settings()["region"], settings()["base_url"], settings()["api_key"]) == ("global_en", "http://own", "")
    model.configure_minimax_chat(base_url="", region="cn_zh")
    assert settings()["base_url"] == "http://own"


CODEX = {
    "path": "codex",
    "sandbox": "workspace-write",
    "profile": "",
    "full_auto": False,
    "reasoning_effort": "none",
    "use_sdk": "auto",
    "network_access": False,
    "web_search": False,
    "approval_policy": "never",
    "empty_response_retries": 1,
}


def test_codex_settings_are_kept_although_no_role_uses_them() -> None:
    assert model.get_codex_exec_config() == CODEX
    given = {"path": "/opt/codex", "sandbox": "read_only", "profile": "p", "reasoning_effort": "high", "use_sdk": "cli"}
    model.configure_codex_exec(**given, network_access="yes", web_search=True, approval_policy="on-request")
    expected = {**CODEX, **given, "sandbox": "read-only", "network_access": True, "web_search": True}
    assert model.get_codex_exec_config() == {**expected, "approval_policy": "on-request"}
    with pytest.warns(FutureWarning, match="deprecated and ignored"):
        model.configure_codex_exec(full_auto=True, profile="q")
    assert model.get_codex_exec_config()["full_auto"] is False
    assert model.get_codex_exec_config()["profile"] == "q"
    model.configure_codex_exec(**dict.fromkeys(given, ""), approval_policy="", network_access="", web_search="")
    assert model.get_codex_exec_config() == CODEX
    model.configure_codex_exec(path="/opt/codex")
    model.set_backend("codex")
    assert settings()["path"] == settings("optimizer")["path"] == "/opt/codex"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sandbox": "none"}, "Invalid codex_exec sandbox 'none'; expected one of read-only"),
        ({"network_access": "sometimes"}, "codex_exec_network_access must be true or false, not 'sometimes'"),
        ({"web_search": 1}, "codex_exec_web_search must be true or false, not 1"),
    ],
)
def test_codex_refuses_and_changes_nothing(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model.configure_codex_exec(path="/elsewhere", **given)
    assert model.get_codex_exec_config() == CODEX


def test_a_configuration_replaces_what_an_earlier_one_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_PATH", "/env/codex")
    monkeypatch.setenv("CODEX_SANDBOX_MODE", "danger-full-access")
    baseline = {**CODEX, "path": "/env/codex", "sandbox": "danger-full-access"}
    assert model.get_codex_exec_config() == baseline
    model.configure_codex_exec(profile="by-hand", web_search=True)
    model.configure_codex_exec_from_config({"sandbox": "read-only", "codex_exec_network_access": "on", "other": 1})
    assert model.get_codex_exec_config() == {**baseline, "sandbox": "read-only", "network_access": True}
    model.configure_codex_exec_from_config({"model": {"codex_bin": "/alias", "codex_exec_sandbox": ""}})
    assert model.get_codex_exec_config() == {**baseline, "path": "/alias"}
    model.configure_codex_exec_from_config(load_config("configs/_base_/default.yaml"))
    assert model.get_codex_exec_config() == baseline
    with pytest.warns(FutureWarning, match="codex_exec_full_auto"):
        model.configure_codex_exec_from_config({"codex_exec_full_auto": True})
    with pytest.raises(ConfigError, match="codex_exec_web_search must be true or false, not 'sometimes'"):
        model.configure_codex_exec_from_config({"codex_exec_web_search": "sometimes", "codex_exec_profile": "p"})
    assert model.get_codex_exec_config() == baseline


def test_a_configuration_reaches_a_session_that_uses_codex() -> None:
    role = active.role_in_force("codex_exec", "target").with_settings(sandbox="danger-full-access", profile="left")
    with model.use_session(model.Session({"target": role})):
        assert model.get_codex_exec_config()["profile"] == "left"
        model.configure_codex_exec_from_config({"codex_exec_sandbox": "read-only"})
        assert model.get_codex_exec_config() == {**CODEX, "sandbox": "read-only"}
    assert model.get_codex_exec_config() == CODEX


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("search", [True, False])
def test_overrides_of_codex(network: bool, search: bool) -> None:
    expected = [
        *("-c", f"sandbox_workspace_write.network_access={'true' if network else 'false'}"),
        *("-c", f'web_search="{"live" if search else "disabled"}"'),
    ]
    model.configure_codex_exec(network_access=network, web_search=search)
    assert model.build_codex_exec_cli_config_overrides() == expected
    given = {"network_access": str(network), "web_search": search}
    assert model.build_codex_exec_cli_config_overrides(given) == expected
    with pytest.raises(ConfigError, match="codex_exec_web_search must be true or false, not 'maybe'"):
        model.build_codex_exec_cli_config_overrides({"web_search": "maybe"})


def test_the_environment_is_never_written() -> None:
    before = dict(os.environ)
    model.configure_azure_openai(api_key="k", endpoint="https://a", target_api_key="t")
    model.configure_openai_compatible(api_key="k", base_url="http://a")
    model.configure_qwen_chat(api_key="k", thinking_mode="enabled")
    model.configure_minimax_chat(api_key="k", region="cn_zh")
    model.configure_codex_exec(path="/c", sandbox="read-only")
    model.configure_codex_exec_from_config({"codex_exec_path": "/d"})
    model.configure_claude_code_exec(path="/c")
    model.configure_cursor_exec(path="/c")
    model.configure_copilot_exec(path="/c", allow_all_tools=True)
    model.configure_copilot_chat(home="/h")
    model.set_backend("claude")
    model.set_target_deployment("m")
    model.set_optimizer_deployment("m")
    model.set_reasoning_effort("low")
    assert dict(os.environ) == before


def test_sandbox_names() -> None:
    assert model.validate_exec_sandbox(" Read-Only ") == "read-only"
    assert model.validate_exec_sandbox("") == model.validate_exec_sandbox(None) == "workspace-write"


def test_other_agents() -> None:
    assert model.get_claude_code_exec_config() == {
        **{"path": "claude", "profile": "", "use_sdk": "auto", "effort": "medium"},
        **{"max_thinking_tokens": 16384, "empty_response_retries": 1},
    }
    model.configure_claude_code_exec(effort="xhigh", max_thinking_tokens=5, use_sdk=False)
    assert {"effort": "xhigh", "max_thinking_tokens": 5, "use_sdk": "false"}.items() <= set(
        model.get_claude_code_exec_config().items()
    )
    model.configure_claude_code_exec(effort="", max_thinking_tokens="", use_sdk="", path="")
    assert model.get_claude_code_exec_config()["effort"] == "medium"
    assert model.get_cursor_exec_config() == {"path": "cursor-agent", "sandbox": "enabled", "empty_response_retries": 1}
    with pytest.raises(ValueError, match="cursor_exec_sandbox must be one of enabled, disabled"):
        model.configure_cursor_exec(sandbox="open", path="/x")
    model.configure_cursor_exec(sandbox="Disabled", path="/opt/cursor")
    assert model.get_cursor_exec_config()["sandbox"] == "disabled"
    model.configure_cursor_exec(sandbox="", path="")
    assert model.get_cursor_exec_config()["path"] == "cursor-agent"


def test_copilot() -> None:
    assert model.get_copilot_exec_config() == {
        **{"path": "copilot", "home": "", "allow_all_tools": "0", "empty_response_retries": 1}
    }
    chat = {"path": "copilot", "home": "", "optimizer_model": "", "target_model": "", "timeout": 600}
    assert model.get_copilot_chat_config() == chat
    model.configure_copilot_exec(allow_all_tools="yes", path="/opt/copilot")
    assert model.get_copilot_exec_config()["allow_all_tools"] == "1"
    assert model.get_copilot_chat_config()["path"] == "/opt/copilot"
    model.configure_copilot_chat(home="/h", optimizer_model="a", target_model="b", timeout="30", path="")
    assert model.get_copilot_chat_config() == {
        **{"path": "copilot", "home": "/h", "optimizer_model": "a", "target_model": "b", "timeout": 30}
    }
    assert model.get_copilot_exec_config()["home"] == "/h"
    model.set_backend("copilot")
    assert [model.active_session().role(name).model for name in ("optimizer", "target")] == ["a", "b"]
    model.configure_copilot_chat(optimizer_model="", target_model="c", timeout=None)
    assert [model.active_session().role(name).model for name in ("optimizer", "target")] == ["", "c"]
    for timeout in (0, -5, "soon", 1.5):
        with pytest.raises(ValueError, match="copilot_chat_timeout must be a whole number of at least 1"):
            model.configure_copilot_chat(timeout=timeout, home="/other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="copilot_exec_allow_all_tools must be true or false"):
        model.configure_copilot_exec(allow_all_tools="junk")
    assert model.get_copilot_exec_config()["home"] == "/h"


@pytest.mark.parametrize(
    ("word", "shown"), [("true", "1"), ("false", "0"), ("yes", "1"), ("off", "0"), ("1", "1"), ("junk", "0")]
)
def test_copilot_tools_by_the_environment(monkeypatch: pytest.MonkeyPatch, word: str, shown: str) -> None:
    monkeypatch.setenv("COPILOT_EXEC_ALLOW_ALL_TOOLS", word)
    monkeypatch.setenv("EXEC_EMPTY_RESPONSE_RETRIES", "3")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert model.get_copilot_exec_config()["allow_all_tools"] == shown
    assert bool(caught) == (word == "junk")
    assert model.get_cursor_exec_config()["empty_response_retries"] == 3


def test_a_wrong_variable_is_named_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURSOR_EXEC_SANDBOX", "junk")
    assert model.get_target_backend() == "openai_chat"
    with pytest.raises(ValueError, match="CURSOR_EXEC_SANDBOX must be one of enabled, disabled"):
        model.get_cursor_exec_config()


def test_setters_change_only_the_session_of_their_block() -> None:
    scripted = ScriptedModel(lambda call: "x")
    with model.use_session(model.Session({"target": scripted.role()})):
        model.configure_cursor_exec(path="/inside")
        model.configure_azure_openai(api_key="inside")
        model.set_target_deployment("renamed")
        assert model.get_cursor_exec_config()["path"] == "/inside"
        assert model.active_session().role("target").model == "renamed"
    assert model.get_cursor_exec_config()["path"] == "cursor-agent"
    assert active.role_in_force("openai_chat", "target").settings["api_key"] == ""


def test_a_session_that_uses_a_backend_takes_its_settings(tmp_path: Path) -> None:
    role = active.role_in_force("openai_compatible", "target")
    with model.use_session(model.Session({"target": role})):
        model.configure_openai_compatible(base_url="http://here/v1", target_model="m")
        assert settings()["base_url"] == "http://here/v1"
        assert model.active_session().role("target").model == "m"


PAIRS = [
    ("openai_chat", "openai_chat", "azure_openai"), ("openai_chat", "qwen_chat", "qwen_chat"),
    ("claude_chat", "claude_chat", "claude_chat"), ("openai_chat", "minimax_chat", "minimax_chat"),
    ("qwen_chat", "qwen_chat", "qwen_chat"), ("openai_chat", "cursor_exec", "cursor_exec"),
    ("copilot_chat", "copilot_chat", "copilot_chat"), ("openai_chat", "copilot_exec", "copilot_exec"),
    ("codex_exec", "codex_exec", "codex"), ("openai_compatible", "openai_compatible", "openai_compatible"),
    ("openai_chat", "claude_code_exec", "openai_chat+claude_code_exec"),
    ("claude_chat", "qwen_chat", "claude_chat+qwen_chat"),
    ("minimax_chat", "minimax_chat", "minimax_chat+minimax_chat"),
]  # fmt: skip


@pytest.mark.parametrize(("optimizer", "target", "label"), PAIRS)
def test_backend_names(optimizer: str, target: str, label: str) -> None:
    model.set_optimizer_backend(optimizer)
    model.set_target_backend(target)
    assert model.get_backend_name() == label
    assert model.is_optimizer_chat_backend()
    assert model.is_target_exec_backend() != model.is_target_chat_backend()
    assert model.is_target_exec_backend() == target.endswith("_exec")


@pytest.mark.parametrize(
    ("label", "pair"),
    [
        ("codex", ("codex_exec", "codex_exec")),
        ("cursor", ("openai_chat", "cursor_exec")),
        ("copilot_cli", ("copilot_chat", "copilot_chat")),
        ("copilot_exec", ("openai_chat", "copilot_exec")),
        ("Qwen", ("openai_chat", "qwen_chat")),
        ("", ("openai_chat", "openai_chat")),
    ],
)
def test_labels(label: str, pair: tuple[str, str]) -> None:
    model.set_backend(label)
    assert (model.get_optimizer_backend(), model.get_target_backend()) == pair
    if model.is_target_exec_backend():
        with pytest.raises(NotImplementedError, match="Exec backends"):
            model.chat_target("s", "u")
        with pytest.raises(NotImplementedError, match="Exec backends"):
            model.chat_target_messages([{"role": "user", "content": "u"}])


def test_names_that_mislead_warn_here_too() -> None:
    with pytest.warns(UserWarning, match=r"openai chooses codex .*Codex's command line.* not OpenAI's API") as caught:
        assert model.set_backend("openai") == "codex"
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="for the optimizer it chooses openai_chat; say openai_chat") as caught:
        model.set_optimizer_backend("azure")
    assert caught[0].filename == __file__


def test_an_optimizer_on_codex_does_not_change_the_target() -> None:
    model.set_optimizer_backend("codex_exec")
    assert (model.get_optimizer_backend(), model.get_target_backend()) == ("codex_exec", "openai_chat")
    with pytest.raises(ValueError, match="Unsupported optimizer backend 'cursor_exec', which can only be the target"):
        model.set_optimizer_backend("cursor_exec")
    assert model.get_optimizer_backend() == "codex_exec"
