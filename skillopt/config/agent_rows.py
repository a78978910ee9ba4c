"""Rows of the backends that are coding agents: they work in a prepared folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from skillopt.config.provider_fields import COPILOT_HOME, COPILOT_PATH, field_row, model_field, shared
from skillopt.config.provider_row import ROLES, Provider, ProviderField, Role, Sdk
from skillopt.errors import ConfigError, MissingExtraError

_BACKENDS = "skillopt.model.backends."
_HARNESS = "skillopt.model.harness."
_AGENT = frozenset({"remote", "images"})
_TARGET_ONLY: tuple[Role, ...] = ("target",)
_SDK_WORDS = frozenset({"1", "true", "yes", "on", "sdk"})
_CLI_WORDS = frozenset({"", "auto", "0", "false", "no", "off", "cli"})
_EMPTY_RETRIES = field_row(
    "empty_response_retries",
    "int",
    1,
    "Further attempts of an agent that ended with an empty answer.",
    env=("EXEC_EMPTY_RESPONSE_RETRIES",),
    minimum=0,
    changes_result=False,
)


def wants_sdk(settings: Mapping[str, object]) -> bool:
    """True when the settings of an agent ask for its SDK in place of its command line."""
    return _word(settings) in _SDK_WORDS


def check_sdk(row: Provider, settings: Mapping[str, object], source: str) -> None:
    """Refuse a mode that there is not, and an SDK that is not installed. `source` says where the mode was set.

    Raises ConfigError, or MissingExtraError with the command that installs the package.
    """
    if row.sdk is None:
        return
    if _word(settings) not in _SDK_WORDS | _CLI_WORDS:
        raise ConfigError(
            f"{source}: use_sdk of {row.name} is {str(settings['use_sdk'])!r}; expected sdk, or auto or cli (the "
            "command line)."
        )
    if wants_sdk(settings) and not installed(row.sdk):
        raise MissingExtraError(
            f"{source}: {row.name} is to run through its SDK, the package {row.sdk.package}, which is not installed; "
            f"run: {install_command(row.sdk)} (or set use_sdk to cli)."
        )


def installed(sdk: Sdk) -> bool:
    """Whether the package of an SDK is there; it is not imported."""
    try:
        return importlib.util.find_spec(sdk.package) is not None
    except ValueError:  # a stand-in among the imported modules
        return False


def install_command(sdk: Sdk) -> str:
    """What installs an SDK."""
    return f'pip install "skillopt[{sdk.extra}]"'


def _word(settings: Mapping[str, object]) -> str:
    value = settings.get("use_sdk")
    return "" if value is None else str(value).strip().lower()


def _use_sdk(prefix: str, sdk: Sdk) -> ProviderField:
    doc = f"auto or cli: the command line; sdk: its Python SDK ({install_command(sdk)}), never both."
    return shared(prefix, "use_sdk", "str", "auto", doc)


_CODEX_SDK, _CLAUDE_SDK = Sdk("openai_codex_sdk", "codex"), Sdk("claude_agent_sdk", "claude")


CODEX_EXEC = Provider(
    "codex_exec",
    ROLES,
    "both",
    "gpt-4o",
    "Codex's command line: as target a coding agent, as optimizer a chat model, read-only in an empty folder.",
    module=_BACKENDS + "codex_exec",
    capabilities=_AGENT | {"effort", "tools", "usage", "structured"},
    label_roles=("codex_exec", "codex_exec"),
    shipped_model="keep",
    model_field=model_field("{ROLE}_DEPLOYMENT"),
    fields=(
        shared(
            "codex_exec",
            "path",
            "str",
            "codex",
            "Codex command line.",
            changes_result=False,
            env=("CODEX_EXEC_PATH", "CODEX_CLI_BIN", "CODEX_PATH"),
            key_aliases=("codex_path", "codex_cli_bin", "codex_bin"),
        ),
        shared(
            "codex_exec",
            "sandbox",
            "str",
            "workspace-write",
            "Sandbox of the agent when its task lets it edit files; else it is read-only.",
            env=("CODEX_EXEC_SANDBOX", "CODEX_SANDBOX_MODE", "CODEX_SANDBOX"),
            choices=("read-only", "workspace-write", "danger-full-access"),
            key_aliases=("sandbox", "codex_sandbox"),
        ),
        shared("codex_exec", "profile", "str", "", "Codex profile.", env=("CODEX_EXEC_PROFILE", "CODEX_PROFILE")),
        shared("codex_exec", "reasoning_effort", "str", "none", "Reasoning effort of the agent."),
        _use_sdk("codex_exec", _CODEX_SDK),
        shared("codex_exec", "network_access", "bool", False, "May use the network."),
        shared("codex_exec", "web_search", "bool", False, "May search the web."),
        shared("codex_exec", "approval_policy", "str", "never", "Approval policy."),
        field_row(
            "working_directory",
            "str",
            "",
            "Folder that the chat form may read, never write; blank: a new empty one for each call.",
            env=("CODEX_WORKING_DIRECTORY",),
        ),
        shared(
            "codex_exec",
            "timeout_seconds",
            "float",
            600.0,
            "Seconds for one call of the chat form.",
            minimum=1,
            changes_result=False,
        ),
        _EMPTY_RETRIES,
    ),
    sdk=_CODEX_SDK,
)

CLAUDE_CODE_EXEC = Provider(
    "claude_code_exec",
    _TARGET_ONLY,
    "exec",
    "claude-sonnet-4-6",
    "Claude Code as target.",
    aliases=("claude_code",),
    module=_HARNESS + "claude_code",
    capabilities=_AGENT | {"effort", "usage"},
    label_roles=("openai_chat", "claude_code_exec"),
    model_field=model_field("{ROLE}_DEPLOYMENT"),
    fields=(
        shared("claude_code_exec", "path", "str", "claude", "Claude Code command line.", changes_result=False),
        shared(
            "claude_code_exec",
            "profile",
            "str",
            "",
            "Name that it is told as its profile; a set one also turns Bedrock off.",
        ),
        _use_sdk("claude_code_exec", _CLAUDE_SDK),
        shared("claude_code_exec", "effort", "str", "medium", "Reasoning effort of the agent."),
        shared(
            "claude_code_exec",
            "max_thinking_tokens",
            "int",
            16384,
            "Thinking tokens of the agent.",
            minimum=0,
            tolerant=True,
        ),
        _EMPTY_RETRIES,
    ),
    sdk=_CLAUDE_SDK,
)

CURSOR_EXEC = Provider(
    "cursor_exec",
    _TARGET_ONLY,
    "exec",
    "composer-2.5",
    "Cursor's agent as target.",
    aliases=("cursor", "cursor_agent"),
    module=_HARNESS + "cursor",
    capabilities=_AGENT,
    label_roles=("openai_chat", "cursor_exec"),
    model_field=model_field("{ROLE}_DEPLOYMENT"),
    fields=(
        shared("cursor_exec", "path", "str", "cursor-agent", "Cursor command line.", changes_result=False),
        shared("cursor_exec", "sandbox", "str", "enabled", "Sandbox.", choices=("enabled", "disabled")),
        _EMPTY_RETRIES,
    ),
)

COPILOT_EXEC = Provider(
    "copilot_exec",
    _TARGET_ONLY,
    "exec",
    "gpt-4o",
    "GitHub Copilot's agent as target.",
    module=_HARNESS + "copilot",
    capabilities=_AGENT,
    label_roles=("openai_chat", "copilot_exec"),
    run_model="",
    fields=(
        COPILOT_PATH,
        COPILOT_HOME,
        shared("copilot_exec", "allow_all_tools", "bool", False, "May use every tool when editing.", tolerant=True),
        _EMPTY_RETRIES,
    ),
)
