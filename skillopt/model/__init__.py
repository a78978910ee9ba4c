"""Model calls: one path for every backend, with retries, limits, usage, budgets and kept replies.

    from skillopt.model import chat_target, configure_openai_compatible, set_backend

    set_backend("openai_compatible")
    configure_openai_compatible(base_url="http://localhost:8000/v1", model="my-model")
    text, usage = chat_target("Answer briefly.", "What is the capital of France?")

These functions act on the active session (see `use_session`); a `Session` can be used directly too. Importing this
package imports no backend and no client library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillopt.model.active import active_session, use_session
    from skillopt.model.budget import Budget
    from skillopt.model.common import count_tokens
    from skillopt.model.configure import (
        configure_azure_openai,
        configure_claude_code_exec,
        configure_codex_exec,
        configure_codex_exec_from_config,
        configure_copilot_chat,
        configure_copilot_exec,
        configure_cursor_exec,
        configure_minimax_chat,
        configure_openai_compatible,
        configure_qwen_chat,
    )
    from skillopt.model.cost import Price
    from skillopt.model.harness.target import run_target_exec
    from skillopt.model.harness.workspace import prepare_workspace, render_skill_md
    from skillopt.model.in_force import (
        build_codex_exec_cli_config_overrides,
        get_claude_code_exec_config,
        get_codex_exec_config,
        get_copilot_chat_config,
        get_copilot_exec_config,
        get_cursor_exec_config,
        get_qwen_thinking_modes,
        validate_exec_sandbox,
    )
    from skillopt.model.limiter import Limits
    from skillopt.model.public import (
        chat_messages_with_deployment,
        chat_optimizer,
        chat_optimizer_messages,
        chat_target,
        chat_target_messages,
        chat_with_deployment,
        get_backend_name,
        get_optimizer_backend,
        get_target_backend,
        get_token_summary,
        is_optimizer_chat_backend,
        is_target_chat_backend,
        is_target_exec_backend,
        reset_token_tracker,
        set_backend,
        set_optimizer_backend,
        set_optimizer_deployment,
        set_reasoning_effort,
        set_target_backend,
        set_target_deployment,
    )
    from skillopt.model.session import Session
    from skillopt.model.values import (
        CompatAssistantMessage,
        CompatToolCall,
        CompatToolFunction,
        Material,
        ModelCall,
        ModelReply,
    )

__all__ = [
    "Budget",
    "CompatAssistantMessage",
    "CompatToolCall",
    "CompatToolFunction",
    "Limits",
    "Material",
    "ModelCall",
    "ModelReply",
    "Price",
    "Session",
    "active_session",
    "build_codex_exec_cli_config_overrides",
    "chat_messages_with_deployment",
    "chat_optimizer",
    "chat_optimizer_messages",
    "chat_target",
    "chat_target_messages",
    "chat_with_deployment",
    "configure_azure_openai",
    "configure_claude_code_exec",
    "configure_codex_exec",
    "configure_codex_exec_from_config",
    "configure_copilot_chat",
    "configure_copilot_exec",
    "configure_cursor_exec",
    "configure_minimax_chat",
    "configure_openai_compatible",
    "configure_qwen_chat",
    "count_tokens",
    "get_backend_name",
    "get_claude_code_exec_config",
    "get_codex_exec_config",
    "get_copilot_chat_config",
    "get_copilot_exec_config",
    "get_cursor_exec_config",
    "get_optimizer_backend",
    "get_qwen_thinking_modes",
    "get_target_backend",
    "get_token_summary",
    "is_optimizer_chat_backend",
    "is_target_chat_backend",
    "is_target_exec_backend",
    "prepare_workspace",
    "render_skill_md",
    "reset_token_tracker",
    "run_target_exec",
    "set_backend",
    "set_optimizer_backend",
    "set_optimizer_deployment",
    "set_reasoning_effort",
    "set_target_backend",
    "set_target_deployment",
    "use_session",
    "validate_exec_sandbox",
]

_HOMES = {
    "active": ("active_session", "use_session"),
    "budget": ("Budget",),
    "common": ("count_tokens",),
    "cost": ("Price",),
    "configure": (
        "configure_azure_openai",
        "configure_claude_code_exec",
        "configure_codex_exec",
        "configure_codex_exec_from_config",
        "configure_copilot_chat",
        "configure_copilot_exec",
        "configure_cursor_exec",
        "configure_minimax_chat",
        "configure_openai_compatible",
        "configure_qwen_chat",
    ),
    "harness.target": ("run_target_exec",),
    "harness.workspace": ("prepare_workspace", "render_skill_md"),
    "in_force": (
        "build_codex_exec_cli_config_overrides",
        "get_claude_code_exec_config",
        "get_codex_exec_config",
        "get_copilot_chat_config",
        "get_copilot_exec_config",
        "get_cursor_exec_config",
        "get_qwen_thinking_modes",
        "validate_exec_sandbox",
    ),
    "limiter": ("Limits",),
    "session": ("Session",),
    "values": (
        "CompatAssistantMessage",
        "CompatToolCall",
        "CompatToolFunction",
        "Material",
        "ModelCall",
        "ModelReply",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import the home of a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOME_OF.get(name, 'public')}")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(__all__) | set(globals()))
