"""The public functions of `skillopt.model`: thin wrappers around the active session.

Every call returns `(result, usage)` with `usage = {"prompt_tokens", "completion_tokens", "total_tokens"}`. `retries`
counts attempts after the first. `timeout` is in seconds, for everything together. Errors are those of `Session.call`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt.config.providers import (
    LABELS,
    ROLES,
    get_provider,
    label_roles,
    normalize_backend_name,
    normalize_role_backend,
    trap_of,
)
from skillopt.model.active import active_session, configure, session_or_default
from skillopt.model.values import DEFAULT_MAX_COMPLETION_TOKENS, CompatAssistantMessage, ModelCall, usage_dict

Messages = Sequence[Mapping[str, Any]]
UsageDict = dict[str, int]

_NO_LABEL = frozenset({"claude_code_exec"})  # its pair of roles is shown as a pair
_MORE_LABELS = {"qwen_chat": ("qwen_chat", "qwen_chat")}  # shown for this pair too


def chat_optimizer(
    system: str,
    user: str,
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
    retries: int = 5,
    stage: str = "optimizer",
    reasoning_effort: str | None = None,
    timeout: float | None = None,
) -> tuple[str, UsageDict]:
    """Text of the optimizer model's reply to one system and one user message."""
    call = _call(_pair(system, user), max_completion_tokens, stage, reasoning_effort)
    return _text("optimizer", call, retries, timeout)


def chat_target(
    system: str,
    user: str,
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
    retries: int = 5,
    stage: str = "target",
    reasoning_effort: str | None = None,
    timeout: float | None = None,
) -> tuple[str, UsageDict]:
    """Text of the target model's reply. Raises NotImplementedError for a target that is a coding agent."""
    call = _call(_pair(system, user), max_completion_tokens, stage, reasoning_effort)
    return _text("target", call, retries, timeout)


def chat_optimizer_messages(  # noqa: PLR0913 - a published signature
    messages: Messages,
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
    retries: int = 5,
    stage: str = "optimizer",
    reasoning_effort: str | None = None,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Any = None,
    return_message: bool = False,
    timeout: float | None = None,
) -> tuple[str | CompatAssistantMessage, UsageDict]:
    """The optimizer model's reply to a conversation: its text, or the message with its tool calls."""
    call = _call(messages, max_completion_tokens, stage, reasoning_effort, tools=tools, tool_choice=tool_choice)
    return _result("optimizer", call, retries, timeout, return_message=return_message)


def chat_target_messages(  # noqa: PLR0913 - a published signature
    messages: Messages,
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
    retries: int = 5,
    stage: str = "target",
    reasoning_effort: str | None = None,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Any = None,
    return_message: bool = False,
    timeout: float | None = None,
) -> tuple[str | CompatAssistantMessage, UsageDict]:
    """The target model's reply to a conversation: its text, or the message with its tool calls."""
    call = _call(messages, max_completion_tokens, stage, reasoning_effort, tools=tools, tool_choice=tool_choice)
    return _result("target", call, retries, timeout, return_message=return_message)


def chat_with_deployment(  # noqa: PLR0913 - a published signature
    deployment: str,
    system: str,
    user: str,
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
    retries: int = 5,
    stage: str = "custom",
    reasoning_effort: str | None = None,
    timeout: float | None = None,
) -> tuple[str, UsageDict]:
    """As `chat_optimizer`, with another model at the optimizer's backend and address."""
    call = _call(_pair(system, user), max_completion_tokens, stage, reasoning_effort, model=deployment)
    return _text("optimizer", call, retries, timeout)


def chat_messages_with_deployment(  # noqa: PLR0913 - a published signature
    deployment: str,
    messages: Messages,
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
    retries: int = 5,
    stage: str = "custom",
    reasoning_effort: str | None = None,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Any = None,
    return_message: bool = False,
    timeout: float | None = None,
) -> tuple[str | CompatAssistantMessage, UsageDict]:
    """As `chat_optimizer_messages`, with another model at the optimizer's backend and address."""
    more = {"tools": tools, "tool_choice": tool_choice, "model": deployment}
    call = _call(messages, max_completion_tokens, stage, reasoning_effort, **more)
    return _result("optimizer", call, retries, timeout, return_message=return_message)


