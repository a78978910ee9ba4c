"""From what a server, a program or a network said to the failure that decides what happens next.

Pure functions. Every message is one line, redacted, and says what to do where somebody can do something.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from skillopt_sleep.errors import CallFailed, FailureKind
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.vendored.model.provider_words import (
    refused_parameter,
    says_filtered,
    says_no_credit,
    says_no_model,
    says_too_long,
)

SHOWN_CHARS = 500
_READ_CHARS = 32_000
_NOTICE_CHARS = 160

_STATUS = re.compile(r"\b(?:API Error|HTTP|status(?: code)?)\W{0,3}([45]\d\d)\b", re.IGNORECASE)
_LIMITED = re.compile(
    r"rate[ _-]?limit|too many requests|(usage|hour|weekly|session) limit|limit reached|overloaded", re.IGNORECASE
)
_LIMITED_UNTIL = re.compile(r"limit reached\|(\d{10})\b")
_USED_UP = re.compile(r"hit your usage limit|usage limit (has been )?reached", re.IGNORECASE)
_SIGN_IN = re.compile(
    r"invalid (x-)?api[ -]?key|authenticat|\blog[ -]?in\b|\b(logged|signed|sign)[ -]in\b|unauthori[sz]ed|oauth"
    r"|refresh token|\b401\b|missing environment variable",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"credit balance is too low|payment required|quota exceeded|exceeded your current quota", re.I)
_OLD_PROGRAM = re.compile(
    r"\b(unknown|unrecogni[sz]ed|unexpected|invalid) (option|argument|flag|subcommand)\b"
    r"|requires? a newer version|please (update|upgrade)\b",
    re.IGNORECASE,
)
# A whole reply that says no more than that somebody has to sign in. A model that writes about it says more.
_SIGN_IN_NOTICE = re.compile(
    r"(?:error:\s*)?"
    r"(?P<fault>invalid (?:x-)?api[ -]?key|(?:you(?: are|'re) )?not (?:logged|signed) in|(?:login|authentication) "
    r"(?:required|failed)|(?:oauth |access )?token (?:has )?expired)?"
    r"[\s·.,:;!—–-]*"
    r"(?P<advice>(?:please )?(?:run|use|type)\s+[`'\"]?(?:(?:claude|codex) )?/?(?:auth )?log-?in\b[^\n]{0,60})?"
    r"[.!\s]*",
    re.IGNORECASE,
)


class ProviderFault(CallFailed):
    """A failure as one attempt sees it. `wait`: seconds that the provider asks for, None for no wish.

    `parameter`: the field of the request that the endpoint does not take, blank for another reason. `tokens`: what the
    attempt used nevertheless, None where the provider does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind = "transient",
        detail: str = "",
        wait: float | None = None,
        parameter: str = "",
        tokens: int | None = None,
    ) -> None:
        super().__init__(message, kind=kind, detail=detail)
        self.tokens = tokens
        self.wait = wait
        self.parameter = parameter

    @property
    def passing(self) -> bool:
        """True when another attempt may succeed."""
        return self.kind in ("rate", "transient", "empty")


def fault_from_status(
    status: int, headers: Mapping[str, str], body: str, who: str, *, fix: str, secrets: Iterable[str] = ()
) -> ProviderFault:
    """The failure for an HTTP answer that is not 2xx. `who` was asked; `fix` mends its credentials, in words."""
    said = shown(_said(body), secrets)
    detail = _ended(f"{who} answered HTTP {status}{': ' + said if said else ''}")
    if says_no_credit(said) or status == 402:
        return ProviderFault(f"{detail} The account has no credit left; {fix}.", kind="auth", detail=said)
    if status in (401, 403) and not says_no_model(said):
        return ProviderFault(f"{detail} {_sentence(fix)}", kind="auth", detail=said)
    if status == 429:
        return ProviderFault(detail, kind="rate", detail=said, wait=asked_wait(headers))
    if status in (408, 409, 425) or status >= 500:
        return ProviderFault(detail, kind="transient", detail=said, wait=asked_wait(headers))
    if 300 <= status < 400:
        return ProviderFault(f"{detail} It redirects, which is not followed; set the final address.", kind="setup")
    return _refusal(status, said, detail)


