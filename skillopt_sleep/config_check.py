"""Checks one setting: its name, its type, its range; unknown names are refused with the nearest known one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skillopt_sleep.config_keys import BACKEND_ALIASES, BY_NAME, Key
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.nearest import suggestion


def canonical_backend(name: str) -> str:
    """The backend's own name for a name or an alias of it, lower-cased."""
    lower = name.strip().lower()
    return BACKEND_ALIASES.get(lower, lower)


def check(name: str, value: Any, where: str) -> Any:
    """`value` as setting `name` keeps it: backends by their own names, `~` expanded in paths.

    Raises UsageProblem naming `where` it came from, the key and what is expected.
    """
    key = BY_NAME.get(name)
    if key is None:
        raise UsageProblem(f"{where}: unknown setting {name!r}{suggestion(name, BY_NAME)}.")
    if value is None:
        if key.nullable:
            return None
        raise _wrong(key, value, where)
    return _CHECKS[key.kind](key, value, where)


def _wrong(key: Key, value: Any, where: str) -> UsageProblem:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    near = suggestion(value, key.choices) if isinstance(value, str) and key.choices else ""
    return UsageProblem(f"{where}: {key.name} is {shown}; expected {key.expected}{near}.")


def _text(key: Key, value: Any, where: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise _wrong(key, value, where)
    return value


def _choice(key: Key, value: Any, where: str) -> str:
    if key.name == "gate_mode" and isinstance(value, bool):  # what YAML makes of on and off
        value = "on" if value else "off"
    text = _text(key, value, where).strip().lower()
    if key.name.endswith("backend"):
        text = canonical_backend(text)
    if text not in key.choices:
        raise _wrong(key, value, where)
    return text


def _path(key: Key, value: Any, where: str) -> str:
    text = _text(key, str(value) if isinstance(value, Path) else value, where).strip()
    if key.kind == "folder" and not text:
        raise _wrong(key, value, where)
    return str(Path(text).expanduser()) if text.startswith("~") else text


def _flag(key: Key, value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(key, value, where)
    return value


def _number(key: Key, value: Any, where: str) -> int | float:
    kinds = int if key.kind == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        raise _wrong(key, value, where)
    if (key.low is not None and value < key.low) or (key.high is not None and value > key.high):
        raise _wrong(key, value, where)
    return value


def _paths(key: Key, value: Any, where: str) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(key, value, where)
    return [_path(key, item, where) for item in value]


def _texts(key: Key, value: Any, where: str) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(key, value, where)
    return [_text(key, item, where) for item in value]


def _projects(key: Key, value: Any, where: str) -> str | list[str]:
    if isinstance(value, str):
        if value not in ("invoked", "all"):
            raise _wrong(key, value, where)
        return value
    return _paths(key, value, where)


_CHECKS: dict[str, Callable[[Key, Any, str], Any]] = {
    "text": _text,
    "choice": _choice,
    "folder": _path,
    "path": _path,
    "flag": _flag,
    "integer": _number,
    "number": _number,
    "paths": _paths,
    "texts": _texts,
    "projects": _projects,
}
