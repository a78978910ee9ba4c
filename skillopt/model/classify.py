"""From what a server or a network said to the class of error that decides what happens next.

Pure functions of status, headers and body. They do not wait, retry or know a session.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any

from skillopt.errors import (
    AuthError,
    BadRequestError,
    ContentFilterError,
    ContextTooLongError,
    ModelError,
    ModelSetupError,
    RateLimitError,
    TransientError,
)
from skillopt.model.provider_words import (
    context_sizes,
    refused_parameter,
    says_filtered,
    says_no_credit,
    says_no_model,
    says_too_long,
)
from skillopt.model.retry import LONGEST_WAIT_SECONDS
from skillopt.utils.redact import redact

MAX_ERROR_CHARS = 2000

_NAMED_STATUS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("invalid_request_error", "context_length_exceeded", "BadRequestError"), 400),
        **dict.fromkeys(("authentication_error", "invalid_api_key"), 401),
        **dict.fromkeys(("not_found_error", "model_not_found", "NotFoundError"), 404),
        **dict.fromkeys(("rate_limit_error", "rate_limit_exceeded", "insufficient_quota"), 429),
        **dict.fromkeys(("server_error", "api_error", "overloaded_error", "InternalServerError"), 500),
        "vector_store_timeout": 503,
    }
)


class UnreachableError(TransientError):
    """Nothing answers at the address: refused, unknown host, no route. Retried in a run, fatal in its preflight."""


class UnsupportedParameterError(BadRequestError):
    """The endpoint does not take one parameter of the request for this model. `parameter` names it."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


@dataclass(frozen=True, slots=True)
class Where:
    """What an error message needs to say: which role, model and address, and what to set to mend credentials."""

    role: str
    model: str
    url: str
    credentials: str = "the credentials"
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def short(self) -> str:
        """`target model m at http://…`."""
        return f"{self.role} model {self.model!r} at {self.url}"


def error_from_status(status: int, headers: Mapping[str, str], body: str, where: Where) -> ModelError:
    """The error for an HTTP answer that is not 2xx. Its text is redacted and at most about 2,000 characters long."""
    said = _said(body, where.secrets)
    detail = f"{where.short} answered HTTP {status}: {said}" if said else f"{where.short} answered HTTP {status}."
    known = _KNOWN_STATUS.get(status)
    if known is not None:
        return known(detail, said, where, headers)
    if status >= 500:
        return TransientError(detail, retry_after(headers))
    if 300 <= status < 400:
        return ModelSetupError(f"{where.short} answered with a redirect (HTTP {status}); set the final address.")
    return _bad_request(detail, said, where, headers)


def network_error(error: BaseException, where: Where, *, reached: bool, proxy: str = "") -> TransientError:
    """The error for a connection that failed. `reached`: a connection existed before it broke. `proxy`: its address."""
    reason = redact(_root_reason(error), where.secrets)[:300]
    if reached:
        return TransientError(f"The connection to {where.short} broke: {reason}")
    if proxy:
        host = proxy.rpartition("@")[2]  # without a name and password
        reason += f" (through the proxy {host} of this environment; NO_PROXY names the hosts that need none)"
    return UnreachableError(f"Nothing answers at {where.url} ({where.role} model {where.model!r}): {reason}")


def unreadable_answer(kind: str, body: str, where: Where) -> TransientError:
    """The error for a 2xx answer that is no `kind` ("a chat completion"): a web page, half a body, other JSON."""
    said = clip(body[: 16 * MAX_ERROR_CHARS], where.secrets, 300)
    return TransientError(
        f"{where.short} answered without {kind}: {said!r}. If this lasts, check the base URL (its path often ends in "
        "/v1) and any proxy in between."
    )


