"""The table of backends: one row each. Adding a backend is one module, one row here, and tests."""

from __future__ import annotations

from skillopt.config.agent_rows import CLAUDE_CODE_EXEC, CODEX_EXEC, COPILOT_EXEC, CURSOR_EXEC
from skillopt.config.local_rows import BOOTSTRAP_DEMOS, LOCAL_CHAT, MOCK_CHAT
from skillopt.config.provider_fields import COPILOT_HOME, COPILOT_PATH, azure, family, field_row, model_field
from skillopt.config.provider_row import ROLES, Provider

_TEMPERATURE = "Temperature; none (or blank in the environment): not sent."
_OMIT = ("", "none", "off", "null")
_REMOTE_CHAT = frozenset({"remote", "tools", "images", "token_cap", "usage", "system"})
_CLI_CHAT = frozenset({"usage", "system", "structured", "effort"})
_BACKENDS = "skillopt.model.backends."
_AUTH_MODES = {
    "key": "api_key",
    "aad": "managed_identity",
    "azure_ad": "managed_identity",
    "compat": "openai_compatible",
    "openai": "openai_compatible",
}


OPENAI_CHAT = Provider(
    "openai_chat",
    ROLES,
    "chat",
    "gpt-4o",
    "Azure OpenAI, or OpenAI and servers like it (by the auth mode).",
    module=_BACKENDS + "openai_chat",
    capabilities=_REMOTE_CHAT | {"effort", "web_search"},
    shipped_model="keep",
    model_field=model_field("{ROLE}_DEPLOYMENT"),
    fields=(
        azure("endpoint", "", "Address of the Azure OpenAI resource.", legacy_key="azure_endpoint"),
        azure("api_version", "2024-12-01-preview", "Version of the Azure API.", legacy_key="azure_api_version"),
        azure("api_key", "", "Key.", legacy_key="azure_api_key", secret=True, changes_result=False),
        azure(
            "auth_mode",
            "azure_cli",
            "How to sign in: api_key, azure_cli, managed_identity or openai_compatible.",
            choices=("api_key", "azure_cli", "managed_identity", "openai_compatible"),
            synonyms=_AUTH_MODES,
            changes_result=False,
        ),
        azure(
            "ad_scope",
            "https://cognitiveservices.azure.com/.default",
            "Scope of the sign-in token.",
            changes_result=False,
        ),
        azure("managed_identity_client_id", "", "Client id of the managed identity.", changes_result=False),
    ),
)

_COMPAT = "openai_compatible"
OPENAI_COMPATIBLE = Provider(
    _COMPAT,
    ROLES,
    "chat",
    "gpt-4o-mini",
    "Any server that speaks OpenAI's chat completions. model.reasoning_effort is sent when it was chosen for the run: "
    "the medium of the shipped base configuration is not, because many such servers refuse the field.",
    aliases=("openai_compatible_chat", "compat"),
    module=_BACKENDS + "openai_compatible",
    capabilities=_REMOTE_CHAT | {"effort"},
    label_roles=(_COMPAT, _COMPAT),
    shipped_model="last",
    shipped_effort="replace",
    model_field=model_field(
        "{ROLE}_OPENAI_COMPATIBLE_MODEL",
        "OPENAI_COMPATIBLE_MODEL",
        "{ROLE}_DEPLOYMENT",
        key="openai_compatible_model",
        role_key="{role}_openai_compatible_model",
    ),
    fields=(
        family(_COMPAT, "base_url", "str", "https://api.openai.com/v1", "Address of the server."),
        family(_COMPAT, "api_key", "str", "", "Key.", secret=True, changes_result=False),
        family(_COMPAT, "temperature", "float", None, "Temperature; unset: not sent.", omit_words=_OMIT, minimum=0),
        family(_COMPAT, "timeout_seconds", "float", 300.0, "Seconds for one request.", changes_result=False),
        family(_COMPAT, "max_tokens", "int", 8000, "Output tokens of one call at most.", minimum=1),
    ),
)

CLAUDE_CHAT = Provider(
    "claude_chat",
    ROLES,
    "chat",
    "claude-sonnet-4-6",
    "Claude's command line as a chat model.",
    aliases=("claude", "anthropic"),
    module=_BACKENDS + "claude_chat",
    capabilities=_CLI_CHAT | {"remote", "tools", "images", "token_cap"},
    label_roles=("claude_chat", "claude_chat"),
    model_field=model_field("{ROLE}_DEPLOYMENT"),
    fields=(
        field_row("path", "str", "claude", "Claude command line.", env=("CLAUDE_CLI_BIN",), changes_result=False),
        field_row("permission_mode", "str", "dontAsk", "Permission mode.", env=("CLAUDE_PERMISSION_MODE",)),
        field_row(
            "setting_sources",
            "str",
            "",
            "Whose settings it loads (user, project, local); unset: nobody's, blank: as it does by itself.",
            env=("CLAUDE_SETTING_SOURCES",),
            omit_words=("",),
        ),
        field_row(
            "allow_attachment_read", "bool", True, "May read attachments.", env=("CLAUDE_ALLOW_ATTACHMENT_READ",)
        ),
    ),
)

