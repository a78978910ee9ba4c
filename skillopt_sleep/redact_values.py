"""Finds where the value behind a name ends: quoted, braced, listed or plain."""

from __future__ import annotations

import re
from typing import NamedTuple

MARKER = re.compile(r"\[REDACTED(?:_[A-Z_]+)?\]")

_OPENING = re.compile(r"(\\{0,8})([\"'`])")
_INSIDE = {
    '"': re.compile(r'(?:[^"\\\r\n]|\\[^\r\n]|"")*'),
    "'": re.compile(r"(?:[^'\\\r\n]|\\[^\r\n]|'')*"),
    "`": re.compile(r"(?:[^`\\\r\n]|\\[^\r\n])*"),
    "{": re.compile(r"(?:[^}\\\r\n]|\\[^\r\n]|}})*"),
    "[": re.compile(r"[^\]\r\n]*"),
}
_PLAIN = re.compile(r"[^\s,;&\"'`<>]*")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))


class Value(NamedTuple):
    """The secret part of a text, `start` to `end`; reading goes on at `after`."""

    start: int
    end: int
    after: int


def read_value(text: str, at: int) -> Value:
    """The value at `at`: inside quotes, escaped quotes, braces or a list on one line, else up to a delimiter.

    A quote or brace that is not closed reaches to the end of the line. Closing brackets after a plain value are not
    part of it.
    """
    marker = MARKER.match(text, at)
    if marker is not None:
        return Value(at, marker.end(), marker.end())
    opening = _OPENING.match(text, at)
    if opening is not None:
        return _quoted(text, opening)
    first = text[at : at + 1]
    if first in ("{", "["):
        return _inside(text, at, first, "}" if first == "{" else "]")
    plain = _PLAIN.match(text, at)
    end = _without_closing(text, at, plain.end() if plain is not None else at)
    return Value(at, end, end)


def _without_closing(text: str, start: int, end: int) -> int:
    """`end` moved before closing brackets that were opened before the value."""
    open_now = {
        closing: text.count(opening, start, end) - text.count(closing, start, end) for opening, closing in _PAIRS
    }
    while end > start and open_now.get(text[end - 1], 0) < 0:
        end -= 1
        open_now[text[end]] += 1
    return end


def _quoted(text: str, opening: re.Match[str]) -> Value:
    if not opening[1]:
        return _inside(text, opening.start(), opening[2], opening[2])
    # One search for whichever comes first: looking for the end of the line alone would take quadratic time.
    close = re.compile(re.escape(opening.group()) + r"|[\r\n]|\Z").search(text, opening.end())
    end = close.start() if close is not None else len(text)
    return Value(opening.end(), end, end + len(opening.group()) * text.startswith(opening.group(), end))


def _inside(text: str, at: int, opening: str, closing: str) -> Value:
    match = _INSIDE[opening].match(text, at + 1)
    end = match.end() if match is not None else at + 1
    return Value(at + 1, end, end + len(closing) if text.startswith(closing, end) else end)
