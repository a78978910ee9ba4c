"""What a Chat Completions body says: text, thinking, tool calls, why it ended, tokens. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from skillopt.model.values import CompatToolCall, ModelCall, ModelReply, usage_from_openai_usage

ThinkTags = Literal["none", "written", "opened"]

TOOL_PARSER_OFF = (
    "server tool parser is off: tools were offered, and the model wrote a tool call as text that the server did not "
    "read; start the server with its tool-call parser (vLLM: --enable-auto-tool-choice and --tool-call-parser)"
)
"""The notice of a reply that holds a tool call as text."""

_FINISH: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
        **dict.fromkeys(("max_tokens", "model_length", "max_output_tokens"), "length"),
        **dict.fromkeys(("function_call", "tool_use"), "tool_calls"),
        **dict.fromkeys(("safety", "sensitive"), "content_filter"),
    }
)
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_OPENING = re.compile(r"\s*<think>")
_CLOSING_LINE = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
_CALL_AS_TEXT = re.compile(
    r"<tool_call>\s*(\{|<function=)|<\|?(tool_call|function_call)s?(_begin)?\|?>\s*\{|\[TOOL_CALLS\]\s*\[|"
    r"<function=\w+>|<minimax:tool_call>|<invoke name=",
)


def read_completion(data: Any, think_tags: ThinkTags, tool_prefix: str, call: ModelCall | None = None) -> ModelReply:
    """The reply in a decoded body. Raises LookupError, TypeError or AttributeError for one of another shape."""
    choice = data["choices"][0]
    message = choice["message"]
    thought, text = split_thinking(text_in(message.get("content")), think_tags)
    refusal = text_in(message.get("refusal"))
    finish = str(choice.get("finish_reason") or "").lower()
    first = sum(len(m.get("tool_calls") or ()) for m in call.messages) if call else 0
    calls = tuple(_tool_call(c, f"{tool_prefix}{n}") for n, c in enumerate(message.get("tool_calls") or (), first))
    said = next((text for text in (text_in(message.get(name)) for name in _REASONING) if text), "")
    return ModelReply(
        text=text or refusal,
        finish_reason="refusal" if refusal else _FINISH.get(finish, finish),
        usage=usage_from_openai_usage(data.get("usage")),
        model=str(data.get("model") or ""),
        tool_calls=calls,
        reasoning="\n\n".join(part for part in (said, thought) if part),
        notice=TOOL_PARSER_OFF if call and call.tools and not calls and _CALL_AS_TEXT.search(text) else "",
    )


def split_thinking(text: str, think_tags: ThinkTags) -> tuple[str, str]:
    """Thinking and answer of a text.

    `none`: all of it is the answer. `written`: what stands in `<think>…</think>` at the beginning is thinking; without
    the closing tag, all of it. `opened`: also what stands before the first line `</think>` when the text begins without
    a tag, as it does where the server's prompt template has opened it. Tags further on belong to the answer.
    """
    if think_tags == "none":
        return "", text
    opening = _OPENING.match(text)
    if opening:
        thought, _, answer = text[opening.end() :].partition("</think>")
        return thought.strip(), answer.lstrip()
    closing = _CLOSING_LINE.search(text) if think_tags == "opened" else None
    if closing is None or "<think>" in text[: closing.start()]:
        return "", text
    return text[: closing.start()].strip(), text[closing.end() :].lstrip()


def text_in(content: Any) -> str:
    """Text of a content field: a string, a list of parts, or something else as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        parts = [p if isinstance(p, str) else p.get("text") for p in content if isinstance(p, (str, Mapping))]
        return "".join(part for part in parts if isinstance(part, str))
    return json.dumps(content, ensure_ascii=False)


def _tool_call(data: Mapping[str, Any], spare_id: str) -> CompatToolCall:
    """One tool call. Some servers leave the id out, or give the arguments as an object."""
    function = dict(data.get("function") or {})
    if isinstance(function.get("arguments"), Mapping | Sequence) and not isinstance(function["arguments"], str):
        function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    return CompatToolCall.from_dict({**data, "id": data.get("id") or spare_id, "function": function})
