"""What travels between a caller and a backend: the request, the reply, and what an attempt is given.

Plain values. Nothing here knows a provider, HTTP, retries or money.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from skillopt.types import Edit, JsonObject, RolloutResult, Usage
from skillopt.utils.cancel import CancelToken

if TYPE_CHECKING:
    from skillopt.model.harness.workspace import Workspace

Message = Mapping[str, Any]
_T = TypeVar("_T")

DEFAULT_MAX_COMPLETION_TOKENS = 16384


@dataclass(frozen=True, slots=True)
class Material:
    """Structured evidence beside the prose, for optimizers that are not language models.

    Ordinary backends ignore it, and it is no part of the key under which a reply is kept.
    """

    failures: tuple[RolloutResult, ...] = ()
    successes: tuple[RolloutResult, ...] = ()
    edits: tuple[Edit, ...] = ()
    budget: int = 0
    skill: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model. `model`, `effort` and `temperature` left empty mean: as the role is configured.

    `workspace`: what a coding agent is given besides its task, which is the user message; calls of other models have
    none.
    """

    messages: tuple[Message, ...]
    model: str = ""
    max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS
    effort: str = ""
    temperature: float | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    tool_choice: Any = None
    stage: str = ""
    material: Material | None = None
    workspace: Workspace | None = None

    @property
    def system(self) -> str:
        """Text of all system messages, joined by a blank line."""
        return "\n\n".join(text_of(m) for m in self.messages if m.get("role") == "system")

    @property
    def last_user(self) -> str:
        """Text of the last user message, or an empty string."""
        return next((text_of(m) for m in reversed(self.messages) if m.get("role") == "user"), "")


