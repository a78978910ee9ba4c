"""What stands for a function of a person's program when results that it made are kept.

Its source, and the plain values that it carries: two functions with one source and different values do different work.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from skillopt.types import content_hash

_DEEPEST = 3


def source_of(function: Callable[..., Any]) -> str:
    """The source text of a function, or of a callable object's class; empty when there is none to be had."""
    target: Any = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target)
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        return ""


def identity_of(function: Callable[..., Any]) -> str:
    """Hash of a function's source and of the plain values in it.

    Those are texts, numbers, truth values and tuples of them: arguments of a `functools.partial`, defaults, variables
    of an enclosing function that it does not set, and attributes of its object without a leading underscore, whole
    numbers left out, since those are often counters. Functions among them count by their own identity. Lists, mappings
    and other objects can change while a program runs and have no lasting text: they do not count, nor do globals.
    """
    return content_hash("function", _parts(function, _DEEPEST))


def _parts(function: Any, depth: int) -> list[Any]:
    if isinstance(function, functools.partial):
        given = {str(number): value for number, value in enumerate(function.args)}
        return [_parts(function.func, depth), _plain({**given, **function.keywords}, depth)]
    target = inspect.unwrap(function)
    parts = [source_of(target)]
    owner = getattr(target, "__self__", None) if inspect.ismethod(target) else target
    attributes = getattr(owner, "__dict__", {}) if not (inspect.isroutine(owner) or inspect.isclass(owner)) else {}
    shown = {
        name: value
        for name, value in attributes.items()
        if not name.startswith("_") and (isinstance(value, bool) or not isinstance(value, int))
    }
    return [*parts, _plain(shown, depth), _of_code(getattr(target, "__func__", target), parts[0], depth)]


def _of_code(function: Any, source: str, depth: int) -> list[Any]:
    """Defaults and enclosing variables of a plain function; its instructions where it has no source."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    set_here = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_DEREF"}
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    enclosing = {name: _content(cell) for name, cell in cells.items() if name not in set_here}
    defaults = {str(number): value for number, value in enumerate(function.__defaults__ or ())}
    parts = [_plain(enclosing, depth), _plain({**defaults, **(function.__kwdefaults__ or {})}, depth)]
    return parts if source else [*parts, code.co_code.hex(), _plain(dict(enumerate(code.co_consts)), depth)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is not set yet
        return None


def _plain(values: Mapping[Any, Any], depth: int) -> list[Any]:
    """What has a lasting text among `values`, with its name and kind."""
    found: list[Any] = []
    for name, value in values.items():
        if isinstance(value, (str, bytes, int, float, type(None))):
            found.append([str(name), repr(value)])
        elif isinstance(value, tuple):
            found.append([str(name), _plain(dict(enumerate(value)), depth)])
        elif callable(value) and depth > 0:
            found.append([str(name), _parts(value, depth - 1)])
    return found