_QWEN = "qwen_chat"
_THINKING = {
    **dict.fromkeys(("unset", "auto", "none", "null"), "server_default"),
    **dict.fromkeys(("1", "true", "yes", "on", "enable"), "enabled"),
    **dict.fromkeys(("0", "false", "no", "off", "disable"), "disabled"),
}
QWEN_CHAT = Provider(
    _QWEN,
    ROLES,
    "chat",
    "Qwen/Qwen3.5-4B",
    "A Qwen model behind a chat completions server such as vLLM.",
    aliases=("qwen",),
    module=_BACKENDS + _QWEN,
    capabilities=_REMOTE_CHAT,
    label_roles=("openai_chat", _QWEN),
    model_field=model_field("{ROLE}_QWEN_CHAT_MODEL", "QWEN_CHAT_MODEL", "{ROLE}_DEPLOYMENT"),
    fields=(
        family(_QWEN, "base_url", "str", "http://localhost:8000/v1", "Address of the server."),
        family(_QWEN, "api_key", "str", "", "Key.", secret=True, changes_result=False),
        family(
            _QWEN,
            "temperature",
            "float",
            0.7,
            _TEMPERATURE,
            omit_words=_OMIT,
            minimum=0,
        ),
        family(_QWEN, "timeout_seconds", "float", 300.0, "Seconds for one request.", changes_result=False),
        family(_QWEN, "max_tokens", "int", 8000, "Output tokens of one call at most.", minimum=1),
        family(
            _QWEN,
            "thinking_mode",
            "str",
            "server_default",
            "Whether the model thinks: enabled, disabled, or server_default (nothing is sent, the server decides).",
            choices=("server_default", "enabled", "disabled"),
            synonyms=_THINKING,
            title="Qwen thinking",
            older_field="enable_thinking",
            older_values={True: "enabled", False: "server_default"},
        ),
        family(_QWEN, "enable_thinking", "bool", None, "Older form of thinking_mode; false: server_default."),
        family(_QWEN, "use_max_completion_tokens", "bool", False, "Send max_completion_tokens, not max_tokens."),
    ),
)

_MINIMAX = "minimax_chat"
MINIMAX_CHAT = Provider(
    _MINIMAX,
    ROLES,
    "chat",
    "MiniMax-M3",
    "MiniMax's own service.",
    aliases=("minimax",),
    module=_BACKENDS + _MINIMAX,
    capabilities=_REMOTE_CHAT,
    label_roles=("openai_chat", _MINIMAX),
    model_field=model_field(
        "{ROLE}_MINIMAX_MODEL",
        "MINIMAX_MODEL",
        "{ROLE}_DEPLOYMENT",
        key="minimax_model",
        role_key="{role}_minimax_model",
    ),
    fields=(
        family("minimax", "region", "str", "global_en", "Region of the account.", choices=("global_en", "cn_zh")),
        family("minimax", "base_url", "str", "", "Address of the server; blank: by the region."),
        family("minimax", "api_key", "str", "", "Key.", secret=True, changes_result=False),
        family(
            "minimax",
            "temperature",
            "float",
            0.7,
            _TEMPERATURE,
            omit_words=_OMIT,
            minimum=0,
        ),
        family("minimax", "max_tokens", "int", 8000, "Output tokens of one call at most.", minimum=1),
        family("minimax", "timeout_seconds", "float", 300.0, "Seconds for one request.", changes_result=False),
        family("minimax", "enable_thinking", "bool", False, "Adaptive thinking, or none; M2 models think in any case."),
    ),
)

COPILOT_CHAT = Provider(
    "copilot_chat",
    ROLES,
    "chat",
    "gpt-4o",
    "GitHub Copilot's command line as a chat model, without tools, in an empty folder. It reports no tokens.",
    aliases=("copilot", "copilot_cli", "github_copilot"),
    module=_BACKENDS + "copilot_chat",
    capabilities=frozenset({"remote"}),
    label_roles=("copilot_chat", "copilot_chat"),
    run_model="",
    model_field=model_field("COPILOT_CHAT_{ROLE}_MODEL", role_key="copilot_chat_{role}_model"),
    fields=(
        COPILOT_PATH,
        COPILOT_HOME,
        field_row(
            "timeout_seconds",
            "int",
            600,
            "Seconds for one call.",
            key="copilot_chat_timeout",
            env=("COPILOT_CHAT_TIMEOUT",),
            minimum=1,
            changes_result=False,
        ),
    ),
)

ROWS: tuple[Provider, ...] = (
    OPENAI_CHAT,
    OPENAI_COMPATIBLE,
    CLAUDE_CHAT,
    QWEN_CHAT,
    MINIMAX_CHAT,
    COPILOT_CHAT,
    CODEX_EXEC,
    CLAUDE_CODE_EXEC,
    CURSOR_EXEC,
    COPILOT_EXEC,
    LOCAL_CHAT,
    MOCK_CHAT,
    BOOTSTRAP_DEMOS,
)