def set_backend(name: str) -> str:
    """Choose both roles' backends by one label, and return the label. Raises ConfigError (a ValueError)."""
    optimizer, target = label_roles(name)
    _warn_trap(name)
    configure({"optimizer_backend": optimizer, "target_backend": target}, replaced=ROLES)
    return normalize_backend_name(name)


def get_backend_name() -> str:
    """The label of the two backends, or `<optimizer>+<target>` when no label stands for the pair."""
    pair = (get_optimizer_backend(), get_target_backend())
    known = (*LABELS.items(), *_MORE_LABELS.items())
    labels = (label for label, roles in known if roles == pair and label not in _NO_LABEL)
    return next(labels, "+".join(pair))


def set_optimizer_backend(name: str | None) -> None:
    """Choose the optimizer's backend; blank is `openai_chat`. Raises ConfigError (a ValueError)."""
    _set_role_backend("optimizer", name)


def set_target_backend(name: str | None) -> None:
    """Choose the target's backend; blank is `openai_chat`. Raises ConfigError (a ValueError)."""
    _set_role_backend("target", name)


def get_optimizer_backend() -> str:
    """Canonical name of the optimizer's backend."""
    return session_or_default().role("optimizer").backend


def get_target_backend() -> str:
    """Canonical name of the target's backend."""
    return session_or_default().role("target").backend


def is_optimizer_chat_backend() -> bool:
    """True when the optimizer's backend answers chat calls; every backend of that role does."""
    return "optimizer" in get_provider(get_optimizer_backend()).roles


def is_target_chat_backend() -> bool:
    """True when the target's backend takes text and gives text."""
    return not is_target_exec_backend()


def is_target_exec_backend() -> bool:
    """True when the target is a coding agent that runs in a workspace."""
    return get_provider(get_target_backend()).is_agent("target")


def set_reasoning_effort(effort: str | None) -> None:
    """Set the reasoning effort of both roles; None or blank turns it off. Raises ConfigError for an unknown one."""
    configure({"reasoning_effort": effort or ""})


def set_target_deployment(model: str) -> None:
    """Set the target's model."""
    configure({"target_model": model})


def set_optimizer_deployment(model: str) -> None:
    """Set the optimizer's model."""
    configure({"optimizer_model": model})


def get_token_summary() -> dict[str, dict[str, int]]:
    """`{stage: {calls, prompt_tokens, completion_tokens, total_tokens}, "_total": {…}}` of the active session."""
    return session_or_default().usage.summary()


def reset_token_tracker() -> None:
    """Set the active session's counters to zero. Its budget goes on counting."""
    active_session().usage.reset()


def _set_role_backend(role: str, name: str | None) -> None:
    backend = normalize_role_backend(role, name)
    _warn_trap(name, role)
    configure({f"{role}_backend": backend}, replaced=(role,))


def _warn_trap(name: str | None, role: str | None = None) -> None:
    if trap := trap_of(name, role):
        warnings.warn(trap, UserWarning, stacklevel=4 if role else 3)


def _pair(system: str, user: str) -> Messages:
    pair = ({"role": "system", "content": system}, {"role": "user", "content": user})
    return pair if system else pair[1:]


def _call(messages: Messages, limit: int, stage: str, effort: str | None, **more: Any) -> ModelCall:
    return ModelCall(messages=tuple(messages), max_completion_tokens=limit, stage=stage, effort=effort or "", **more)


def _text(role: str, call: ModelCall, retries: int, timeout: float | None) -> tuple[str, UsageDict]:
    text, usage = _result(role, call, retries, timeout, return_message=False)
    return str(text), usage


def _result(
    role: str, call: ModelCall, retries: int, timeout: float | None, *, return_message: bool
) -> tuple[str | CompatAssistantMessage, UsageDict]:
    session = session_or_default()
    backend = session.role(role).backend
    if get_provider(backend).is_agent(role):
        raise NotImplementedError(f"Exec backends such as {backend} run in a workspace and answer no chat calls.")
    reply = session.call(role, call, timeout=timeout, retries=retries)
    return (reply.message() if return_message else reply.text), usage_dict(reply.usage)
