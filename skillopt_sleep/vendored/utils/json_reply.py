# A copy of skillopt/utils/json_reply.py, made by scripts/vendor.py: change the original, then run that.
"""The one reader of JSON that a model wrote into its answer.

It is tolerant about what stands around the value (prose, code fences, reasoning blocks) and strict about the value:
nothing is guessed. A value that was cut off is never completed, two different values are never chosen between, and
words with braces are never turned into an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skillopt_sleep.vendored.errors import ReplyError
from skillopt_sleep.vendored.utils.invisible import flag_invisible, strip_invisible
from skillopt_sleep.vendored.utils.json_scan import MAX_DEPTH, Candidate, Scan, scan

__all__ = ["Reply", "extract_json", "extract_json_array", "flag_invisible", "read_reply", "strip_invisible"]

_MAX_DIGITS = 400
_MAX_REPAIR_CHARS = 400_000
_QUOTES = "\"'`"
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)
_REPAIRABLE = re.compile(r'\{\s*["}]|\[')
_NAMES: dict[type, str] = {dict: "one JSON object", list: "one JSON array"}


@dataclass(frozen=True, slots=True)
class Reply:
    """The value in a model's answer. `repaired`: its syntax had to be mended (a trailing comma, a stray quote)."""

    value: Any
    repaired: bool = False


class _RefusedError(Exception):
    """A candidate must not be used, and must not be repaired either."""

    def __init__(self, reason: str, outcome: str = "unparsed") -> None:
        super().__init__(reason)
        self.outcome = outcome


def read_reply(text: str, *, expect: type = dict, finish_reason: str = "stop") -> Reply:
    """Read the one JSON value of type `expect` (dict or list) from a model's answer.

    A value in a json code fence is preferred to one in the open text. Equal values count as one. `finish_reason`
    is what the provider said; "length" turns "nothing found" into "cut off".

    Raises ReplyError with outcome `unparsed` (nothing usable), `truncated` (cut off, or reasoning that never ended),
    `ambiguous` (several different values, or one key twice) or `wrong_shape` (another JSON type).
    """
    if not isinstance(text, str) or not text.strip():
        raise ReplyError("The reply is empty; expected JSON.", "truncated" if finish_reason == "length" else "unparsed")
    found = scan(text)
    _check_complete(found)
    candidates = [c for c in found.candidates if not _is_quoted(text, c)]
    refused: list[_RefusedError] = []
    for fenced in (True, False):
        values = list(_parsed([c for c in candidates if c.fenced is fenced], text, expect, refused))
        if refused:
            raise ReplyError(f"The reply cannot be used: {refused[0]}.", refused[0].outcome)
        if values:
            return Reply(_only(values, expect))
    mended = _mend_only(candidates, text, expect)
    if mended is not None:
        return Reply(mended, repaired=True)
    raise _nothing(candidates, text, expect, finish_reason)


def extract_json(text: str) -> dict[str, Any] | None:
    """The one JSON object in `text`, or None. Never raises; `read_reply` says why there is none."""
    value: dict[str, Any] | None = _value_or_none(text, dict)
    return value


def extract_json_array(text: str) -> list[Any] | None:
    """The one JSON array in `text` that stands in no other value, or None. Never raises."""
    value: list[Any] | None = _value_or_none(text, list)
    return value


def _value_or_none(text: str, expect: type) -> Any:
    try:
        return read_reply(text, expect=expect).value
    except ReplyError:
        return None


def _check_complete(found: Scan) -> None:
    if found.open_reasoning:
        raise ReplyError("The reply ends inside a reasoning block that is never closed.", "truncated")
    if found.noise:
        raise ReplyError(f"The reply cannot be used: {found.noise}.", "unparsed")
    if found.cut:
        raise ReplyError("The reply ends in the middle of a JSON value.", "truncated")


def _is_quoted(text: str, candidate: Candidate) -> bool:
    """True for a span that prose quotes (`{}`), unless the quotation is the whole text."""
    before = text[candidate.start - 1 : candidate.start] if candidate.start else ""
    after = text[candidate.end : candidate.end + 1]
    if not before or before != after or before not in _QUOTES:
        return False
    return bool(text[: candidate.start - 1].strip() or text[candidate.end + 1 :].strip())


