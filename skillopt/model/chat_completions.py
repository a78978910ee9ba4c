"""Chat Completions, the one implementation of all backends that speak it.

A backend is a `Dialect` row and what only it knows; building the request, sending it once and reading the reply happen
here. The message shapes are those of OpenAI's public reference of `POST /chat/completions`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.errors import (
    AuthError,
    BadRequestError,
    ContentFilterError,
    ContextTooLongError,
    ModelError,
    ModelSetupError,
)
from skillopt.model.chat_reply import ThinkTags, read_completion
from skillopt.model.classify import (
    UnsupportedParameterError,
    Where,
    error_from_status,
    shown_url,
    status_in_body,
    unreadable_answer,
)
from skillopt.model.event_stream import decode_body
from skillopt.model.message_parts import check_messages
from skillopt.model.provider_words import EFFORT
from skillopt.model.registry import credentials_hint, setting_default, setting_hint
from skillopt.model.replies import token_cap
from skillopt.model.transport_http import HttpAnswer, HttpPool, HttpRequest
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig

CAP_NAMES = ("max_tokens", "max_completion_tokens")


def _nothing(call: ModelCall, role: RoleConfig) -> JsonObject:  # noqa: ARG001 - the shape of `Dialect.extras`
    return {}


def _from_settings(role: RoleConfig) -> str:
    return str(role.settings.get("base_url") or setting_default(role, "base_url"))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one backend's Chat Completions differ from the others'.

    `cap_field`: name of the limit on output tokens, or how a role chooses it. `sends_effort`: whether
    `reasoning_effort` is part of the request. `extras`: further fields of the request. `tool_prefix`: ids of tool calls
    that came without one, `<prefix><n>`. `base_url`: a role's address. `think_tags`: how thinking text inside the
    answer is told from it (see `chat_reply.split_thinking`). `body_status`: the HTTP status that an error in a body
    sent as 200 stands for, 0 for none. `settings_of`: fields of the request, each with the setting that put it there:
    an endpoint that refuses such a field makes every call fail until the setting is changed.
    """

    cap_field: Callable[[RoleConfig], str] | str = "max_tokens"
    sends_effort: bool = False
    extras: Callable[[ModelCall, RoleConfig], JsonObject] = _nothing
    tool_prefix: str = "call_"
    base_url: Callable[[RoleConfig], str] = _from_settings
    think_tags: ThinkTags = "none"
    body_status: Callable[[Mapping[str, Any]], int] = lambda _: 0
    settings_of: tuple[tuple[str, str], ...] = ()


