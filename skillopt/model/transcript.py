"""A conversation, with its tools, as one text for a program that takes a prompt and gives a text.

Used by the backends that are command lines. System text stands apart, because some of them have a channel of its own
for it. A conversation is written as one bullet a message; every further line of a message is indented under its
bullet, so that no message can pass for another one. Tools are described, never handed over: the model is asked to
request a call in its reply, which is then JSON of `reply_schema`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillopt.errors import BadRequestError, ReplyError, TransientError
from skillopt.model.attachments import Image, read_image
from skillopt.model.values import CompatToolCall, CompatToolFunction, Message, ModelCall
from skillopt.types import JsonObject
from skillopt.utils.json_reply import read_reply

Tools = Sequence[Mapping[str, Any]]

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
"""Types of the parts of a message that are text."""

_SYSTEM_ROLES = frozenset({"system", "developer"})
_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_RESULT_ROLES = frozenset({"tool", "function"})
_COMMAND_MARKS = ("/", "!", "#")  # a command line may take a prompt that begins so for a command of its own
_RULE = "\n\n---\n\n"
_REQUEST = "Request:\n\n"
_HISTORY = "History, one bullet a message; indented lines belong to the message above them:"
_ANSWER = "Go on as the assistant: answer the latest request in this history."
_TOOL_RULES = (
    "You can ask for the tools below. Do not run them, and use no other: whoever reads your reply runs what you "
    "request and gives you the results. To request a call, put its name and its arguments (a JSON object, written as a "
    "string) into tool_calls. When no call is needed, leave tool_calls empty and answer in content."
)
_STRUCTURED_ANSWER = (
    "Go on as the assistant: answer the latest request in this history with one JSON object and nothing else:\n"
    '{"content": "text of the answer, may be empty", "tool_calls": [{"name": "tool", "arguments": "{}"}]}'
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """What to send: text of all system messages, the prompt, and the images that it speaks of, in order."""

    system: str
    prompt: str
    images: tuple[Image, ...] = ()

    @property
    def joined(self) -> str:
        """System text and prompt in one, a rule between them, for a program without a channel for system text."""
        return f"{self.system}{_RULE}{self.prompt}" if self.system else self.prompt


def wants_structure(call: ModelCall) -> bool:
    """True when the reply has to be JSON of `reply_schema`: tools are offered and may be called."""
    return bool(call.tools) and call.tool_choice != "none"


def render(call: ModelCall) -> Transcript:
    """The conversation of `call` as text.

    One user message alone, without tools, is sent as it is. Images become `[Attached image n]` in the text. Raises
    BadRequestError for what cannot be shown: another kind of content, a tool that is no function, an image that is
    not here.
    """
    images: list[Image] = []
    system = [_content(m, images) for m in call.messages if m.get("role") in _SYSTEM_ROLES]
    spoken = [m for m in call.messages if m.get("role") not in _SYSTEM_ROLES]
    instructions = "\n\n".join(text for text in system if text)
    if not wants_structure(call) and not spoken:
        return Transcript("", instructions, tuple(images))
    if not wants_structure(call) and len(spoken) == 1 and spoken[0].get("role") == "user":
        prompt = _content(spoken[0], images)
        guard = _REQUEST if prompt.lstrip().startswith(_COMMAND_MARKS) else ""
        return Transcript(instructions, guard + prompt, tuple(images))
    bullets = [bullet for message in spoken for bullet in _bullets(message, images)]
    sections = [*_tool_section(call), "\n".join([_HISTORY, *bullets])]
    sections.append(_STRUCTURED_ANSWER if wants_structure(call) else _ANSWER)
    return Transcript(instructions, "\n\n".join(sections), tuple(images))


def reply_schema(tools: Tools, tool_choice: Any = None) -> JsonObject:
    """JSON Schema of a reply with `content` and `tool_calls`; only the tools that may be called are named in it."""
    call = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": list(_callable_names(tools, tool_choice))},
            "arguments": {"type": "string", "description": "The arguments: a JSON object, written as a string."},
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"content": {"type": "string"}, "tool_calls": {"type": "array", "items": call}},
        "required": ["content", "tool_calls"],
        "additionalProperties": False,
    }


def parse_structured(
    data: Mapping[str, Any] | str, tools: Tools, tool_choice: Any = None, prefix: str = "tool"
) -> tuple[str, tuple[CompatToolCall, ...]]:
    """The text and the tool calls of a reply in the form of `reply_schema`.

    `data`: the object, or text that holds it. Ids are `<prefix>_<n>_<12 hex digits>`, never the same in two turns.
    Raises TransientError, so that the model is asked again, for another form, a tool that may not be called, arguments
    that are no JSON object, and a call that `tool_choice` demands and that is missing.
    """
    reply = _as_object(data)
    content, requests = reply.get("content", ""), reply.get("tool_calls") or []
    if not isinstance(content, str) or not isinstance(requests, list):
        raise TransientError("The reply is not an object with content (a string) and tool_calls (a list).")
    allowed = _callable_names(tools, tool_choice)
    calls = tuple(_tool_call(request, allowed, f"{prefix}_{n}") for n, request in enumerate(requests))
    if not calls and _demands_call(tool_choice):
        raise TransientError(f"The reply requests no tool, though one of {', '.join(allowed)} had to be called.")
    return content, calls


def _bullets(message: Message, images: list[Image]) -> list[str]:
    """One message as a bullet, and another one for the tools that it requests."""
    role = str(message.get("role") or "")
    text = _content(message, images)
    if role in _RESULT_ROLES:
        return [_bullet(f"Tool result ({_one_line(message.get('tool_call_id') or message.get('name'))})", text)]
    if role not in _SPEAKERS:
        raise BadRequestError(f"A message has the role {role!r}; expected system, user, assistant or tool.")
    requests = [_request(call) for call in message.get("tool_calls") or ()]
    bullets = [_bullet(_SPEAKERS[role], text)] if text or not requests else []
    return [*bullets, *(_bullet("Assistant requested a tool", request) for request in requests)]


def _bullet(label: str, text: str) -> str:
    first, *rest = text.splitlines(keepends=True) or [""]
    return f"- {label}: " + "".join([first, *("  " + line for line in rest)])


def _request(call: Any) -> str:
    """A tool request of an earlier turn as one line of JSON."""
    data = call if isinstance(call, Mapping) else call.model_dump(mode="json")
    known = CompatToolCall.from_dict(data)
    shown = {"id": known.id, "name": known.function.name, "arguments": known.function.arguments}
    return json.dumps(shown, ensure_ascii=False)


def _content(message: Message, images: list[Image]) -> str:
    """Text of a message; its images are added to `images` and leave a label."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        return json.dumps(content, ensure_ascii=False, default=str)
    return "\n".join(_part(part, images) for part in content)