def _refusal(status: int, said: str, detail: str) -> ProviderFault:
    if says_filtered(said):
        return ProviderFault(f"{detail} The provider's content filter stopped the call.", kind="refused", detail=said)
    if says_too_long(said) or status == 413:
        return ProviderFault(f"{detail} The prompt is too long for this model.", kind="refused", detail=said)
    parameter = refused_parameter(said)
    if parameter:
        return ProviderFault(detail, kind="setup", detail=said, parameter=parameter)
    if status in (401, 403, 404, 405) or says_no_model(said):
        return ProviderFault(f"{detail} Check the model's name and the endpoint.", kind="setup", detail=said)
    return ProviderFault(detail, kind="refused", detail=said)


def fault_from_words(words: str, who: str, *, fix: str, secrets: Iterable[str] = ()) -> ProviderFault:
    """The failure for what a program said when it failed. What nobody knows is taken for passing."""
    said = shown(words, secrets) or "nothing"
    detail = _ended(f"{who} failed: {said}")
    if _USED_UP.search(said) or _NO_CREDIT.search(said) or says_no_credit(said):
        return ProviderFault(f"{detail} Nothing more can be asked of this account now.", kind="auth", detail=said)
    if _LIMITED.search(said):
        until = _LIMITED_UNTIL.search(said)
        wait = max(0.0, float(until[1]) - time.time()) if until else None
        return ProviderFault(detail, kind="rate", detail=said, wait=wait)
    if _OLD_PROGRAM.search(said):
        return ProviderFault(f"{detail} Update the program.", kind="setup", detail=said)
    status = int(next(iter(_STATUS.findall(said)), 0))
    if status not in (0, 400):
        return fault_from_status(status, {}, said, who, fix=fix, secrets=secrets)
    if says_no_model(said) or says_filtered(said) or says_too_long(said):
        return _refusal(0, said, detail)
    if _SIGN_IN.search(said):
        return not_signed_in(said, who, fix=fix, secrets=secrets)
    return ProviderFault(detail, detail=said)


def not_signed_in(words: str, who: str, *, fix: str, secrets: Iterable[str] = ()) -> ProviderFault:
    """The failure for a program that nobody has signed in to."""
    said = shown(words, secrets)
    return ProviderFault(f"{who} is not signed in ({said}). {_sentence(fix)}", kind="auth", detail=said)


def asks_to_sign_in(reply: str) -> bool:
    """True when a reply that looks successful is nothing but a request to sign in.

    A longer answer about signing in is an answer.
    """
    text = reply.strip()
    match = _SIGN_IN_NOTICE.fullmatch(text) if len(text) <= _NOTICE_CHARS else None
    return bool(match and (match["fault"] or match["advice"]))


def shown(words: str, secrets: Iterable[str] = (), limit: int = SHOWN_CHARS) -> str:
    """Words of a provider for a message: one line, without `secrets` and what looks like one, at most `limit` long."""
    text = re.sub(r"//[^/\s@]*@", "//", words[:_READ_CHARS])
    for secret in sorted((secret for secret in secrets if len(secret) >= 4), key=len, reverse=True):
        text = text.replace(secret, "[REDACTED]")
    flat = " ".join(str(redact_secrets(text)).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def asked_wait(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """Seconds that a provider asks to wait: `retry-after-ms`, or `Retry-After` as seconds or an HTTP date."""
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


def _said(body: str) -> str:
    """The words of an error body: `error.code` and `error.message` of the usual JSON shapes, else the text itself."""
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body
    error = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(error, dict):
        words = [str(error[key]) for key in ("code", "type", "param", "message", "detail") if error.get(key)]
        return ": ".join(dict.fromkeys(words)) or body
    return error if isinstance(error, str) else body


def _ended(words: str) -> str:
    """Words with a full stop, so that another sentence can follow."""
    return words if words.endswith((".", "!", "?", "…")) else words + "."


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None
