"""Helpers that programs around SkillOpt import: names of backends, usage, messages of one shape, token counts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from skillopt.config.providers import default_model_for_backend, normalize_backend_name
from skillopt.model.responses_api import needs_responses_api, reply_from
from skillopt.model.values import (
    CompatAssistantMessage,
    CompatToolCall,
    CompatToolFunction,
    usage_dict,
)
from skillopt.model.values import usage_from_openai_usage as _usage

__all__ = [
    "CompatAssistantMessage",
    "CompatToolCall",
    "CompatToolFunction",
    "TokenTracker",
    "compat_message_from_chat_message",
    "compat_message_from_responses_output",
    "count_tokens",
    "default_model_for_backend",
    "needs_responses_api",
    "normalize_backend_name",
    "usage_from_openai_usage",
    "usage_from_responses_usage",
]

_COUNTS = ("calls", "prompt_tokens", "completion_tokens", "total_tokens")


class TokenTracker:
    """Counts calls and tokens by stage. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[str, dict[str, int]] = {}

    def record(self, stage: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Add one call."""
        amounts = (1, prompt_tokens, completion_tokens, prompt_tokens + completion_tokens)
        with self._lock:
            row = self._stages.setdefault(stage, dict.fromkeys(_COUNTS, 0))
            for name, amount in zip(_COUNTS, amounts, strict=True):
                row[name] += amount

    def summary(self) -> dict[str, dict[str, int]]:
        """`{stage: {calls, prompt_tokens, completion_tokens, total_tokens}}`, stages sorted, and their sum `_total`."""
        with self._lock:
            stages = {stage: dict(self._stages[stage]) for stage in sorted(self._stages)}
        total = {name: sum(row[name] for row in stages.values()) for name in _COUNTS}
        return {**stages, "_total": total}

    def reset(self) -> None:
        """Forget everything."""
        with self._lock:
            self._stages.clear()


def usage_from_openai_usage(usage: object) -> dict[str, int]:
    """Token counts of a Chat Completions reply, from the SDK's object or a mapping; None gives zeros.

    A total that the server states is kept; a missing one is the sum.
    """
    counts = usage_dict(_usage(_plain(usage)))
    total = _get(usage, "total_tokens")
    stated = isinstance(total, int) and not isinstance(total, bool) and total >= 0
    return {**counts, "total_tokens": total} if stated else counts


def usage_from_responses_usage(usage: object) -> dict[str, int]:
    """Token counts of a Responses reply (`input_tokens`, `output_tokens`), from an object or a mapping."""
    return usage_from_openai_usage(usage)


def compat_message_from_chat_message(message: object) -> CompatAssistantMessage:
    """An assistant message of the SDK, or the same as a mapping, in our one shape. Blank arguments become `{}`."""
    calls = _get(message, "tool_calls") or ()
    return CompatAssistantMessage(str(_get(message, "content") or ""), [_tool_call(call) for call in calls])


def compat_message_from_responses_output(items: Iterable[object]) -> CompatAssistantMessage:
    """The output items of a Responses reply as one message: the texts joined, function calls as tool calls."""
    return reply_from({"output": [_plain(item) for item in items]}).message()


def count_tokens(text: str, model: str | None = None) -> int:  # noqa: ARG001 - the published signature
    """About how many tokens `text` is for any model: a quarter of its characters, and 0 for no text."""
    return -(-len(text) // 4)


def _tool_call(call: object) -> CompatToolCall:
    function = _get(call, "function")
    data = {"name": _get(function, "name"), "arguments": _get(function, "arguments")}
    return CompatToolCall.from_dict({"id": _get(call, "id"), "type": "function", "function": data})


def _get(value: object, name: str) -> Any:
    """A field of a mapping or an attribute of an object, or None."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _plain(value: object) -> Any:
    """An object of the SDK, or one that only has attributes, as plain values; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    fields = getattr(value, "__dict__", None)
    return value if isinstance(value, Mapping) or not fields else {name: _plain(v) for name, v in fields.items()}
