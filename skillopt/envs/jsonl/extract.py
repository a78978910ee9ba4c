"""How an answer is taken out of a reply. Pure functions; a reply without an answer gives an empty text."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from functools import partial

from skillopt.envs.answers import AnswerTag, last_line
from skillopt.errors import ConfigError, ReplyError

Extractor = Callable[[str], str]


def get_extractor(name: str, arg: str = "") -> Extractor:
    """The extractor of this name.

    | name | takes | `arg` |
    |---|---|---|
    | `last_line` | the last line that is not blank | |
    | `all` | the whole reply | |
    | `tag` | the text of the last `<answer>…</answer>` | name of the tag |
    | `regex` | the last match: group `answer`, else the first group, else all of it | the pattern |
    | `json_field` | a field of the reply's JSON object | dotted path, such as `result.city` or `rows.0` |

    Raises ConfigError for an unknown name, a bad pattern, or a missing `arg`.
    """
    makers: dict[str, Callable[[str], Extractor]] = {
        "last_line": lambda _: last_line,
        "all": lambda _: str.strip,
        "tag": _tag,
        "regex": _regex,
        "json_field": _json_field,
    }
    if name not in makers:
        near = difflib.get_close_matches(name, makers, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ConfigError(f"env.extract: unknown extraction {name!r}{hint} Expected one of {', '.join(makers)}.")
    return makers[name](arg)


def _tag(arg: str) -> Extractor:
    return AnswerTag(arg.strip("<>/ ") or "answer", fallback="none")


def _regex(arg: str) -> Extractor:
    if not arg:
        raise ConfigError("env.extract_arg is empty; env.extract=regex needs the pattern there.")
    try:
        return partial(_last_match, re.compile(arg, re.MULTILINE))
    except re.error as error:
        raise ConfigError(f"env.extract_arg: {arg!r} is not a regular expression ({error}).") from None


def _json_field(arg: str) -> Extractor:
    if not arg:
        raise ConfigError("env.extract_arg is empty; env.extract=json_field needs the field's path there.")
    return partial(_read_field, tuple(arg.split(".")))


def _last_match(pattern: re.Pattern[str], text: str) -> str:
    matches = list(pattern.finditer(text))
    if not matches:
        return ""
    group: int | str = "answer" if "answer" in pattern.groupindex else min(pattern.groups, 1)
    return (matches[-1].group(group) or "").strip()


def _read_field(path: tuple[str, ...], text: str) -> str:
    from skillopt.utils.json_reply import read_reply

    try:
        value: object = read_reply(text).value
    except ReplyError:
        return ""
    for part in path:
        value = _step(value, part)
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _step(value: object, part: str) -> object:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    return None