def complete_with(dialect: Dialect, call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One request to `<base_url>/chat/completions`. Raises the classes of `skillopt.errors.ModelError`."""
    url = completions_url(dialect.base_url(role))
    payload = build_payload(call, role, dialect, ctx.dropped, cap_factor=ctx.cap_factor)
    key = str(role.settings.get("api_key") or "").strip()
    try:
        answer, where = post_json(url, payload, role, ctx, key=key)
    except BadRequestError as error:
        raise _unwanted_field(error, payload, role, dialect) or error from None
    return parse_reply(answer, where, dialect, call)


def completions_url(base_url: str) -> str:
    """The address to post to.

    Blanks and trailing slashes go; an address that already ends in `/chat/completions` is taken as it is; a bare host
    (`http://h:9`) gets `/v1`. Raises ModelSetupError for what is not an http(s) address.
    """
    url = base_url.strip().rstrip("/")
    match = re.fullmatch(r"(https?://[^/\s?#]+)([^\s?#]*)(\?[^\s#]*)?", url, re.IGNORECASE)
    if not match:
        raise ModelSetupError(f"base_url {shown_url(base_url)!r} is not an address like http://host:8000/v1.")
    host, path, query = match[1], match[2].rstrip("/"), match[3] or ""
    if not path.endswith("/chat/completions"):
        path = f"{path or '/v1'}/chat/completions"
    return f"{host}{path}{query}"


def build_payload(
    call: ModelCall,
    role: RoleConfig,
    dialect: Dialect,
    dropped: frozenset[str] = frozenset(),
    *,
    cap_factor: int = 1,
) -> JsonObject:
    """The request body. What an endpoint refused before (`dropped`) is left out.

    Where one name of the limit on output tokens was refused, the limit goes out under its other name. Raises
    BadRequestError for messages with content that no server takes.
    """
    check_messages(call.messages, f"{role.role} model {call.model or role.model!r}")
    payload: JsonObject = {"model": call.model or role.model, "messages": [dict(m) for m in call.messages]}
    own = dialect.cap_field if isinstance(dialect.cap_field, str) else dialect.cap_field(role)
    names = (own, *(name for name in CAP_NAMES if name != own))
    payload[next((name for name in names if name not in dropped), own)] = token_cap(call, role, cap_factor)
    temperature = call.temperature if call.temperature is not None else role.settings.get("temperature")
    if temperature is not None:
        payload["temperature"] = temperature
    if dialect.sends_effort and (call.effort or role.effort):
        payload["reasoning_effort"] = call.effort or role.effort
    if call.tools:
        payload["tools"] = [dict(tool) for tool in call.tools]
        if call.tool_choice is not None:
            payload["tool_choice"] = call.tool_choice
    payload.update(dialect.extras(call, role))
    return {name: value for name, value in payload.items() if name not in dropped}


def post_json(
    url: str, payload: JsonObject, role: RoleConfig, ctx: CallContext, *, key: str, key_header: str = "Authorization"
) -> tuple[HttpAnswer, Where]:
    """Send a body once. Returns the 2xx answer, and what messages about it need; raises by status otherwise.

    `Authorization` carries `Bearer <key>`, any other `key_header` the key itself; an empty key sends no header. Raises
    AuthError for a key that no header can hold and BadRequestError for a payload that is no JSON, both unsent.
    """
    model = str(payload.get("model") or role.model)
    where = Where(role.role, model, shown_url(url), credentials_hint(role), _secrets(key, url))
    if not re.fullmatch(r"[!-~]*", key):
        raise AuthError(
            f"The key for {where.short} holds a blank or a character that no key has; mend {where.credentials}."
        )
    try:
        body = json.dumps(payload, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequestError(f"The request for {where.short} cannot be written as JSON: {error}.") from None
    pool = ctx.resources.get("http", HttpPool)
    request = HttpRequest(url, body, where, key, key_header, "Bearer" if key_header == "Authorization" else "")
    answer = pool.post(request, timeout=ctx.timeout, cancel=ctx.cancel)
    if not 200 <= answer.status < 300:
        raise _about_this(error_from_status(answer.status, answer.headers, answer.text, where), payload)
    return answer, where


def _about_this(error: ModelError, payload: JsonObject) -> ModelError:
    """The error as one of this request: a parameter that is not in it cannot be what was refused."""
    if not isinstance(error, UnsupportedParameterError):
        return error
    names = {"reasoning", EFFORT} if error.parameter == EFFORT else {error.parameter}
    return BadRequestError(str(error)) if names.isdisjoint(payload) else error


def parse_reply(answer: HttpAnswer, where: Where, dialect: Dialect, call: ModelCall | None = None) -> ModelReply:
    """The reply in a Chat Completions body.

    `call`, what was asked: tells whether tools were offered, and how many tool calls the conversation holds already, so
    that ids made here do not repeat. Raises TransientError for a body that is no completion, or the error it holds.
    """
    try:
        data = decode_body(answer.text)
        code = _error_code(data) or (dialect.body_status(data) if isinstance(data, Mapping) else 0)
        reply = None if code else read_completion(data, dialect.think_tags, dialect.tool_prefix, call)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise unreadable_answer("a chat completion", answer.text, where) from None
    if reply is None:
        raise error_from_status(code, answer.headers, answer.text, where)
    return reply


def _error_code(data: Any) -> int:
    """The status that a gateway hides in a body sent as 200, `{"error": {"code": 429, …}}` or by name; 0 for none.

    Some put the error into the choice, beside or instead of the message.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    places = (data, choices[0] if isinstance(choices, list) and choices else None)
    for place in places:
        error = place.get("error") if isinstance(place, dict) else None
        code = status_in_body(error) if isinstance(error, dict) else 0
        if code:
            return code
    return 0


def _unwanted_field(
    error: BadRequestError, payload: JsonObject, role: RoleConfig, dialect: Dialect
) -> ModelSetupError | None:
    """What to say when a server refuses a field that a setting put into the request, None for other refusals."""
    if isinstance(error, ContextTooLongError | ContentFilterError):
        return None
    for name, setting in dialect.settings_of:
        if name in payload and name in str(error):
            hint = setting_hint(role, setting)
            return ModelSetupError(f"{error} The field {name} is sent because of the setting {setting}; change {hint}.")
    return None


def _secrets(key: str, url: str) -> tuple[str, ...]:
    """What must not show: the key, and a password or query in the address."""
    userinfo = re.match(r"https?://([^/]*)@", url, re.IGNORECASE)
    name, _, password = userinfo[1].partition(":") if userinfo else ("", "", "")
    query = url.partition("?")[2]
    return tuple(secret for secret in (key, f"{name}:{password}", password, query) if secret.strip(":"))
