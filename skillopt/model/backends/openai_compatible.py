"""Any server that speaks OpenAI's Chat Completions.

Settings (see the provider's row): `base_url`, `api_key`, `temperature`, `timeout_seconds`, `max_tokens`.
"""

from __future__ import annotations

from skillopt.model.chat_completions import Dialect, complete_with
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig

DIALECT = Dialect(sends_effort=True, think_tags="written")
"""Many models behind such servers write their thinking as `<think>…</think>` before the answer."""


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One request to `<base_url>/chat/completions`. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(DIALECT, call, role, ctx)
