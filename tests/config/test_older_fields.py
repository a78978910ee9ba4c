"""A setting and the older one that it replaced."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillopt.config.older_fields import settled
from skillopt.config.provider_rows import QWEN_CHAT
from skillopt.config.run_config import RunConfig
from skillopt.errors import ConfigError

Run = Callable[..., RunConfig]
FIELD = next(field for field in QWEN_CHAT.fields if field.name == "thinking_mode")
UNSET = ("server_default", "default")


@pytest.mark.parametrize(
    ("mine", "older", "expected"),
    [
        (UNSET, (None, "default"), UNSET),
        (UNSET, (True, "c.yaml:3"), ("enabled", "c.yaml:3")),
        (UNSET, (False, "c.yaml:3"), ("server_default", "c.yaml:3")),
        (("disabled", "c.yaml:1"), (None, "default"), ("disabled", "c.yaml:1")),
        (("disabled", "env M"), (True, "env E"), ("disabled", "env M")),
        (("disabled", "env M"), (True, "c.yaml:3"), ("enabled", "c.yaml:3")),
        (("disabled", "c.yaml:1"), (True, "env E"), ("disabled", "c.yaml:1")),
        (("enabled", "c.yaml:1"), (True, "flag --e"), ("enabled", "c.yaml:1")),
        (("server_default", "c.yaml:1"), (False, "c.yaml:2"), ("server_default", "c.yaml:1")),
    ],
)
def test_which_one_holds(mine: tuple[str, str], older: tuple[bool | None, str], expected: tuple[str, str]) -> None:
    assert settled(FIELD, mine, older) == expected


@pytest.mark.parametrize(("mode", "legacy"), [("disabled", True), ("server_default", True), ("enabled", False)])
def test_contradiction_is_refused_with_both_places(mode: str, legacy: bool) -> None:
    with pytest.raises(ConfigError, match=r"Conflicting Qwen thinking settings: c\.yaml:1 .* flag --e "):
        settled(FIELD, (mode, "c.yaml:1"), (legacy, "flag --e"))


def thinking(config: RunConfig, role: str = "target") -> str:
    assert config.roles[role].settings["enable_thinking"] is None
    return str(config.roles[role].settings["thinking_mode"])


@pytest.mark.parametrize(
    ("keys", "environ", "mode"),
    [
        ("", {}, "server_default"),
        ("qwen_chat_thinking_mode: '', ", {"QWEN_CHAT_THINKING_MODE": "enabled"}, "enabled"),
        ("qwen_chat_thinking_mode: '', qwen_chat_enable_thinking: true, ", {}, "enabled"),
        ("qwen_chat_enable_thinking: false, ", {}, "server_default"),
        ("qwen_chat_enable_thinking: true, ", {"QWEN_CHAT_THINKING_MODE": "disabled"}, "enabled"),
        ("qwen_chat_thinking_mode: off, ", {"QWEN_CHAT_ENABLE_THINKING": "1"}, "disabled"),
        ("", {"QWEN_CHAT_THINKING_MODE": "off", "TARGET_QWEN_CHAT_THINKING_MODE": "Enable"}, "enabled"),
        ("", {"QWEN_CHAT_ENABLE_THINKING": "true"}, "enabled"),
        ("", {"QWEN_CHAT_ENABLE_THINKING": "false"}, "server_default"),
        ("", {"QWEN_CHAT_ENABLE_THINKING": "true", "QWEN_CHAT_THINKING_MODE": "disabled"}, "disabled"),
        ("", {"TARGET_QWEN_CHAT_ENABLE_THINKING": "1", "QWEN_CHAT_THINKING_MODE": "disabled"}, "disabled"),
        ("qwen_chat_thinking_mode: enabled, target_qwen_chat_thinking_mode: disabled, ", {}, "disabled"),
        ("qwen_chat_enable_thinking: false, target_qwen_chat_enable_thinking: true, ", {}, "enabled"),
    ],
)
def test_thinking_of_a_run(run: Run, keys: str, environ: dict[str, str], mode: str) -> None:  # W9
    config = run(f"model: {{{keys}backend: qwen}}\n", environ=environ)
    assert thinking(config) == mode


def test_contradiction_stops_a_run_before_it_starts(run: Run) -> None:
    with pytest.raises(ConfigError, match="Conflicting Qwen thinking settings"):
        run("model: {backend: qwen, qwen_chat_thinking_mode: disabled, qwen_chat_enable_thinking: true}\n")


def test_the_source_is_that_of_the_value_that_holds(run: Run) -> None:
    config = run("model: {backend: qwen}\n", environ={"QWEN_CHAT_ENABLE_THINKING": "true"})
    assert config.source("target.thinking_mode") == "env QWEN_CHAT_ENABLE_THINKING"
