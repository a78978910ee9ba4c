"""Read the fields of one edit, whatever a model wrote, and clean its content before it may reach a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.skill.regions import neutralize_markers
from skillopt.types import Edit
from skillopt.utils.invisible import escape_invisible, flag_invisible, replace_surrogates, strip_invisible

OPS = ("append", "insert_after", "replace", "delete")
PREVIEW_CHARS = 200
_MISSING = object()


class EditValueError(ValueError):
    """A field of an edit has a value that cannot be used; the message says which one."""


@dataclass(frozen=True, slots=True)
class EditFields:
    r"""The usable fields of one edit: known or unknown op in lower case, clean content, anchor with `\n` line ends."""

    op: str
    content: str = ""
    target: str = ""
    notice: str = ""


def read_fields(edit: object) -> EditFields:
    """Read an `Edit` or a mapping. Raises EditValueError when a field that the op needs has a wrong type."""
    if not isinstance(edit, Edit | Mapping):
        raise EditValueError(f"the edit is a {type(edit).__name__}; expected an object with op, content and target")
    op = _text(edit, "op").strip().lower().replace("-", "_").replace(" ", "_")
    if op not in OPS:
        return EditFields(op)
    target = _text(edit, "target", optional=op == "append")
    content, notice = _clean(_text(edit, "content", optional=op == "delete"))
    return EditFields(op, content, target.replace("\r\n", "\n"), notice)


def preview(edit: object, name: str) -> str:
    """A field as a report shows it: at most 200 characters, hidden characters escaped; a wrong type by its name."""
    try:
        value = _field(edit, name)
    except EditValueError:
        return "<unreadable>"
    if value is _MISSING:
        return ""
    if not isinstance(value, str):
        return f"<{type(value).__name__}>"
    return escape_invisible(value[:PREVIEW_CHARS])[:PREVIEW_CHARS]


def _field(edit: object, name: str) -> Any:
    if isinstance(edit, Mapping):
        try:
            return edit.get(name, _MISSING)
        except Exception as error:
            raise EditValueError(f"{name} cannot be read ({type(error).__name__})") from error
    return getattr(edit, name) if isinstance(edit, Edit) else _MISSING


def _text(edit: object, name: str, *, optional: bool = False) -> str:
    value = _field(edit, name)
    if isinstance(value, str):
        return value
    if name != "op" and (value is _MISSING or (optional and value is None)):
        return ""
    found = "missing" if value is _MISSING else "null" if value is None else f"a {type(value).__name__}"
    raise EditValueError(f"{name} is {found}; expected text")


def _clean(content: str) -> tuple[str, str]:
    notices = []
    valid = replace_surrogates(content)
    if valid != content:
        notices.append("replaced lone surrogates by U+FFFD")
    hidden = flag_invisible(valid)
    if hidden:
        more = f" and {len(hidden) - 10} more" if len(hidden) > 10 else ""
        notices.append(f"removed invisible characters: {', '.join(hidden[:10])}{more}")
    visible = strip_invisible(valid).replace("\r\n", "\n").replace("\r", "\n")
    free = neutralize_markers(visible)
    if free != visible:
        notices.append("removed protected markers")
    return free.strip(), "; ".join(notices)
