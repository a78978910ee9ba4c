"""Takes secrets out of text, lists and mappings before they are stored, shown or sent.

Each kind of secret leaves a marker that says what it was. A marker that is there already is left alone, so applying it
twice changes nothing more. Every step takes time in proportion to the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from skillopt_sleep.redact_values import MARKER, Value, read_value

_T = TypeVar("_T")
MASK = "[REDACTED]"
_DEEPEST = 200
_PASSES = 8  # a marker can make what stands before it readable as the name of a value

_EXACT = frozenset({"pwd", "sig", "authorization", "cookie", "setcookie"})
_ENDINGS = (
    "apikey",
    "accesstoken",
    "refreshtoken",
    "token",
    "password",
    "passwd",
    "clientsecret",
    "secret",
    "secretkey",
    "secretaccesskey",
    "sharedaccesskey",
    "privatekey",
    "accountkey",
    "passphrase",
    "passwort",
    "encryptionkey",
    "signingkey",
    "secretkeybase",
)


# Key shapes that need no label, with their markers.
_SHAPES = tuple(
    (re.compile(rf"(?<![A-Za-z0-9]){pattern}"), marker)
    for pattern, marker in (
        (r"sk-[A-Za-z0-9_-]{10,}", "[REDACTED_OPENAI_KEY]"),
        (r"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])", "[REDACTED_AWS_KEY]"),
        (r"gh[pousr]_[A-Za-z0-9]{20,}", "[REDACTED_GITHUB_TOKEN]"),
        (r"github_pat_[A-Za-z0-9_]{20,}", "[REDACTED_GITHUB_TOKEN]"),
        (r"xox[baprs]-[A-Za-z0-9-]{10,}", "[REDACTED_SLACK_TOKEN]"),
        (r"AIza[A-Za-z0-9_-]{20,}", "[REDACTED_GOOGLE_KEY]"),
        (r"(?<![_-])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", "[REDACTED_JWT]"),
        (r"(?:glpat-|hf_|gsk_|xai-|npm_|pypi-|dop_v1_|shp(?:at|ss)_|ya29\.|SG\.)[A-Za-z0-9_.-]{20,}", MASK),
        (r"(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,}", MASK),
        (r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}", MASK),
    )
)
# A name is tried from its first character only; one try at each of its characters would take quadratic time.
_NAMED = re.compile(
    r"(?<![\w.-])(?:--?)?(?P<name>(?:(?:api|secret|private|account|access|client) )?[A-Za-z0-9_][\w.-]*)"
    r"(?P<quote>\\*[\"'])?[ \t]*(?P<sign>:=|=>|==?|:(?![:/]))[ \t]*",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[\"']?(?:bearer|basic|token)[ \t]+|[\"']?[A-Za-z][\w-]*[ \t]+(?=[^\s\"']+)", re.IGNORECASE)
_LINE = re.compile(r"[^\r\n\"'`]*")
_WORD = re.compile(
    r"(?P<word>(?<![A-Za-z0-9_])(?:token|password|secret|api[ _-]?key)(?P<is>[ \t]+(?:is|was))?[ \t]+)"
    r"(?P<value>[^\s,;&\"'`<>()\[\]{}]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<word>(?<![A-Za-z0-9_])(?:bearer)[ \t]+)(?P<value>[A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE)
_USER_OPTION = re.compile(
    r"(?P<word>\bcurl\b[^\n]{0,200}?[ \t](?:-u|--(?:proxy-)?user)[ \t=]{1,4}[\"']?[^\s:\"']{1,80}:)"
    r"(?P<value>[^\s\"']+)"
)
_USERINFO = re.compile(r"(?<=://)(?P<user>[^\s/@:\"']*):(?P<value>[^\s/@\"']+)(?=@)")
_PEM_START = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_PEM_LINES = re.compile(r"(?:(?:\s|\\n|\\r)+[A-Za-z0-9+/=]{40,100})+")
_PUNCTUATION = re.compile(r"[^A-Za-z\u00aa-\uffff]")
_NOTHING = frozenset({"null", "none", "true", "false", "undefined"})


def redact_secrets(value: _T) -> _T:
    """`value` without secrets: texts as `redact_text` leaves them, lists and mappings recursively.

    The whole value of a mapping's key that names a secret is replaced. Other scalars are unchanged.
    """
    return cast(_T, _redact(value, 0))


def is_secret_name(name: str) -> bool:
    """True when a key of this name holds a secret, judged by its letters and digits (`PWD` is a folder)."""
    if name == "PWD":
        return False
    letters = "".join(filter(str.isalnum, name)).lower()
    return letters in _EXACT or letters.endswith(_ENDINGS)


def redact_text(text: str) -> str:
    """`text` with every kind of secret replaced by its marker."""
    for _ in range(_PASSES):
        before, text = text, _one_pass(text)
        if text == before:
            break
    return text


def _one_pass(text: str) -> str:
    text = _without_keys(text)
    text = _without_named(text)
    text = _USERINFO.sub(rf"\g<user>:{MASK}", text)
    text = _USER_OPTION.sub(rf"\g<word>{MASK}", text)
    for pattern, marker in _SHAPES:
        text = pattern.sub(marker, text)
    return _BEARER.sub(_bare, _WORD.sub(_bare, text))


def _redact(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if depth >= _DEEPEST:
        return MASK
    if isinstance(value, Mapping):
        return {key: _field(key, item, depth) for key, item in value.items()}
    items = [_redact(item, depth + 1) for item in value]
    return items if isinstance(value, list) else tuple(items)


def _field(key: Any, item: Any, depth: int) -> Any:
    if not (isinstance(key, str) and is_secret_name(key)) or item is None or item == "":
        return _redact(item, depth + 1)
    return item if isinstance(item, str) and MARKER.fullmatch(item) else MASK


def _without_keys(text: str) -> str:
    """Private key blocks become one marker; of a block without an end, the lines of the key do."""
    if "PRIVATE KEY-----" not in text:
        return text
    ends = [match.end() for match in _PEM_END.finditer(text)]
    parts, done = [], 0
    for start in _PEM_START.finditer(text):
        if start.start() < done:
            continue
        index = bisect_left(ends, start.end())
        lines = _PEM_LINES.match(text, start.end())
        if index == len(ends) and lines is None:
            continue
        parts += [text[done : start.start()], "[REDACTED_PRIVATE_KEY]"]
        done = ends[index] if index < len(ends) else cast("re.Match[str]", lines).end()
    return "".join([*parts, text[done:]])


def _without_named(text: str) -> str:
    """Values that stand behind a name of a secret, in any of the usual notations, become markers."""
    parts, done, at = [], 0, 0
    while (match := _NAMED.search(text, at)) is not None:
        at = match.end()
        marker = _marker_for(text, match)
        if not marker:
            continue
        value = _value_at(text, at, match["name"].lower())
        content = text[value.start : value.end]
        at = max(at, value.after)
        masked = MARKER.match(text, value.start)
        if _is_no_secret(content, marker) or (masked is not None and masked.end() >= value.end):
            continue
        parts += [text[done : value.start], marker if match["quote"] else _shape_of(content) or marker]
        done = value.end
    return "".join([*parts, text[done:]])


def _marker_for(text: str, match: re.Match[str]) -> str:
    """The marker for what follows a name and a sign, or "" when the name is of no secret."""
    name, is_assignment = match["name"], match["sign"] == "="
    letters = "".join(filter(str.isalnum, name)).lower()
    if letters == "pwd" and not match["quote"]:
        after_semicolon = text[: match.start()].endswith(";") if match.start() < 2 else text[match.start() - 1] == ";"
        known = name != "PWD" or after_semicolon
        return "[REDACTED_DB_PASS]" if is_assignment and known else ""
    if not is_secret_name(name):
        return ""
    if match["quote"]:
        return MASK
    if letters == "sig":
        return "[REDACTED_SAS_SIG]" if is_assignment else ""
    if is_assignment and letters == "password" == name.lower():
        return "[REDACTED_DB_PASS]"
    return "[REDACTED_STORAGE_KEY]" if is_assignment and letters == "accountkey" else MASK


def _is_no_secret(content: str, marker: str) -> bool:
    too_short = marker == "[REDACTED_SAS_SIG]" and len(content) < 10
    return not content or too_short or content.lower() in _NOTHING


def _value_at(text: str, at: int, name: str) -> Value:
    """The value behind a name; that of a header with scheme or cookies goes on to the end of its line."""
    if name.endswith("authorization"):
        return _header_value(text, at)
    line = _LINE.match(text, at)
    if name.endswith("cookie") and line is not None and line.end() > at:
        return Value(at, line.end() if "=" in line.group() else at, line.end())
    return read_value(text, at)


def _header_value(text: str, at: int) -> Value:
    """What follows the scheme of an Authorization header; after an unknown scheme, the rest of the line."""
    scheme = _SCHEME.match(text, at)
    if scheme is None:
        return read_value(text, at)
    if scheme.group().strip().strip("\"'").lower() in ("bearer", "basic", "token"):
        return read_value(text, scheme.end())
    line = _LINE.match(text, scheme.end())
    end = line.end() if line is not None else scheme.end()
    return Value(scheme.end(), end, end)


def _shape_of(content: str) -> str:
    return next((marker for pattern, marker in _SHAPES if pattern.fullmatch(content)), "")


def _bare(match: re.Match[str]) -> str:
    whole = match["value"]
    value = whole.rstrip(".,;:!?")
    has_digit = any(map(str.isdigit, value))
    if "is" in match.re.groupindex and match["is"]:
        secret = len(value) >= 6 and has_digit
    else:
        secret = (len(value) >= 6 and _PUNCTUATION.search(value) is not None) or len(value) >= 16
    if not secret or MARKER.match(value):
        return match.group()
    return f"{match['word']}{MASK}{whole[len(value) :]}"
