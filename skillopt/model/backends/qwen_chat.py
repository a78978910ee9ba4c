"""A Qwen model behind a Chat Completions server such as vLLM or SGLang.

Settings (see the provider's row): those of every Chat Completions backend, and `thinking_mode` and
`use_max_completion_tokens`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from skillopt.model.chat_completions import Dialect, complete_with
from skillopt.model.registry import setting_hint
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig

SERVER_DEFAULT = "server_default"


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One request to `<base_url>/chat/completions`. Raises the classes of `skillopt.errors.ModelError`.

    Warns (RuntimeWarning) once a session and role when it is left to the server whether the model thinks.
    """
    if thinking_mode(role.settings) == SERVER_DEFAULT:
        ctx.resources.get(("qwen_chat thinking", role.role), lambda: _warn(role))
    return complete_with(DIALECT, call, role, ctx)


def thinking_mode(settings: Mapping[str, Any]) -> str:
    """`server_default`, `enabled` or `disabled`. The older `enable_thinking` holds where there is no mode.

    Its false always meant "say nothing", so it means `server_default`.
    """
    mode = str(settings.get("thinking_mode") or "")
    return mode or ("enabled" if settings.get("enable_thinking") else SERVER_DEFAULT)


def _thinking(call: ModelCall, role: RoleConfig) -> JsonObject:  # noqa: ARG001 - the shape of `Dialect.extras`
    """`chat_template_kwargs`, only where thinking was decided: strict gateways refuse a field that they do not know."""
    mode = thinking_mode(role.settings)
    if mode == SERVER_DEFAULT:
        return {}
    return {"chat_template_kwargs": {"enable_thinking": mode == "enabled"}}


def _cap_field(role: RoleConfig) -> str:
    return "max_completion_tokens" if role.settings.get("use_max_completion_tokens") else "max_tokens"


def _warn(role: RoleConfig) -> bool:
    warnings.warn(
        f"Whether the {role.role} model {role.model!r} thinks is left to its server, so that another server may give "
        f"other results: set {setting_hint(role, 'thinking_mode')} to enabled or disabled.",
        RuntimeWarning,
        stacklevel=2,
    )
    return True


DIALECT = Dialect(
    cap_field=_cap_field,
    extras=_thinking,
    tool_prefix="qwen_tool_",
    think_tags="opened",
    settings_of=(("chat_template_kwargs", "thinking_mode"),),
)
"""A server without a reasoning parser leaves thinking in the text, and Qwen's templates may open the tag themselves."""