def _parsed(candidates: list[Candidate], text: str, expect: type, refused: list[_RefusedError]) -> Iterator[Any]:
    for candidate in candidates:
        if text[candidate.start] != _opener(expect):
            continue
        try:
            if candidate.depth > MAX_DEPTH:
                raise _RefusedError("it is nested too deep")
            yield _strict(text[candidate.start : candidate.end])
        except _RefusedError as error:
            refused.append(error)
        except ValueError:
            continue


def _opener(expect: type) -> str:
    return "[" if expect is list else "{"


def _only(values: list[Any], expect: type) -> Any:
    distinct = {json.dumps(value, sort_keys=True): value for value in values}
    if len(distinct) > 1:
        raise ReplyError(
            f"The reply holds {len(distinct)} different values; expected {_NAMES[expect]} only.", "ambiguous"
        )
    return values[0]


def _strict(source: str) -> Any:
    """Parse standard JSON. Raises ValueError on wrong syntax, `_RefusedError` on a value that must not be used."""
    try:
        return json.loads(
            source,
            object_pairs_hook=_unique_pairs,
            parse_int=_bounded_int,
            parse_float=_bounded_float,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise _RefusedError("it is nested too deep") from None


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise _RefusedError(f"the key {twice[:60]!r} stands twice in one object", "ambiguous")
    return value


def _bounded_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _RefusedError("number too large")
    return int(digits)


def _bounded_float(digits: str) -> float:
    value = float(digits) if len(digits) <= _MAX_DIGITS else float("inf")
    if value in (float("inf"), float("-inf")):
        raise _RefusedError("number too large")
    return value


def _no_constant(name: str) -> float:
    raise _RefusedError(f"{name} is not a JSON number")


def _mend_only(candidates: list[Candidate], text: str, expect: type) -> Any:
    """The repaired value of the only candidate, or None when there is not exactly one that is safe to repair."""
    fitting = [c for c in candidates if text[c.start] == _opener(expect)]
    if len(fitting) != 1:
        return None
    only = fitting[0]
    source = text[only.start : only.end]
    if not only.sound or len(source) > _MAX_REPAIR_CHARS or not _REPAIRABLE.match(source):
        return None
    if expect is list and not _looks_like_array(source):
        return None
    _refuse_double_keys(source)
    without = _TRAILING_COMMA.sub(lambda m: "" if m.group() == "," else m.group(), source)
    try:
        return _strict(without)
    except _RefusedError as error:
        raise ReplyError(f"The reply cannot be used: {error}.", error.outcome) from None
    except ValueError:
        return _repaired(source, expect)


def _looks_like_array(source: str) -> bool:
    return re.match(r'\[\s*(?:["{\[\]]|-?\d)', source) is not None


def _repaired(source: str, expect: type) -> Any:
    import json_repair

    try:
        value = json_repair.loads(source)
        return _strict(json.dumps(value)) if isinstance(value, expect) and value else None
    except _RefusedError as error:
        raise ReplyError(f"The reply cannot be used: {error}.", error.outcome) from None
    except Exception as error:
        raise ReplyError("The reply is not JSON and cannot be repaired.", "unparsed") from error


def _refuse_double_keys(source: str) -> None:
    """Look for one key twice in one object where the syntax is broken, because a repair would keep only the last."""
    keys: list[set[str]] = [set()]
    for match in _PIECE.finditer(source):
        token = match.group()
        if token in "{[":
            keys.append(set())
        elif token in "}]":
            keys.pop()
            keys = keys or [set()]
        elif match.group(2):
            if match.group(1) in keys[-1]:
                name = match.group(1)[:60]
                raise ReplyError(f"The key {name!r} stands twice in one object.", "ambiguous")
            keys[-1].add(match.group(1))


def _nothing(candidates: list[Candidate], text: str, expect: type, finish_reason: str) -> ReplyError:
    if finish_reason == "length":
        return ReplyError("The reply was cut by the token limit before its JSON was complete.", "truncated")
    fitting = sum(text[c.start] == _opener(expect) for c in candidates)
    if fitting > 1:
        return ReplyError(f"The reply holds {fitting} values and none is valid JSON.", "unparsed")
    other: type = dict if expect is list else list
    if not fitting and list(_parsed(candidates, text, other, [])):
        return ReplyError(f"The reply holds {_NAMES[other]}; expected {_NAMES[expect]}.", "wrong_shape")
    return ReplyError(f"The reply holds no valid JSON; expected {_NAMES[expect]} only.", "unparsed")
