"""Any server that speaks OpenAI's Chat Completions: build the request, send it once, read the reply.

Settings (see the provider's row): `base_url`, `api_key`, `temperature`, `timeout_seconds`, `max_tokens`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from skillopt.errors import AuthError, ModelSetupError, TransientError
from skillopt.model.classify import MAX_ERROR_CHARS, Where, clip, error_from_status, shown_url
from skillopt.model.registry import credentials_hint
from skillopt.model.transport_http import HttpAnswer, HttpPool, HttpRequest
from skillopt.model.values import CallContext, CompatToolCall, ModelCall, ModelReply, usage_from_openai_usage
from skillopt.types import JsonObject, RoleConfig

DEFAULT_BASE_URL = "https://api.openai.com/v1"


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One request to `<base_url>/chat/completions`. Raises the classes of `skillopt.errors.ModelError`."""
    url = completions_url(str(role.settings.get("base_url") or DEFAULT_BASE_URL))
    key = str(role.settings.get("api_key") or "").strip()
    payload = build_payload(call, role, ctx.dropped)
    where = Where(role.role, str(payload["model"]), shown_url(url), credentials_hint(role), _secrets(key, url))
    if not re.fullmatch(r"[!-~]*", key):
        raise AuthError(
            f"The key for {where.short} holds a blank or a character that no key has; mend {where.credentials}."
        )
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    pool = ctx.resources.get("http", HttpPool)
    answer = pool.post(HttpRequest(url, body, where, key), timeout=ctx.timeout, cancel=ctx.cancel)
    if not 200 <= answer.status < 300:
        raise error_from_status(answer.status, answer.headers, answer.text, where)
    return parse_reply(answer, where)


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


def build_payload(call: ModelCall, role: RoleConfig, dropped: frozenset[str] = frozenset()) -> JsonObject:
    """The request body. What an endpoint refused before (`dropped`) is left out.

    Where `max_tokens` was refused, the limit goes out under its newer name `max_completion_tokens`.
    """
    payload: JsonObject = {"model": call.model or role.model, "messages": [dict(m) for m in call.messages]}
    cap = role.settings.get("max_tokens")
    limit = min(call.max_completion_tokens, int(cap)) if cap else call.max_completion_tokens
    payload["max_completion_tokens" if "max_tokens" in dropped else "max_tokens"] = limit
    temperature = call.temperature if call.temperature is not None else role.settings.get("temperature")
    if temperature is not None:
        payload["temperature"] = temperature
    if call.tools:
        payload["tools"] = [dict(tool) for tool in call.tools]
        if call.tool_choice is not None:
            payload["tool_choice"] = call.tool_choice
    return {name: value for name, value in payload.items() if name not in dropped}


def parse_reply(answer: HttpAnswer, where: Where) -> ModelReply:
    """The reply in a Chat Completions body. Raises TransientError for a body that is none, or the error it holds."""
    try:
        data = json.loads(answer.text)
        code = _error_code(data)
        if code:
            raise error_from_status(code, answer.headers, answer.text, where)
        choice = data["choices"][0]
        message = choice["message"]
        finish = str(choice.get("finish_reason") or "stop")
        calls = tuple(_tool_call(c, n) for n, c in enumerate(message.get("tool_calls") or ()))
        refusal = message.get("refusal")
        text = _text(message.get("content")) or _text(refusal)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        said = clip(answer.text[: 16 * MAX_ERROR_CHARS], where.secrets, 300)
        raise TransientError(f"{where.short} answered without a chat completion: {said!r}") from None
    return ModelReply(
        text=text,
        finish_reason=finish,
        usage=usage_from_openai_usage(data.get("usage")),
        model=str(data.get("model") or ""),
        tool_calls=calls,
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
    )


def _error_code(data: Any) -> int:
    """The status that a gateway hides in a body sent as 200, `{"error": {"code": 429, …}}`; 0 for none."""
    error = data.get("error") if isinstance(data, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 0


def _text(content: Any) -> str:
    """Text of a content field: a string, a list of parts, or something else as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        parts = [p if isinstance(p, str) else p.get("text") for p in content if isinstance(p, (str, Mapping))]
        return "".join(part for part in parts if isinstance(part, str))
    return json.dumps(content, ensure_ascii=False)


def _tool_call(data: Mapping[str, Any], number: int) -> CompatToolCall:
    return CompatToolCall.from_dict({**data, "id": data.get("id") or f"call_{number}"})


def _secrets(key: str, url: str) -> tuple[str, ...]:
    """What must not show: the key, and a password or query in the address."""
    userinfo = re.match(r"https?://([^/]*)@", url, re.IGNORECASE)
    name, _, password = userinfo[1].partition(":") if userinfo else ("", "", "")
    query = url.partition("?")[2]
    return tuple(secret for secret in (key, f"{name}:{password}", password, query) if secret.strip(":"))
