"""What is said about settings that the chosen backends cannot apply, and what is not said."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.config.providers import PROVIDERS
from skillopt.config.resolve import RunConfig, resolve

Run = Callable[..., RunConfig]
Write = Callable[..., Path]


def heard(run: Run, text: str = "", **more: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(text, **more)
    assert all(warning.category is UserWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_keys_of_a_backend_that_no_role_uses(run: Run) -> None:
    flags = {"backend": "compat", "qwen_chat_base_url": "http://h/v1", "qwen_chat_max_tokens": 5}
    (notice,) = heard(run, flags=flags)
    assert notice == (
        "flag --qwen_chat_base_url: qwen_chat_base_url, qwen_chat_max_tokens have no effect, because no role that "
        "could read it uses qwen_chat (optimizer: openai_compatible, target: openai_compatible); choose it with "
        "model.optimizer_backend or model.target_backend or model.backend"
    )
    (notice,) = heard(run, cfg_options=["model.optimizer_qwen_chat_temperature=0.1", "model.target_backend=qwen"])
    assert notice.startswith("--cfg-options model.optimizer_qwen_chat_temperature: optimizer_qwen_chat_temperature has")
    (notice,) = heard(run, flags={"minimax_model": "M2"})
    assert "minimax_chat" in notice


def test_a_label_that_a_role_of_the_file_overrules(run: Run) -> None:
    text = "model: {optimizer_backend: compat,\n  target_backend: compat}\n"
    first, second = heard(run, text, flags={"backend": "claude"})
    assert first.endswith("config.yaml:1 says; choose claude_chat with model.optimizer_backend") and first.startswith(
        "flag --backend: claude leaves the optimizer on openai_compatible, as "
    )
    assert "leaves the target on openai_compatible" in second
    assert len(heard(run, text, cfg_options=["model.backend=azure"])) == 2
    (notice,) = heard(run, text, flags={"backend": "qwen_chat"})
    assert "leaves the target" in notice
    assert heard(run, text, flags={"backend": "compat"}) == []
    assert heard(run, flags={"backend": "claude", "target_backend": "compat"}) == []
    assert heard(run, "model: {backend: claude, target_backend: compat}\n") == []


def test_a_file_may_keep_several_backends_ready_once_one_is_chosen(run: Run) -> None:
    text = "model: {{{chosen} qwen_chat_base_url: http://h/v1}}\n"
    (notice,) = heard(run, text.format(chosen=""))
    assert "config.yaml:1: qwen_chat_base_url has no effect" in notice
    assert heard(run, text.format(chosen="backend: compat,")) == []
    assert heard(run, text.format(chosen="target_backend: qwen,")) == []
    assert heard(run, text.format(chosen=""), environ={"TARGET_BACKEND": "mock_chat"}) == []
    assert heard(run, text.format(chosen=""), flags={"backend": "azure"}) == []
    assert heard(run, 'model: {qwen_chat_base_url: "", qwen_chat_max_tokens: null}\n') == []


def test_a_variable_that_a_base_file_keeps_from_being_used(write: Write) -> None:
    base = str(Path("configs/_base_/default.yaml").absolute())
    child = write(f"_base_: {base}\nmodel: {{optimizer_backend: compat}}\n")
    environ = {"OPTIMIZER_BACKEND": "claude", "TARGET_BACKEND": "qwen"}
    (notice,) = heard(lambda _: resolve(child, environ=environ))
    assert notice.startswith("env TARGET_BACKEND: qwen is not used, because ") and "says azure_openai" in notice
    assert heard(lambda _: resolve(child, environ=environ, flags={"backend": "compat"})) == []
    assert heard(lambda _: resolve(child, environ={"TARGET_BACKEND": "openai_chat"})) == []


def test_what_a_base_says_is_left_alone(write: Write) -> None:
    write("model: {reasoning_effort: high, qwen_chat_base_url: http://h/v1, backend: claude}\n", "base.yaml")
    child = write("_base_: base.yaml\nmodel: {backend: local_chat}\n")
    assert heard(lambda _: resolve(child, environ={})) == []
    assert heard(lambda _: resolve({"_base_": str(child)}, environ={})) == []
    base = Path("configs/_base_/default.yaml")
    for label in (name for name, row in PROVIDERS.items() if row.label_roles):
        assert heard(lambda _, label=label: resolve(base, environ={}, flags={"backend": label})) == []


def test_reasoning_effort_that_a_backend_does_not_take(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (notice,) = heard(run, flags={"reasoning_effort": "high", "target_backend": "local_chat"})
    assert notice == (
        "flag --reasoning_effort: reasoning_effort has no effect on the target (local_chat): this backend takes no "
        "reasoning effort"
    )
    (notice,) = heard(run, "model: {reasoning_effort: low, backend: local_chat}\n")
    assert "the optimizer (bootstrap_demos) and the target (local_chat)" in notice
    assert heard(run, flags={"reasoning_effort": "high"}) == []
    assert heard(run, flags={"reasoning_effort": "", "backend": "local_chat"}) == []
    (notice,) = heard(run, flags={"rewrite_reasoning_effort": "low", "backend": "local_chat"})
    assert "rewrite_reasoning_effort has no effect on the optimizer (bootstrap_demos)" in notice


def test_a_trace_that_no_target_writes(run: Run) -> None:
    (notice,) = heard(run, flags={"codex_trace_to_optimizer": True})
    assert notice.endswith("the target is openai_chat, not codex_exec")
    assert heard(run, flags={"codex_trace_to_optimizer": True, "target_backend": "codex_exec"}) == []


def test_a_time_for_a_call_that_is_shorter_than_two_attempts(run: Run) -> None:
    flags = {"backend": "compat", "model_timeout_seconds": 60}
    first, second = heard(run, flags=flags)
    assert first == (
        "flag --model_timeout_seconds: timeout_seconds = 60 does not shorten calls of the optimizer: one attempt may "
        "take 300 s, and a call twice that; set model.optimizer_openai_compatible_timeout_seconds too"
    )
    assert "model.target_openai_compatible_timeout_seconds" in second
    assert heard(run, flags={**flags, "openai_compatible_timeout_seconds": 30}) == []
    assert heard(run, flags={"model_timeout_seconds": 60}) == []
    (notice,) = heard(
        run, flags={"model_timeout_seconds": 60, "target_backend": "codex_exec", "optimizer_backend": "qwen"}
    )
    assert "of the optimizer" in notice  # the time of its task ends the work of an agent


def test_a_variable_that_does_not_fit_and_does_not_matter(run: Run) -> None:
    for word, value in {"true": True, "false": False, "yes": True, "off": False, "1": True, "junk": False}.items():
        environ = {"TARGET_BACKEND": "copilot_exec", "COPILOT_EXEC_ALLOW_ALL_TOOLS": word}
        found = heard(run, environ=environ)
        assert [("COPILOT_EXEC_ALLOW_ALL_TOOLS" in notice, "is ignored" in notice) for notice in found] == [
            (True, True)
        ] * (word == "junk")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert run(environ=environ).roles["target"].settings["allow_all_tools"] is value