@dataclass(frozen=True, slots=True)
class CompatToolFunction:
    """The function that a model wants called. `arguments` is JSON text."""

    name: str
    arguments: str = "{}"

    def model_dump(self, mode: str = "json") -> JsonObject:  # noqa: ARG002 - the SDK's signature
        """Both fields as a dict."""
        return {"name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class CompatToolCall:
    """One tool call of an assistant message."""

    id: str
    function: CompatToolFunction
    type: str = "function"

    def model_dump(self, mode: str = "json") -> JsonObject:
        """`{id, type, function}` as a provider expects it back."""
        return {"id": self.id, "type": self.type, "function": self.function.model_dump(mode)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompatToolCall:
        """Read `{id, type, function: {name, arguments}}`; blank arguments become `{}`."""
        function = data.get("function") or {}
        arguments = str(function.get("arguments") or "").strip() or "{}"
        return cls(str(data.get("id") or ""), CompatToolFunction(str(function.get("name") or ""), arguments))


@dataclass(frozen=True, slots=True)
class CompatAssistantMessage:
    """An assistant message in one shape, whatever the provider. `metadata` is for reading, never sent back."""

    content: str
    tool_calls: list[CompatToolCall] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def model_dump(self, mode: str = "json") -> JsonObject:
        """The message as a provider expects it in the next request."""
        out: JsonObject = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            out["tool_calls"] = [call.model_dump(mode) for call in self.tool_calls]
        return out


@dataclass(frozen=True, slots=True)
class AgentWork:
    """What a coding agent did besides answering: for reading, never an answer.

    `trace`: what it reported of its steps, without secrets. `summary`: the trace in short, where it tells enough.
    `files`: text of the files that its workspace asked for, by relative path.
    """

    trace: str = ""
    summary: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> JsonObject:
        """The work as JSON."""
        return {"trace": self.trace, "summary": self.summary, "files": dict(self.files)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AgentWork:
        """Read what `to_dict` wrote."""
        return cls(str(data.get("trace") or ""), str(data.get("summary") or ""), dict(data.get("files") or {}))


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered.

    `finish_reason`: `stop`, `length` (cut by the token limit), `tool_calls`, `content_filter`, `refusal` (`text` holds
    its words), or the provider's own word. `usage` covers every attempt that this reply took. `reasoning` is thinking
    text: shown, never an answer. `notice` is something that the user should hear about this model once; not kept.
    `work`: what an agent did besides.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(calls=1, known=False))
    model: str = ""
    tool_calls: tuple[CompatToolCall, ...] = ()
    reasoning: str = ""
    notice: str = ""
    work: AgentWork | None = None

    def message(self) -> CompatAssistantMessage:
        """The reply as an assistant message that can be appended to a conversation."""
        return CompatAssistantMessage(self.text, list(self.tool_calls), {"finish_reason": self.finish_reason})

    def to_dict(self) -> JsonObject:
        """The reply as JSON."""
        return {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "usage": self.usage.to_dict(),
            "model": self.model,
            "tool_calls": [call.model_dump() for call in self.tool_calls],
            "reasoning": self.reasoning,
            **({"work": self.work.to_dict()} if self.work else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelReply:
        """Read what `to_dict` wrote."""
        return cls(
            text=str(data["text"]),
            finish_reason=str(data.get("finish_reason") or "stop"),
            usage=Usage.from_dict(data.get("usage") or {}),
            model=str(data.get("model") or ""),
            tool_calls=tuple(CompatToolCall.from_dict(c) for c in data.get("tool_calls") or ()),
            reasoning=str(data.get("reasoning") or ""),
            work=AgentWork.from_dict(data["work"]) if data.get("work") else None,
        )


class Resources:
    """What backends keep for the life of a session: a connection pool, a loaded model. One instance a session."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._held: dict[object, object] = {}

    def get(self, key: object, make: Callable[[], _T]) -> _T:
        """The resource of this key, made by `make` on first use. Only one thread makes it."""
        with self._lock:
            if key not in self._held:
                self._held[key] = make()
            return cast("_T", self._held[key])

    def close(self) -> None:
        """Call `close()` of every resource that has one, and forget them."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for resource in held:
            close = getattr(resource, "close", None)
            if callable(close):
                close()


@dataclass(frozen=True, slots=True)
class CallContext:
    """What one attempt is given besides the request.

    `timeout`: seconds for this attempt. `cancel`: ends it early. `key`: the request's content hash. `dropped`: names of
    parameters that this endpoint refused before and that must not be sent. `resources`: kept between calls.
    `cap_factor`: what the limits on the reply (the call's and the configured one) are multiplied by, because the answer
    was cut off at them. `silent_before`: how many attempts of this call ended without an answer. `spent` takes what an
    attempt used that fails.
    """

    timeout: float
    cancel: CancelToken | None = None
    key: str = ""
    dropped: frozenset[str] = frozenset()
    resources: Resources = field(default_factory=Resources)
    cap_factor: int = 1
    silent_before: int = 0
    spent: Callable[[Usage], None] | None = None


def text_of(message: Message) -> str:
    """Text of a message whose content is a string or a list of parts; parts that are not text are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(part for part in parts if isinstance(part, str))


def usage_from_openai_usage(usage: Mapping[str, Any] | None) -> Usage:
    """Read a Chat Completions `usage` object, or one that says `input_tokens`. One call; unknown when absent."""
    if not isinstance(usage, Mapping) or not usage:
        return Usage(calls=1, known=False)
    prompt = _count(usage, "prompt_tokens", "input_tokens")
    completion = _count(usage, "completion_tokens", "output_tokens")
    return Usage(
        calls=1,
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=_detail(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=_detail(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"),
        known=prompt is not None and completion is not None,
    )


def usage_dict(usage: Usage) -> dict[str, int]:
    """The `{"prompt_tokens", "completion_tokens", "total_tokens"}` of the public functions."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def _count(data: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = data.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return max(0, int(value))
    return None


def _detail(usage: Mapping[str, Any], groups: tuple[str, ...], name: str) -> int:
    for group in groups:
        details = usage.get(group)
        if isinstance(details, Mapping):
            return _count(details, name) or 0
    return 0
