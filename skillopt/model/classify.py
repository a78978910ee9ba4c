"""From what a server or a network said to the class of error that decides what happens next.

Pure functions of status, headers and body. They do not wait, retry or know a session.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from skillopt.errors import (
    AuthError,
    BadRequestError,
    ContextTooLongError,
    ModelError,
    ModelSetupError,
    RateLimitError,
    TransientError,
)
from skillopt.model.retry import LONGEST_WAIT_SECONDS
from skillopt.utils.redact import redact

MAX_ERROR_CHARS = 2000


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
    secrets: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """`target model m at http://…`."""
        return f"{self.role} model {self.model!r} at {self.url}"


_PARAMETERS = "temperature|max_completion_tokens|max_tokens|tool_choice|tools|reasoning_effort|top_p|seed"
_UNSUPPORTED = re.compile(
    rf"(unsupported|unrecogni[sz]ed|unknown|not supported|does not support|unexpected|not permitted|extra inputs?|"
    rf"only the default)[^\n]{{0,120}}?\b({_PARAMETERS})\b"
    rf"|\b({_PARAMETERS})\b[^\n]{{0,120}}?(unsupported|not supported|does not support|unrecogni[sz]ed|not permitted|"
    rf"deprecated|only the default)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"context[_ ](length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input is too long|"
    r"reduce the length of the (messages|prompt|input)|exceeds? (the|this) (model'?s )?(max|available context)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model_not_supported|model_not_available|invalid_model|deploymentnotfound|"
    r"(unknown|invalid|no such|unsupported) model\b|"
    r"\b(model|deployment)\b[^\n]{0,100}?"
    r"(does not exist|not exist|not found|is not available|not enabled|not been enabled|"
    r"(not|n't) supported (on|for|in|with|by|when using) (this|your|the)|no access|not (have|has) access)|"
    r"\b(not (have|has)|no) access to[^\n]{0,60}\b(model|deployment)\b",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient (balance|credits?|funds)|out of credits?|no credits? left", re.IGNORECASE
)


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


def network_error(error: BaseException, where: Where, *, reached: bool) -> TransientError:
    """The error for a connection that failed. `reached`: a connection existed before it broke."""
    reason = redact(_root_reason(error), where.secrets)[:300]
    if reached:
        return TransientError(f"The connection to {where.short} broke: {reason}")
    return UnreachableError(f"Nothing answers at {where.url} ({where.role} model {where.model!r}): {reason}")


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
    if _NO_MODEL.search(said):
        return ModelSetupError(_then(detail, "Choose a model that this account may use."))
    return AuthError(_then(detail, f"Check {where.credentials}."))


def _no_credit(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return AuthError(_then(detail, f"The account behind {where.credentials} has no credit left."))


def _not_there(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return ModelSetupError(_then(detail, "Check the model's name and the base URL."))


def _limited(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:
    if _NO_CREDIT.search(said):
        return _no_credit(detail, said, where, headers)
    return RateLimitError(detail, retry_after(headers))


def _passing(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return TransientError(detail, retry_after(headers))


def _too_long(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:  # noqa: ARG001
    return ContextTooLongError(_then(detail, "Shorten the prompt or take a model with a larger window."))


def _bad_request(detail: str, said: str, where: Where, headers: Mapping[str, str]) -> ModelError:
    if _CONTEXT.search(said):
        return _too_long(detail, said, where, headers)
    refused = _UNSUPPORTED.search(said)
    if refused:
        return UnsupportedParameterError(detail, (refused[2] or refused[3]).lower())
    if _NO_MODEL.search(said):
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
