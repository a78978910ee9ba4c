"""Questions about one request or reply: under which key it is kept, at which endpoint it is made, is it an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skillopt.config.provider_row import Provider
from skillopt.errors import (
    ContentFilterError,
    ContextTooLongError,
    EmptyReplyError,
    RefusedError,
    TruncatedError,
    UnsupportedCallError,
)
from skillopt.model.values import ModelCall, ModelReply
from skillopt.scoring.refusal import is_refusal
from skillopt.types import RoleConfig, content_hash

WIDEST_CAP = 65_536
"""Tokens above which a limit is not widened after a reply that was cut off."""
_IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})
_SHOWN_CHARS = 300


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
        *([call.workspace.fingerprint] if call.workspace else []),
    )


def endpoint_of(role: RoleConfig) -> str:
    """What limits are shared under: the backend and its address."""
    address = role.settings.get("base_url") or role.settings.get("endpoint") or ""
    return f"{role.backend} {str(address).strip().rstrip('/')}"


def token_cap(call: ModelCall, role: RoleConfig, cap_factor: int = 1) -> int:
    """Output tokens to ask for: the smaller of the call's and the configured limit, widened by `cap_factor`.

    Widening never goes beyond `WIDEST_CAP`, nor below the limit itself.
    """
    setting = role.settings.get("max_tokens")
    limit = min(call.max_completion_tokens, int(setting)) if setting else call.max_completion_tokens
    return max(limit, min(limit * max(1, cap_factor), WIDEST_CAP))


def refuse_unsupported(call: ModelCall, row: Provider) -> None:
    """Raise UnsupportedCallError for a call that holds what the backend of `row` cannot carry."""
    needed = {"tools": bool(call.tools), "images": any(part in _IMAGE_PARTS for part in _part_types(call))}
    missing = [name for name, needs in needed.items() if needs and name not in row.capabilities]
    if missing:
        raise UnsupportedCallError(
            f"The backend {row.name} cannot carry {' or '.join(missing)}, and the call holds them; "
            "choose a backend that can (docs/reference/backends.md)."
        )


def _part_types(call: ModelCall) -> Iterator[object]:
    for message in call.messages:
        content = message.get("content")
        for part in content if isinstance(content, (list, tuple)) else ():
            yield part.get("type") if isinstance(part, dict) else None


def check_answer(reply: ModelReply, who: str) -> None:
    """Refuse a reply without an answer. Thinking text is never taken for one.

    Raises ContentFilterError when a content filter took it, EmptyReplyError when nothing says why there is none. A
    reply cut off at its limit and a refusal pass here; `settle` decides on them.
    """
    if reply.text.strip() or reply.tool_calls or reply.finish_reason in ("length", "refusal"):
        return
    if reply.finish_reason == "content_filter":
        raise ContentFilterError(f"{who}: the provider's content filter withheld the answer.")
    if reply.reasoning:
        raise EmptyReplyError(f"{who}: the reply holds reasoning and no final answer; raise max_tokens.")
    raise EmptyReplyError(f"{who}: empty reply.")


def settle(reply: ModelReply, role: str, who: str, *, remote: bool) -> ModelReply:
    """The reply as its caller gets it.

    What a target does is graded, so a cut-off or declined answer of it is returned and says so in `finish_reason`; of
    an optimizer it is of no use. Raises RefusedError when the optimizer declined, TruncatedError when a remote model's
    reply was cut off and is an optimizer's or has no text.
    """
    if role == "optimizer" and reply.finish_reason == "stop" and not reply.tool_calls and is_refusal(reply.text):
        reply = replace(reply, finish_reason="refusal")
    if reply.finish_reason == "refusal" and role == "optimizer":
        raise RefusedError(f"{who} declined: {' '.join(reply.text.split())[:_SHOWN_CHARS] or 'no words were given'}")
    if reply.finish_reason == "length" and remote:
        _refuse_cut(reply, who, useless=role == "optimizer")
    return reply


def _refuse_cut(reply: ModelReply, who: str, *, useless: bool) -> None:
    advice = "raise max_tokens or max_completion_tokens."
    if not reply.text.strip() and not reply.tool_calls:
        thinking = " while the model was thinking" if reply.reasoning else ""
        raise TruncatedError(f"{who}: no final answer, the token limit came first{thinking}; {advice}", final=True)
    if useless:
        raise TruncatedError(f"{who}: the reply was cut off at the token limit; {advice}", final=True)


def with_sizes(error: ContextTooLongError, estimate: int) -> ContextTooLongError:
    """The error with the size of the prompt in its message, by our estimate where the provider did not say it."""
    if error.prompt_tokens is not None:
        return error
    limit = "not known" if error.limit is None else f"{error.limit:,} tokens"
    said = f"{error} The prompt has about {estimate:,} tokens by estimate; the limit is {limit}."
    return ContextTooLongError(said, estimate, error.limit)