def _part(part: Any, images: list[Image]) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind in TEXT_PARTS:
        return str(part.get("text", part.get("refusal")) or "")
    if kind in ("image_url", "input_image"):
        address = part.get("image_url")
        images.append(read_image(str(address.get("url") if isinstance(address, Mapping) else address or "")))
        return f"[Attached image {len(images)}]"
    raise BadRequestError(
        f"Content of the type {kind!r} cannot be given to a command line; expected text or image_url."
    )


def _tool_section(call: ModelCall) -> list[str]:
    """What is said about tools: nothing when none may be called."""
    if not wants_structure(call):
        return []
    tools = [_simplified(tool) for tool in call.tools or ()]
    described = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    demanded = ""
    if _demands_call(call.tool_choice):
        demanded = (
            f"\n\nRequest at least one call of: {', '.join(_callable_names(call.tools or (), call.tool_choice))}."
        )
    return [f"{_TOOL_RULES}\n\nTools, one a line:\n{described}{demanded}"]


def _simplified(tool: Mapping[str, Any]) -> JsonObject:
    """Name, description and parameters of a function tool, in either of its two usual shapes."""
    inner = tool.get("function")
    function = inner if isinstance(inner, Mapping) else tool
    if not function.get("name") or tool.get("type", "function") != "function":
        raise BadRequestError(f"A tool of the type {tool.get('type')!r} cannot be offered here; expected a function.")
    return {name: function[name] for name in ("name", "description", "parameters") if function.get(name)}


def _callable_names(tools: Iterable[Mapping[str, Any]], tool_choice: Any) -> tuple[str, ...]:
    """Names of the tools that may be called: all, or the one that `tool_choice` names."""
    names = tuple(str(_simplified(tool)["name"]) for tool in tools)
    chosen = _named_choice(tool_choice)
    if not chosen:
        return names
    if chosen not in names:
        raise BadRequestError(f"tool_choice names {chosen!r}, which is none of the tools: {', '.join(names)}.")
    return (chosen,)


def _named_choice(tool_choice: Any) -> str:
    if not isinstance(tool_choice, Mapping):
        return ""
    inner = tool_choice.get("function")
    return str((inner if isinstance(inner, Mapping) else tool_choice).get("name") or "")


def _demands_call(tool_choice: Any) -> bool:
    return tool_choice in ("required", "any") or bool(_named_choice(tool_choice))


def _as_object(data: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        return data
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        plain = None
    try:
        return plain if isinstance(plain, dict) else dict(read_reply(data).value)
    except ReplyError as error:
        raise TransientError(f"The reply is not the JSON that was asked for: {error}") from error


def _tool_call(request: Any, allowed: tuple[str, ...], label: str) -> CompatToolCall:
    name = request.get("name") if isinstance(request, Mapping) else None
    if name not in allowed:
        raise TransientError(f"The reply requests the tool {name!r}; expected one of {', '.join(allowed)}.")
    arguments = request.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    text = text.strip() or "{}"
    try:
        well_formed = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        well_formed = False
    if not well_formed:
        raise TransientError(f"The reply requests {name} with arguments that are not a JSON object.")
    return CompatToolCall(f"{label}_{uuid.uuid4().hex[:12]}", CompatToolFunction(str(name), text))


def _one_line(value: object) -> str:
    return " ".join(str(value or "no id").split())
