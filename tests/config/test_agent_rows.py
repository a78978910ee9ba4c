"""Rows of the command lines: what they can be used for, and the settings that their backends read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillopt.config.flags import flag_specs
from skillopt.config.providers import available_backends, get_provider
from skillopt.config.resolve import RunConfig, check_available, resolve
from skillopt.errors import ConfigError, MissingExtraError


def config(model: Mapping[str, object], **environ: str) -> RunConfig:
    return resolve({"model": dict(model), "env": {"name": "jsonl"}}, environ=environ)


AGENTS = ("codex_exec", "claude_code_exec", "cursor_exec", "copilot_exec")


@pytest.mark.parametrize("name", AGENTS)
def test_agents_are_ready_as_targets_and_codex_as_optimizer_too(name: str) -> None:
    row = get_provider(name)
    assert name in available_backends("target")
    assert (row.serves("target"), row.serves("judge"), row.is_agent("target")) == (True, False, True)
    assert row.serves("optimizer") == (name == "codex_exec")
    assert row.is_agent("optimizer") == (name != "codex_exec")
    check_available(config({"optimizer_backend": "local_chat", "target_backend": name}))


PACKAGES = {"codex_exec": ("openai_codex_sdk", "codex"), "claude_code_exec": ("claude_agent_sdk", "claude")}


@pytest.fixture
def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no SDK is installed."""
    for package, _ in PACKAGES.values():
        monkeypatch.setitem(sys.modules, package, None)


def with_mode(name: str, value: object, **model: object) -> RunConfig:
    return config({"optimizer_backend": "local_chat", "target_backend": name, f"{name}_use_sdk": value, **model})


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("value", ["sdk", "On", "1", "true"])
def test_an_sdk_that_is_not_installed_is_told_up_front_with_its_command(no_sdk: None, name: str, value: object) -> None:
    package, extra = PACKAGES[name]
    with pytest.raises(MissingExtraError) as caught:
        check_available(with_mode(name, value))
    said = str(caught.value)
    assert package in said and f'pip install "skillopt[{extra}]"' in said and "use_sdk" in said and "\n" not in said
    assert caught.value.exit_code == 2
    check_available(with_mode(name, value, target_backend="local_chat"))


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("value", ["cli", "auto", "", None, "0", "no", "Off"])
def test_the_command_line_needs_no_package(no_sdk: None, name: str, value: object) -> None:
    check_available(with_mode(name, value))


@pytest.mark.parametrize("name", PACKAGES)
def test_an_sdk_that_is_installed_may_be_chosen(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, _ = PACKAGES[name]
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise SystemExit('imported')", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    check_available(with_mode(name, "sdk"))
    assert package not in sys.modules


@pytest.mark.parametrize("name", PACKAGES)
def test_a_mode_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"use_sdk of {name} is 'skd'; expected sdk, or auto or cli"):
        check_available(with_mode(name, "skd"))


def test_codex_as_optimizer_has_no_sdk_to_miss(no_sdk: None) -> None:
    model = {"optimizer_backend": "codex_exec", "target_backend": "local_chat", "codex_exec_use_sdk": "sdk"}
    check_available(config(model))


def test_codex_as_optimizer_beside_a_chat_target_passes() -> None:
    check_available(config({"optimizer_backend": "codex_exec", "target_backend": "copilot_chat"}))


def test_only_labels_whose_both_backends_are_ready_are_named_as_ready() -> None:
    ready = {spec.name: spec.help.partition("Ready")[2].partition("Not yet")[0] for spec in flag_specs("train")}
    assert "copilot_chat" in ready["backend"]
    assert "codex_exec" in ready["optimizer_backend"]
    assert set(AGENTS) <= set(ready["target_backend"].replace(",", " ").replace(".", " ").replace(":", " ").split())
    assert "cursor_exec" not in ready["optimizer_backend"]


def test_copilots_time_is_the_one_that_the_call_path_reads() -> None:
    backend = {"backend": "copilot_chat"}
    assert config(backend).roles["target"].settings["timeout_seconds"] == 600
    assert config({**backend, "copilot_chat_timeout": 30}).roles["target"].settings["timeout_seconds"] == 30
    assert config(backend, COPILOT_CHAT_TIMEOUT="45").roles["optimizer"].settings["timeout_seconds"] == 45
    assert config({**backend, "copilot_chat_timeout": None}).roles["target"].settings["timeout_seconds"] == 600


@pytest.mark.parametrize("value", [0, -1, 1.5, "soon", True])
def test_copilots_time_is_a_positive_whole_number(value: object) -> None:
    with pytest.raises(ConfigError, match="copilot_chat_timeout"):
        config({"backend": "copilot_chat", "copilot_chat_timeout": value})


def test_codex_has_a_time_limit_and_an_empty_folder_unless_one_is_named() -> None:
    model = {"optimizer_backend": "codex_exec", "target_backend": "local_chat"}
    settings = config(model).roles["optimizer"].settings
    assert (settings["timeout_seconds"], settings["working_directory"]) == (600, "")
    chosen = config(model, CODEX_WORKING_DIRECTORY="/w", CODEX_EXEC_TIMEOUT_SECONDS="9").roles["optimizer"].settings
    assert (chosen["timeout_seconds"], chosen["working_directory"]) == (9, "/w")
