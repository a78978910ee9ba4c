"""The Responses API of OpenAI in the words of Chat Completions: pure converters both ways.

A conversation, tools and a tool choice become `instructions`, `input`, `tools` and `tool_choice`; the items of a reply
become the text, tool calls and finish reason that every other backend gives. Nothing here sends anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillopt.errors import BadRequestError, TransientError
from skillopt.model.classify import Where, error_from_status, status_in_body, unreadable_answer
from skillopt.model.message_parts import check_messages
from skillopt.model.provider_words import EFFORT
from skillopt.model.replies import token_cap
from skillopt.model.transport_http import HttpAnswer
from skillopt.model.values import (
    CallContext,
    CompatToolCall,
    CompatToolFunction,
    Message,
    ModelCall,
    ModelReply,
    text_of,
    usage_from_openai_usage,
)
from skillopt.types import JsonObject, RoleConfig

RESPONSES_MODELS = (
    "gpt-5.3-codex",
    "gpt-5.2-codex",
    "gpt-5.1-codex",
    "gpt-5-codex",
    "codex-mini",
    "gpt-5.4-pro",
)
"""Models that Chat Completions does not serve, by the start of their names."""

MIN_OUTPUT_TOKENS = 16
"""The smallest limit that the API takes."""

_CUT = {"max_output_tokens": "length", "content_filter": "content_filter"}


def needs_responses_api(model: str) -> bool:
    """True for a model that only the Responses API serves: one of `RESPONSES_MODELS`, or such a name and `-…`."""
    name = model.strip().lower()
    return any(name == known or name.startswith(f"{known}-") for known in RESPONSES_MODELS)


def has_built_in_tools(tools: Iterable[Mapping[str, Any]] | None) -> bool:
    """True for tools that the service itself runs, such as `{"type": "web_search"}`: only this API carries them."""
    return any(tool.get("type") != "function" for tool in tools or ())


def build_payload(call: ModelCall, role: RoleConfig, ctx: CallContext) -> JsonObject:
    """The request body. Parameters that the endpoint refused before (`ctx.dropped`) are left out.

    Raises BadRequestError for a message or a part that the API has no form for.
    """
    check_messages(call.messages, f"{role.role} model {call.model or role.model!r}")
    payload: JsonObject = {"model": call.model or role.model}
    if call.system:
        payload["instructions"] = call.system
    payload["input"] = to_input(call.messages)
    payload["max_output_tokens"] = max(MIN_OUTPUT_TOKENS, token_cap(call, role, ctx.cap_factor))
    effort = call.effort or role.effort
    if effort and EFFORT not in ctx.dropped:
        payload["reasoning"] = {"effort": effort}
    if call.temperature is not None:
        payload["temperature"] = call.temperature
    if call.tools:
        payload["tools"] = [flat_tool(tool) for tool in call.tools]
        if call.tool_choice is not None:
            payload["tool_choice"] = flat_tool_choice(call.tool_choice)
    return {name: value for name, value in payload.items() if name not in ctx.dropped}


def to_input(messages: Iterable[Message]) -> list[JsonObject]:
    """The input items of a conversation. System messages are left out: they are the `instructions`."""
    return [item for message in messages for item in _items(message)]


def flat_tool(tool: Mapping[str, Any]) -> JsonObject:
    """A tool as the API takes it: a function's fields beside its type; every other kind as it is."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        return dict(tool)
    known = ("name", "description", "parameters", "strict")
    return {"type": "function", **{name: function[name] for name in known if name in function}}


def flat_tool_choice(choice: Any) -> Any:
    """A tool choice as the API takes it: a function by name in one object; words and other kinds as they are."""
    function = choice.get("function") if isinstance(choice, Mapping) else None
    return {"type": "function", "name": function.get("name")} if isinstance(function, Mapping) else choice


def parse_reply(answer: HttpAnswer, where: Where) -> ModelReply:
    """The reply in a Responses body. Raises TransientError for a body that is none, or the error that it holds."""
    try:
        data = json.loads(answer.text)
        _raise_if_failed(data, answer, where)
        return reply_from(data)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise unreadable_answer("a response object", answer.text, where) from None


