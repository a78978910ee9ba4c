"""Chat Completions as JSON: what an answer means, and stand-in tools that a model can call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillopt_sleep.backends.faults import ProviderFault, fault_from_status, shown
from skillopt_sleep.backends.wire import Reply
from skillopt_sleep.vendored.model.provider_words import says_filtered

TOOL_TURNS = 4
TOOL_RESULT = "Three notes match. 1: the first note. 2: the second note. 3: the third note."
"""What every stand-in tool answers: enough to go on with, and nothing of anybody's."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL | re.IGNORECASE)
_INPUT = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to ask the tool."}},
    "required": [],
}


def function_names(tools: Iterable[str]) -> dict[str, str]:
    """A name that is allowed for a function, for each tool: `{function name: tool}`; distinct, at most 48 long."""
    names: dict[str, str] = {}
    for tool in dict.fromkeys(tools):
        plain = _NOT_IN_A_NAME.sub("_", tool)[:40] or "tool"
        name, number = plain, 2
        while name in names:
            name, number = f"{plain}_{number}", number + 1
        names[name] = tool
    return names


def tool_about(tool: str) -> str:
    """The description of a stand-in tool."""
    return f"Runs {tool} with the given query and returns its result."


def tool_schemas(tools: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """(the functions of a request, tool by function name)."""
    names = function_names(tools)
    functions = [
        {"type": "function", "function": {"name": name, "description": tool_about(tool), "parameters": _INPUT}}
        for name, tool in names.items()
    ]
    return functions, names


def called_functions(message: Mapping[str, Any]) -> list[str]:
    """Names of the functions that an assistant's message calls."""
    return [call["function"]["name"] for call in message.get("tool_calls") or ()]


def tool_answers(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that answer the tool calls of an assistant's message."""
    return [{"role": "tool", "tool_call_id": call["id"], "content": TOOL_RESULT} for call in message["tool_calls"]]


def read_completion(text: str, who: str, secrets: Iterable[str] = ()) -> tuple[dict[str, Any], Reply]:
    """(the assistant's message, the reply) in the body of an answer 2xx.

    Raises ProviderFault: transient for what is no completion, refused for a refusal, empty for no text.
    """
    data = _object(text, who, secrets)
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    message = choice.get("message") if choice is not None else None
    if not isinstance(message, dict):
        raise ProviderFault(f"{who} answered without a choice: {shown(text, secrets, 200)}")
    finish = str(choice.get("finish_reason") or "stop") if choice is not None else "stop"
    calls = _well_formed(message.get("tool_calls"))
    answer = _THINKING.sub("", _content(message.get("content"))).strip()
    usage = data.get("usage")
    prompt, completion = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
    if not answer and not calls:
        fault = _without_text(message, finish, who)
        fault.tokens = prompt + completion if prompt is not None and completion is not None else None
        raise fault
    reply = Reply(answer, prompt, completion, str(data.get("model") or ""), cut=finish == "length")
    said = {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}
    return said, reply


def _object(text: str, who: str, secrets: Iterable[str]) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ProviderFault(f"{who} answered with something that is no JSON object: {shown(text, secrets, 200)}")
    error = data.get("error")
    if error and "choices" not in data:
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        raise fault_from_status(status, {}, text, who, fix="check its credentials", secrets=secrets)
    return data


def _without_text(message: Mapping[str, Any], finish: str, who: str) -> ProviderFault:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return ProviderFault(f"{who} declined: {shown(refusal)}", kind="refused", detail=shown(refusal))
    if finish == "content_filter" or says_filtered(finish):
        return ProviderFault(f"The content filter of {who} withheld the answer.", kind="refused")
    if finish == "length":
        return ProviderFault(
            f"{who} reached its token limit before it wrote an answer; raise SKILLOPT_SLEEP_COMPAT_MAX_TOKENS.",
            kind="empty",
        )
    return ProviderFault(f"{who} gave an empty answer.", kind="empty")


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _well_formed(calls: Any) -> list[dict[str, Any]]:
    kept = []
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            kept.append({**call, "id": str(call.get("id") or f"call_{number}"), "type": "function"})
    return kept


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
