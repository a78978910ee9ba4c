"""Questions about one request or reply: under which key it is kept, at which endpoint it is made, is it an answer."""

from __future__ import annotations

from skillopt.errors import BadRequestError, EmptyReplyError, TruncatedError
from skillopt.model.values import ModelCall, ModelReply
from skillopt.types import RoleConfig, content_hash


def reply_key(role: RoleConfig, call: ModelCall) -> str:
    """The key under which a reply is kept: everything that shapes it, no secret, no material."""
    return content_hash(
        "reply",
        role.fingerprint,
        call.model,
        [dict(message) for message in call.messages],
        call.max_completion_tokens,
        call.effort,
        call.temperature,
        call.tools,
        call.tool_choice,
    )


def check_reply(reply: ModelReply, who: str) -> None:
    """Refuse a reply without an answer. Thinking text is never taken for one.

    Raises TruncatedError when the token limit came before the answer, BadRequestError when a content filter took it,
    EmptyReplyError otherwise.
    """
    if reply.text.strip() or reply.tool_calls:
        return
    if reply.finish_reason == "content_filter":
        raise BadRequestError(f"{who}: the provider's content filter withheld the answer.")
    if reply.finish_reason == "length":
        raise TruncatedError(
            f"{who}: no final answer, the token limit came first"
            f"{' while the model was thinking' if reply.reasoning else ''}; raise max_tokens or max_completion_tokens."
        )
    if reply.reasoning:
        raise EmptyReplyError(f"{who}: the reply holds reasoning and no final answer; raise max_tokens.")
    raise EmptyReplyError(f"{who}: empty reply.")


def endpoint_of(role: RoleConfig) -> str:
    """What limits are shared under: the backend and its address."""
    return f"{role.backend} {str(role.settings.get('base_url') or '').strip().rstrip('/')}"
