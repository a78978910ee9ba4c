"""The one way to take secrets out of a text before it is shown or stored."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "[REDACTED]"

_NAME = re.compile(
    r"(api[-_]?key|access[-_]?key|token|secret|password|passwd|credential|authorization)s?$|bearer[-_]?token",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(
    r"(max|min|total|prompt|completion|cached|reasoning|num|budget)[-_a-z]*tokens?$", re.IGNORECASE
)
_PATTERNS = (
    # "Authorization: Bearer abc", "api_key=abc", '"apiKey": "abc"', "x-api-key: abc". A name is tried from its first
    # character only: one try at each of its hyphens would take time with the square of its length.
    re.compile(
        r"(?P<label>(?<![\w-])[\w-]*(?:authorization|api[-_]?key|access[-_]?key|access[-_]?token|refresh[-_]?token|"
        r"client[-_]?secret|password)[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?)(?P<value>[^\s\"',;}{)]{4,})",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<label>\bbearer\s+)(?P<value>[A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE),
    # Well-known key shapes that need no label.
    re.compile(
        r"(?P<label>)(?P<value>\b(?:sk|pk|rk|gh[opsu]|github_pat|glpat|hf|gsk|xai|xoxb|xoxp|AKIA)[-_][A-Za-z0-9_-]{16,})"
    ),
    re.compile(r"(?P<label>)(?P<value>\b(?:key-[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}|AKIA[0-9A-Z]{16}\b))"),
    re.compile(r"(?P<label>)(?P<value>(?<![\w-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,})"),
    re.compile(
        r"(?P<label>)(?P<value>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))", re.DOTALL
    ),
)

_USERINFO = re.compile(r"(?<=://)[^/\s?#]+@")
_QUERY_SECRET = re.compile(
    r"(?P<name>[?&](?:(?:[\w.-]*[-_.])?(?:api)?(?:key|token|secret|password|auth)|sig|signature|code)=)[^&#\s]+",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """True when a setting of this name holds a secret, judged by its last word (`..._api_key`, `...token`)."""
    last = name.rsplit(".", 1)[-1]
    return bool(_NAME.search(last)) and not _NOT_SECRET.search(last)


def secret_values(text: str, secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """What `redact` would take out of `text`: the given secrets, labelled values and well-known key shapes."""
    given = [secret for secret in secrets if len(secret) >= 4 and secret in text]
    return tuple(dict.fromkeys((*given, *(match["value"] for p in _PATTERNS for match in p.finditer(text)))))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with the given secrets, labelled secrets and well-known key shapes replaced by `[REDACTED]`.

    Prose such as "token budget exceeded" is left alone. Applying it twice changes nothing more.
    """
    for secret in sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(lambda match: f"{match['label']}{MASK}", text)
    return text


def hide_in_addresses(text: str) -> str:
    """`text` with `[hidden]` for user name and password, and for query values named like a credential, of its URLs."""
    return _QUERY_SECRET.sub(r"\g<name>[hidden]", _USERINFO.sub("[hidden]@", text))
