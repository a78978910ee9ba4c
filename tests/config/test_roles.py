"""Labels, roles and default models (models §5.1 and §5.3; rows 19 to 21)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillopt.config.provider_rows import ROWS
from skillopt.config.providers import (
    PROVIDERS,
    ROLES,
    default_model_for_backend,
    get_provider,
    label_roles,
    normalize_backend_name,
    normalize_role_backend,
)
from skillopt.config.resolve import RunConfig, resolve
from skillopt.errors import ConfigError

Run = Callable[..., RunConfig]

LABELS = [
    ("azure_openai", "openai_chat", "openai_chat"),
    ("openai_chat", "openai_chat", "openai_chat"),
    ("azure", "openai_chat", "openai_chat"),
    ("azure-openai", "openai_chat", "openai_chat"),
    ("", "openai_chat", "openai_chat"),
    ("claude_chat", "claude_chat", "claude_chat"),
    ("claude", "claude_chat", "claude_chat"),
    ("anthropic", "claude_chat", "claude_chat"),
    ("codex", "codex_exec", "codex_exec"),
    ("codex_exec", "codex_exec", "codex_exec"),
    ("openai", "codex_exec", "codex_exec"),
    ("copilot_chat", "copilot_chat", "copilot_chat"),
    ("copilot", "copilot_chat", "copilot_chat"),
    ("copilot-cli", "copilot_chat", "copilot_chat"),
    ("github_copilot", "copilot_chat", "copilot_chat"),
    ("openai_compatible", "openai_compatible", "openai_compatible"),
    ("compat", "openai_compatible", "openai_compatible"),
    ("openai-compatible", "openai_compatible", "openai_compatible"),
    ("openai_compatible_chat", "openai_compatible", "openai_compatible"),
    ("claude_code_exec", "openai_chat", "claude_code_exec"),
    ("claude-code", "openai_chat", "claude_code_exec"),
    ("cursor_exec", "openai_chat", "cursor_exec"),
    ("cursor_agent", "openai_chat", "cursor_exec"),
    ("Cursor", "openai_chat", "cursor_exec"),
    ("copilot_exec", "openai_chat", "copilot_exec"),
    ("qwen", "openai_chat", "qwen_chat"),
    ("minimax", "openai_chat", "minimax_chat"),
    ("mock_chat", "mock_chat", "mock_chat"),
    ("local_chat", "bootstrap_demos", "local_chat"),
]
LABELS_BY_NAME = {name: tuple(pair) for name, *pair in LABELS if name not in ("openai", "anthropic")}


@pytest.mark.filterwarnings("ignore:.* chooses .*, not:UserWarning")
@pytest.mark.parametrize(("label", "optimizer", "target"), LABELS)
@pytest.mark.parametrize("start", ["", "openai_chat"])
def test_label_fills_roles_that_say_nothing(run: Run, label: str, optimizer: str, target: str, start: str) -> None:
    roles = f'optimizer_backend: "{start}", target_backend: "{start}"'
    by_file = run(f'model: {{backend: "{label}", {roles}}}\n')
    by_flat = run(f'model_backend: "{label}"\n{roles.replace(", ", chr(10))}\n')
    by_flag = run(f"model: {{{roles}}}\n", flags={"backend": label})
    by_option = run(f"model: {{{roles}}}\n", cfg_options=[f"model.backend={label}"])
    for config in (by_file, by_flat, by_flag, by_option):
        assert (config.model.optimizer_backend, config.model.target_backend) == (optimizer, target)
        assert config.roles["optimizer"].backend == optimizer
        assert config.label == normalize_backend_name(label)


def test_other_roles_survive_the_label(run: Run) -> None:
    config = run("model: {backend: claude, target_backend: qwen}\n")
    assert (config.model.optimizer_backend, config.model.target_backend) == ("claude_chat", "qwen_chat")


ROLE_NAMES = [
    ("claude", "claude_chat"), ("CLAUDE-chat", "claude_chat"), ("claude-code", "claude_code_exec"),
    ("qwen", "qwen_chat"), ("minimax", "minimax_chat"), ("compat", "openai_compatible"),
    ("openai-compatible", "openai_compatible"), ("copilot-cli", "copilot_chat"), ("github-copilot", "copilot_chat"),
    ("Codex-Exec", "codex_exec"), ("cursor-agent", "cursor_exec"), ("copilot_exec", "copilot_exec"),
    (" openai-chat ", "openai_chat"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "backend"), ROLE_NAMES)
@pytest.mark.parametrize("how", ["file", "flat file", "flag", "option", "environment"])
def test_aliases_of_a_role_however_they_are_given(run: Run, name: str, backend: str, how: str) -> None:
    texts = {"file": f'model: {{target_backend: "{name}"}}\n', "flat file": f'target_backend: "{name}"\n'}
    config = run(
        texts.get(how, ""),
        flags={"target_backend": name} if how == "flag" else {},
        cfg_options=[f"model.target_backend={name}"] if how == "option" else [],
        environ={"TARGET_BACKEND": name} if how == "environment" else {},
    )
    assert (config.roles["target"].backend, config.roles["optimizer"].backend) == (backend, "openai_chat")
    row = PROVIDERS[backend]
    default = row.default_model if row.run_model is None else row.run_model
    assert config.roles["target"].model == ("gpt-5.5" if row.shipped_model != "replace" else default)


@pytest.mark.parametrize("command", ["train", "eval"])
@pytest.mark.parametrize("how", ["flag", "option"])
def test_a_role_that_was_given_wins_over_any_label(run: Run, command: str, how: str) -> None:
    for label, pair in LABELS_BY_NAME.items():
        for role, other in (("optimizer", 1), ("target", 0)):
            given = {"flags": {"backend": label, f"{role}_backend": "openai_chat", f"{role}_model": "m"}}
            if how == "option":
                names = {"backend": label, f"{role}_backend": "openai_chat", role: "m"}
                given = {"cfg_options": [f"model.{name}={value}" for name, value in names.items()]}
            config = run(SHIPPED, command=command, **given)
            assert (config.roles[role].backend, config.roles[role].model) == ("openai_chat", "m")
            assert config.roles[("optimizer", "target")[other]].backend == pair[other]
            assert config.source(f"model.{role}_backend").startswith("flag" if how == "flag" else "--cfg-options")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai", ["codex", "Codex's command line", "openai_compatible for the API"]),
        ("anthropic", ["claude_chat", "Claude's command line", "Anthropic's API"]),
    ],
)
def test_names_that_seem_to_mean_an_api(run: Run, name: str, words: list[str]) -> None:
    for given, place in (
        ({"flags": {"backend": name}}, "flag --backend"),
        ({"flags": {"optimizer_backend": name}}, "flag --optimizer_backend"),
        ({"environ": {"OPTIMIZER_BACKEND": name.upper()}}, "env OPTIMIZER_BACKEND"),
    ):
        with pytest.warns(UserWarning) as caught:
            run("", **given)
        (message,) = [str(warning.message) for warning in caught]
        assert message.startswith(f"{place}: {name} chooses ")
        assert all(word in message for word in words)


@pytest.mark.parametrize("how", ["flag", "option"])
def test_explicit_openai_chat_is_never_replaced(run: Run, how: str) -> None:
    given = {"flags": {"target_backend": "openai_chat"}} if how == "flag" else {}
    options = {} if given else {"cfg_options": ["model.target_backend=openai_chat"]}
    config = run("model: {backend: cursor, target: gpt-5.5}\n", **given, **options)
    assert config.model.target_backend == "openai_chat"
    assert config.model.target == "gpt-5.5"


def test_aliases_and_labels_in_role_fields(run: Run) -> None:
    with pytest.warns(UserWarning, match="azure is a label for both roles; for the target it chooses openai_chat"):
        config = run("model: {optimizer_backend: claude, target_backend: azure, optimizer: gpt-5.5}\n")
    assert (config.model.optimizer_backend, config.model.target_backend) == ("claude_chat", "openai_chat")
    assert config.model.optimizer == "claude-sonnet-4-6"
    with pytest.warns(UserWarning, match=r"config.yaml:1: codex is a label .* say codex_exec"):
        assert run("model: {target_backend: codex}\n").model.target_backend == "codex_exec"


def test_role_from_the_environment(run: Run) -> None:
    environ = {"TARGET_BACKEND": "mock_chat"}
    config = run("", environ=environ)
    assert config.roles["target"].backend == "mock_chat"
    assert config.source("model.target_backend") == "env TARGET_BACKEND"
    assert run("model: {backend: compat}\n", environ=environ).roles["target"].backend == "openai_compatible"
    with pytest.raises(ConfigError, match="env OPTIMIZER_BACKEND"):
        run("", environ={"OPTIMIZER_BACKEND": "cursor"})


SHIPPED = "model: {optimizer: gpt-5.5, target: gpt-5.4, optimizer_backend: openai_chat, target_backend: openai_chat}\n"


@pytest.mark.parametrize(
    ("label", "optimizer", "target"),
    [
        ("azure_openai", "gpt-5.5", "gpt-5.4"),
        ("claude", "claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("claude_code_exec", "gpt-5.5", "claude-sonnet-4-6"),
        ("cursor", "gpt-5.5", "composer-2.5"),
        ("copilot_exec", "gpt-5.5", ""),
        ("copilot_chat", "", ""),
        ("minimax", "gpt-5.5", "MiniMax-M3"),
        ("qwen", "gpt-5.5", "Qwen/Qwen3.5-4B"),
        ("codex", "gpt-5.5", "gpt-5.4"),
        ("openai_compatible", "gpt-5.5", "gpt-5.4"),
        ("local_chat", "bootstrap", "smollm2-135m-instruct"),
    ],
)
@pytest.mark.parametrize("command", ["train", "eval"])
def test_default_models(run: Run, label: str, optimizer: str, target: str, command: str) -> None:
    config = run(SHIPPED, flags={"backend": label}, command=command)
    assert (config.model.optimizer, config.model.target) == (optimizer, target)
    flat = "optimizer_model: gpt-5.5\ntarget_model: gpt-5.4\n"
    config = run(flat, flags={"backend": label}, command=command)
    assert (config.roles["optimizer"].model, config.roles["target"].model) == (optimizer, target)


@pytest.mark.parametrize("label", ["claude", "cursor", "copilot_exec", "minimax", "qwen", "local_chat"])
def test_named_models_stay(run: Run, label: str) -> None:
    flags = {"backend": label, "target_model": "gpt-5.5"}
    assert run(SHIPPED, flags=flags).model.target == "gpt-5.5"
    assert run("model: {target: mine}\n", flags={"backend": label}).model.target == "mine"


def test_models_of_a_backend_and_of_the_environment(run: Run) -> None:
    compat = "model: {backend: compat, optimizer: gpt-5.5, target: gpt-5.5, target_openai_compatible_model: own}\n"
    config = run(compat, environ={"OPENAI_COMPATIBLE_MODEL": "from-env", "TARGET_DEPLOYMENT": "other"})
    assert (config.model.optimizer, config.model.target) == ("from-env", "own")
    assert config.source("model.optimizer") == "env OPENAI_COMPATIBLE_MODEL"
    assert run("model: {backend: compat}\n").model.target == "gpt-5.5"
    assert run('model: {backend: compat, target: ""}\n').model.target == "gpt-4o-mini"
    assert run("model: {backend: minimax, minimax_model: M2}\n").model.target == "M2"
    both = run("model: {optimizer_backend: minimax, target_backend: minimax, minimax_model: M2}\n")
    assert (both.model.optimizer, both.model.target) == ("M2", "M2")
    assert run("model: {backend: minimax, minimax_model: M2}\n", flags={"target_model": "M9"}).model.target == "M9"
    assert run("", environ={"TARGET_DEPLOYMENT": "dep"}).model.target == "dep"
    assert run("model: {target: gpt-5.5}\n", environ={"TARGET_DEPLOYMENT": "dep"}).model.target == "gpt-5.5"
    copilot = run("model: {backend: copilot, copilot_chat_target_model: x}\n", environ={})
    assert (copilot.model.optimizer, copilot.model.target) == ("", "x")


def test_openai_compatible_by_yaml_environment_and_flags(run: Run) -> None:
    names = ("base_url", "api_key", "temperature", "timeout_seconds", "max_tokens")
    values = {"base_url": "http://h/v1", "api_key": "k", "temperature": 0.5, "timeout_seconds": 9.0, "max_tokens": 11}
    text = "model: {backend: compat}\n"
    prefix = "openai_compatible_"
    environ = {f"TARGET_{prefix}{name}".upper(): str(values[name]) for name in names}
    flags = {f"target_{prefix}{name}": values[name] for name in names if name != "api_key"}
    assert run(text, environ=environ).roles["target"].settings == values
    assert run(text, environ=environ).roles["optimizer"].settings["base_url"] == "https://api.openai.com/v1"
    keys = {f"{prefix}{name}": values[name] for name in names if name != "api_key"}
    yaml_text = "model:\n  backend: compat\n" + "".join(f"  {name}: {value}\n" for name, value in keys.items())
    for config in (run(yaml_text), run(text, flags=flags)):
        settings = dict(config.roles["target"].settings)
        assert settings.pop("api_key") == ""
        assert settings == {name: values[name] for name in names if name != "api_key"}


def test_effort_and_result_settings(run: Run) -> None:
    role = run("model: {backend: compat, reasoning_effort: high}\n").roles["target"]
    assert role.effort == "high"
    assert role.secrets == {"api_key"}
    assert role.result_settings == {"base_url", "temperature", "max_tokens"}


def test_local_chat_settings(run: Run) -> None:
    role = run("model: {backend: local_chat}\n").roles["target"]
    assert role.settings["stop"] is None
    given = run("model: {backend: local_chat}\n", flags={"local_chat_stop": "\\n,END"}).roles["target"]
    assert given.settings["stop"] == ("\n", "END")
    assert role.settings["model_path"] == ""
    by_file = run('model: {backend: local_chat, local_chat_stop: ["\\n", "\\n\\n"]}\n').roles["target"]
    assert by_file.settings["stop"] == ("\n", "\n\n")


def test_legacy_azure_names_fill_empty_ones(run: Run) -> None:
    text = "model: {azure_endpoint: http://old, azure_openai_api_version: v2, azure_api_version: v1}\n"
    settings = run(text).roles["target"].settings
    assert (settings["endpoint"], settings["api_version"]) == ("http://old", "v2")
    role = run(text, environ={"AZURE_OPENAI_TARGET_AUTH_MODE": "api_key"}).roles["target"]
    assert role.settings["auth_mode"] == "api_key"


@pytest.mark.parametrize(
    ("word", "mode"), [("unset", "server_default"), ("'1'", "enabled"), ("true", "enabled"), ("Off", "disabled")]
)
def test_thinking_modes(run: Run, word: str, mode: str) -> None:
    config = run(f"model: {{backend: qwen, qwen_chat_thinking_mode: {word}}}\n")
    assert config.roles["target"].settings["thinking_mode"] == mode


def test_names() -> None:
    assert normalize_backend_name(None) == "azure_openai"
    assert normalize_backend_name("  OpenAI ") == "codex"
    assert normalize_backend_name("Some-Thing") == "some-thing"
    assert default_model_for_backend("copilot_exec") == default_model_for_backend("copilot") == "gpt-4o"
    assert default_model_for_backend("minimax") == "MiniMax-M3"
    assert default_model_for_backend("nobody") == "gpt-4o"
    assert default_model_for_backend("cursor") == "composer-2.5"
    assert normalize_role_backend("optimizer", "") == "openai_chat"
    assert get_provider("compat") is PROVIDERS["openai_compatible"]
    with pytest.raises(ConfigError, match="did you mean local_chat"):
        get_provider("local_chatt")
    with pytest.raises(ConfigError, match="did you mean"):
        label_roles("clade")
    with pytest.raises(ValueError, match="Unsupported optimizer backend"):
        normalize_role_backend("optimizer", "cursor_exec")
    assert normalize_role_backend("optimizer", "codex_exec") == "codex_exec"


def test_rows_are_consistent() -> None:
    spellings = [name for row in ROWS for name in (row.name, *row.aliases)]
    assert len(set(spellings)) == len(spellings)
    for row in ROWS:
        names = [field.name for field in row.all_fields]
        assert len(set(names)) == len(names)
        for field in row.all_fields:
            assert field.env or field.key or field.role_key
            assert not (field.secret and field.changes_result)
        if row.label_roles:
            for role, backend in zip(("optimizer", "target"), row.label_roles, strict=True):
                assert role in PROVIDERS[backend].roles


CODEX_KEYS = {
    "path": ("codex_exec_path", "codex_path", "codex_cli_bin", "codex_bin"),
    "sandbox": ("codex_exec_sandbox", "codex_sandbox"),
    "profile": ("codex_exec_profile",),
    "reasoning_effort": ("codex_exec_reasoning_effort",),
    "use_sdk": ("codex_exec_use_sdk",),
    "approval_policy": ("codex_exec_approval_policy",),
}


def _layer(form: str, key: str, value: str) -> str:
    return f"model: {{{key}: {value}}}\n" if form == "structured" else f"{key}: {value}\n"


@pytest.mark.parametrize("base_form", ["structured", "flat"])
@pytest.mark.parametrize("child_form", ["structured", "flat"])
@pytest.mark.parametrize("name", CODEX_KEYS)
def test_keys_of_codex_by_any_name_in_any_layer(
    run: Run, write: Callable[..., object], base_form: str, child_form: str, name: str
) -> None:
    low, middle, high = ("read-only", "danger-full-access", "workspace-write") if name == "sandbox" else ("a", "b", "c")
    for base in CODEX_KEYS[name]:
        write(_layer(base_form, base, low), "base.yaml")
        for child in CODEX_KEYS[name]:
            text = "_base_: base.yaml\n" + _layer(child_form, child, middle)
            for more, expected in (
                ({}, middle),
                ({"cfg_options": [f"{CODEX_KEYS[name][-1]}={high}"]}, high),
                ({"cfg_options": [f"model.{base}={low}"], "flags": {CODEX_KEYS[name][0]: high}}, high),
            ):
                more = {**more, "flags": {"target_backend": "codex_exec", **more.get("flags", {})}}
                assert run(text, **more).roles["target"].settings[name] == expected


@pytest.mark.parametrize(
    ("variable", "name", "value"),
    [
        ("CODEX_EXEC_PATH", "path", "x"), ("CODEX_CLI_BIN", "path", "x"), ("CODEX_PATH", "path", "x"),
        ("CODEX_EXEC_SANDBOX", "sandbox", "read-only"), ("CODEX_SANDBOX_MODE", "sandbox", "read-only"),
        ("CODEX_SANDBOX", "sandbox", "read-only"), ("CODEX_EXEC_PROFILE", "profile", "x"),
        ("CODEX_PROFILE", "profile", "x"), ("CODEX_EXEC_NETWORK_ACCESS", "network_access", True),
        ("CODEX_EXEC_WEB_SEARCH", "web_search", True), ("CODEX_EXEC_APPROVAL_POLICY", "approval_policy", "x"),
    ],
)  # fmt: skip
def test_the_base_configuration_keeps_what_the_environment_says_of_codex(
    variable: str, name: str, value: object
) -> None:
    environ = {variable: str(value).lower() if isinstance(value, bool) else str(value)}
    config = resolve("configs/_base_/default.yaml", flags={"backend": "codex"}, environ=environ)
    for role in ROLES:
        assert config.roles[role].settings[name] == value
        assert config.source(f"{role}.{name}") == f"env {variable}"