def reply_from(data: Mapping[str, Any]) -> ModelReply:
    """The reply in a Responses object: its texts joined, its function calls, why it ended, what it took."""
    items = data["output"]
    parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or ()]
    text = "".join(str(part["text"]) for part in parts if part.get("type") in ("output_text", "text"))
    refusal = "".join(str(part["refusal"]) for part in parts if part.get("type") == "refusal")
    calls = tuple(_tool_call(item, n) for n, item in enumerate(items) if item.get("type") == "function_call")
    return ModelReply(
        text=text or refusal,
        finish_reason=_finish(data, refused=bool(refusal), called=bool(calls)),
        usage=usage_from_openai_usage(data.get("usage")),
        model=str(data.get("model") or ""),
        tool_calls=calls,
        reasoning="\n\n".join(_reasoning(items)),
    )


def _finish(data: Mapping[str, Any], *, refused: bool, called: bool) -> str:
    if data.get("status") == "incomplete":
        reason = str((data.get("incomplete_details") or {}).get("reason") or "length")
        return _CUT.get(reason, reason)
    if refused:
        return "refusal"
    return "tool_calls" if called else "stop"


def _reasoning(items: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for item in items:
        if item.get("type") == "reasoning":
            for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
                yield str(part.get("text") or "")


def _tool_call(item: Mapping[str, Any], number: int) -> CompatToolCall:
    arguments = item.get("arguments")
    if not isinstance(arguments, str):
        given = item.get("input") if arguments is None else arguments
        arguments = "{}" if given is None else json.dumps(given, ensure_ascii=False)
    name = str(item.get("call_id") or item.get("id") or f"call_{number}")
    return CompatToolCall(name, CompatToolFunction(str(item["name"]), arguments.strip() or "{}"))


def _raise_if_failed(data: Any, answer: HttpAnswer, where: Where) -> None:
    """Raise the error of a reply that failed after it was accepted, or of a gateway's error sent as 200."""
    error, status = data.get("error"), data.get("status")
    if isinstance(error, Mapping):
        raise error_from_status(status_in_body(error) or 400, answer.headers, json.dumps({"error": error}), where)
    if status in ("failed", "cancelled", "in_progress", "queued"):
        raise TransientError(f"{where.short} answered with a response that is {status}.")


def _items(message: Message) -> list[JsonObject]:
    role, content = str(message.get("role")), message.get("content")
    if role == "system":
        return []
    if role in ("user", "developer"):
        return [{"role": role, "content": _content(content)}]
    if role == "assistant":
        text = text_of(message) or _refusal(message)
        said: list[JsonObject] = [{"role": "assistant", "content": text}] if text else []
        return said + [_call_item(call) for call in message.get("tool_calls") or ()]
    if role == "tool":
        call_id = str(message.get("tool_call_id") or "")
        return [{"type": "function_call_output", "call_id": call_id, "output": _content(content)}]
    raise BadRequestError(f"The Responses API has no message with the role {role!r}.")


def _refusal(message: Message) -> str:
    """The words of an assistant message that refuses, in a field or in parts."""
    content = message.get("content")
    parts = content if isinstance(content, Sequence) and not isinstance(content, str) else (message,)
    return "\n".join(str(part.get("refusal") or "") for part in parts)


def _call_item(call: Mapping[str, Any]) -> JsonObject:
    known = CompatToolCall.from_dict(call)
    return {
        "type": "function_call",
        "call_id": known.id,
        "name": known.function.name,
        "arguments": known.function.arguments,
    }


def _content(content: Any) -> str | list[JsonObject]:
    """Content of a user, developer or tool message: text as it is, parts one by one."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Sequence):
        return [_part(part) for part in content]
    return json.dumps(content, ensure_ascii=False)


def _part(part: Any) -> JsonObject:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("text", "refusal"):
        return {"type": "input_text", "text": str(part.get(kind) or "")}
    if kind == "image_url":
        image = part.get("image_url")
        image = image if isinstance(image, Mapping) else {"url": image}
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail") or "auto"}
    raise BadRequestError(f"The Responses API has no form for a message part of type {kind!r}.")
