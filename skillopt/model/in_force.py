"""The public getters of the backends' settings: what is in force, whether a role uses the backend or not.

They read the active session, what the setters gave, the environment and the built-in values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt.config.provider_row import ROLES
from skillopt.config.providers import get_provider
from skillopt.errors import ConfigError
from skillopt.model.active import role_in_force
from skillopt.types import RoleConfig

_CODEX = "codex_exec"
_CODEX_NAMES = (
    *("path", "sandbox", "profile", "full_auto", "reasoning_effort", "use_sdk", "network_access", "web_search"),
    *("approval_policy", "empty_response_retries"),
)


def get_qwen_thinking_modes() -> dict[str, str]:
    """`{"optimizer": mode, "target": mode}`: `server_default`, `enabled` or `disabled`, as requests would say it."""
    return qwen_thinking_modes({role: role_in_force("qwen_chat", role) for role in ROLES})


def qwen_thinking_modes(roles: Mapping[str, RoleConfig]) -> dict[str, str]:
    """The thinking mode of those roles that use `qwen_chat`."""
    modes = {name: role.settings.get("thinking_mode") for name, role in roles.items() if role.backend == "qwen_chat"}
    return {name: str(mode or "server_default") for name, mode in modes.items()}


def get_codex_exec_config() -> dict[str, Any]:
    """The settings of `codex_exec` in force. `full_auto` is always False."""
    settings = {**role_in_force(_CODEX, "target").settings, "full_auto": False}
    return {name: settings[name] for name in _CODEX_NAMES}


def get_claude_code_exec_config() -> dict[str, Any]:
    """The settings of `claude_code_exec` in force."""
    return dict(role_in_force("claude_code_exec", "target").settings)


def get_cursor_exec_config() -> dict[str, Any]:
    """The settings of `cursor_exec` in force. Raises ConfigError for a variable with a wrong value."""
    return dict(role_in_force("cursor_exec", "target").settings)


def get_copilot_exec_config() -> dict[str, Any]:
    """The settings of `copilot_exec` in force. `allow_all_tools` is "0" or "1"."""
    settings = role_in_force("copilot_exec", "target").settings
    return {**settings, "allow_all_tools": "1" if settings["allow_all_tools"] else "0"}


def get_copilot_chat_config() -> dict[str, Any]:
    """The settings of `copilot_chat` in force. Raises ConfigError for a time limit that is not a positive number."""
    roles = {role: role_in_force("copilot_chat", role) for role in ROLES}
    settings = roles["target"].settings
    models = {f"{name}_model": role.model for name, role in roles.items()}
    return {"path": settings["path"], "home": settings["home"], **models, "timeout": settings["timeout_seconds"]}


def validate_exec_sandbox(sandbox: str | None) -> str:
    """The sandbox of Codex by its name; blank is the built-in one. Raises ConfigError for one that there is not."""
    field = next(field for field in get_provider(_CODEX).fields if field.name == "sandbox")
    name = str(sandbox or "").strip().lower().replace("_", "-") or str(field.default)
    if name not in field.choices:
        raise ConfigError(f"Invalid codex_exec sandbox {sandbox!r}; expected one of {', '.join(field.choices)}")
    return name


def build_codex_exec_cli_config_overrides(cfg: Mapping[str, Any] | None = None) -> list[str]:
    """The `-c` arguments of Codex's command line for network and web search, by `cfg` or by the settings in force.

    Raises ConfigError, naming the key, for a value that is neither true nor false.
    """
    if cfg is None:
        settings: Mapping[str, Any] = role_in_force(_CODEX, "target").settings
    else:
        settings = {name: _true_or_false(cfg.get(name), name) for name in ("network_access", "web_search")}
    network, search = settings["network_access"], settings["web_search"]
    return [
        *("-c", f"sandbox_workspace_write.network_access={str(bool(network)).lower()}"),
        *("-c", f'web_search="{"live" if search else "disabled"}"'),
    ]


def _true_or_false(value: object, name: str) -> bool:
    from skillopt.config.casting import ValueProblem, check_value
    from skillopt.config.keys import find_key

    key = find_key(f"codex_exec_{name}")
    assert key is not None
    try:
        return bool(check_value(key, value))
    except ValueProblem as error:
        raise ConfigError(f"{key.name} {error}") from None
