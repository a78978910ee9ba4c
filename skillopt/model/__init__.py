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
    from skillopt.model.limiter import Limits
    from skillopt.model.public import (
        chat_messages_with_deployment,
        chat_optimizer,
        chat_optimizer_messages,
        chat_target,
        chat_target_messages,
        chat_with_deployment,
        configure_openai_compatible,
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
    from skillopt.model.usage import Price
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
    "chat_messages_with_deployment",
    "chat_optimizer",
    "chat_optimizer_messages",
    "chat_target",
    "chat_target_messages",
    "chat_with_deployment",
    "configure_openai_compatible",
    "get_backend_name",
    "get_optimizer_backend",
    "get_target_backend",
    "get_token_summary",
    "is_optimizer_chat_backend",
    "is_target_chat_backend",
    "is_target_exec_backend",
    "reset_token_tracker",
    "set_backend",
    "set_optimizer_backend",
    "set_optimizer_deployment",
    "set_reasoning_effort",
    "set_target_backend",
    "set_target_deployment",
    "use_session",
]

_HOMES = {
    "active": ("active_session", "use_session"),
    "budget": ("Budget",),
    "limiter": ("Limits",),
    "session": ("Session",),
    "usage": ("Price",),
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