def retry_after(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """Seconds that a provider asks to wait: `retry-after-ms`, or `Retry-After` as seconds or an HTTP date.

    At most `LONGEST_WAIT_SECONDS`.
    """
    asked = _asked_wait(headers, now)
    return None if asked is None else min(asked, LONGEST_WAIT_SECONDS)


def _asked_wait(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(lower.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = lower.get("retry-after")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now())
    except (TypeError, ValueError, OverflowError):
        return None


def status_in_body(error: Mapping[str, Any]) -> int:
    """The status that an error in a body sent as 200 stands for, by its `code` or `type`; 0 when it does not say."""
    code = str(error.get("code"))
    if re.fullmatch(r"[45]\d\d", code):
        return int(code)
    return next((_NAMED_STATUS[name] for name in (code, str(error.get("type"))) if name in _NAMED_STATUS), 0)


def shown_url(url: str) -> str:
    """A URL without user name, password and query, for messages."""
    return re.sub(r"//[^/]*@", "//", url.split("?", 1)[0])


def clip(text: str, secrets: Iterable[str] = (), limit: int = MAX_ERROR_CHARS) -> str:
    """`text` redacted, in one line, cut to `limit` characters."""
    flat = " ".join(redact(text, secrets).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _said(body: str, secrets: tuple[str, ...]) -> str:
    """The words of an error body: `error.code` and `error.message` of the usual JSON shapes, else the text itself."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return clip(body, secrets)
    error = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(error, dict):
        words = [str(error[key]) for key in ("code", "type", "param", "message", "detail") if error.get(key)]
        return clip(": ".join(dict.fromkeys(words)) or body, secrets)
    return clip(error if isinstance(error, str) else body, secrets)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


def _root_reason(error: BaseException) -> str:
    """The innermost reason of a wrapped network error: `[Errno 111] Connection refused`."""
    seen: set[int] = set()
    current: BaseException = error
    while id(current) not in seen:
        seen.add(id(current))
        inner: Any = getattr(current, "reason", None) or current.__context__
        inner = inner if isinstance(inner, BaseException) else next((a for a in current.args if _is_error(a)), None)
        if inner is None:
            break
        current = inner
    return str(current) or type(current).__name__


def _is_error(value: object) -> bool:
    return isinstance(value, BaseException)


def _then(detail: str, advice: str) -> str:
    """What a server said, as a sentence, and what to do about it."""
    return f"{detail} {advice}" if detail.endswith((".", "!", "?", "…")) else f"{detail}. {advice}"


def _auth(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    if says_no_model(said):
        return ModelSetupError(_then(detail, "Choose a model that this account may use."))
    return AuthError(_then(detail, f"Check {where.credentials}."))


def _no_credit(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return AuthError(_then(detail, f"The account behind {where.credentials} has no credit left."))


def _not_there(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return ModelSetupError(_then(detail, "Check the model's name and the base URL."))


def _limited(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:
    if says_no_credit(said):
        return _no_credit(detail, said, where, headers)
    return RateLimitError(detail, retry_after(headers))


def _passing(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return TransientError(detail, retry_after(headers))


def _too_long(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    prompt, limit = context_sizes(said)
    advice = "Shorten the prompt or take a model with a larger window."
    if prompt is not None and limit is not None:
        fits = "Lower max_tokens, or shorten the prompt." if prompt < limit else advice
        advice = f"The prompt has {prompt:,} tokens, the limit is {limit:,}. {fits}"
    return ContextTooLongError(_then(detail, advice), prompt, limit)


def _bad_request(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:
    if says_filtered(said):
        return ContentFilterError(_then(detail, "The provider's content filter stopped the request."))
    if says_too_long(said):
        return _too_long(detail, said, where, headers)
    refused = refused_parameter(said)
    if refused:
        return UnsupportedParameterError(detail, refused)
    if says_no_model(said):
        return ModelSetupError(_then(detail, "Choose a model that this account may use."))
    return BadRequestError(detail)


_KNOWN_STATUS: Mapping[int, Callable[[str, str, Where, Mapping[str, str]], ModelError]] = {
    400: _bad_request,
    401: _auth,
    402: _no_credit,
    403: _auth,
    404: _not_there,
    405: _not_there,
    408: _passing,
    409: _passing,
    413: _too_long,
    422: _bad_request,
    425: _passing,
    429: _limited,
}
