"""A row of DocVQA, from a CSV or a JSON file, as an item: its columns under one set of names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from skillopt.errors import DataError

Row = dict[str, Any]

FALLBACK_TYPE = "docvqa"
ANSWER_COLUMNS = ("answers", "answer", "ground_truth", "ground_truths")
TYPE_COLUMNS = ("topic", "category", "task_type")
KEPT_COLUMNS = (
    "questionId",
    "docId",
    "ucsf_document_id",
    "ucsf_document_page_no",
    "source_split",
)

_MARKER = re.compile(r"\s*\bdocument_path:[ \t]*([^\r\n]*).*\Z", re.DOTALL | re.IGNORECASE)
_ENTRY = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[-+]?\d[\d.]*"""
_LIST = re.compile(rf"\[\s*(?:(?:{_ENTRY})\s*,?\s*)*\]", re.DOTALL)
_ENTRIES = re.compile(_ENTRY, re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


def normal_row(row: Row) -> Row:
    """The item of a row; an item comes out as it went in.

    Its fields: `id` (from `questionId`, else `id`), `question`, `answers` (a list of texts), `image_paths`, `task_type`
    (from `topic` or `category`) and those of `KEPT_COLUMNS` that are there. Raises DataError, naming id and field, for
    a column of another type.
    """
    item_id = row["id"] if _blank(row.get("questionId")) else row["questionId"]
    where = f"item {str(item_id)!r}"
    question, marked = split_question(_text(row.get("question"), where, "question"))
    kept = {name: row[name] for name in KEPT_COLUMNS if name in row}
    return {
        **kept,
        "id": item_id,
        "question": question,
        "answers": _answers(row, where),
        "image_paths": _image_paths(row, where) or ([marked] if marked else []),
        "task_type": _task_type(row),
    }


def split_question(text: str) -> tuple[str, str]:
    """The question without its trailing mark `document_path:`, and the path behind the mark (blank without one)."""
    mark = _MARKER.search(text)
    return (text[: mark.start()].strip(), mark[1].strip()) if mark else (text.strip(), "")


def read_list(text: str) -> list[str] | None:
    """The texts in what is clearly a list of JSON or Python (or of numpy, without commas); None for any other text.

    Clear is a list in square brackets with at least one entry in quotes, or an empty one. Nothing else is taken apart:
    `1,234`, `1.50`, `(1,2)` and `[12]` are answers as they stand, and so are numbers inside a list.
    """
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    try:
        value = json.loads(stripped, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        if not _LIST.fullmatch(stripped):
            return None
        value = [_unquoted(entry) for entry in _ENTRIES.findall(stripped)]
    texts = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return value if texts and (not value or "'" in stripped or '"' in stripped) else None


def _unquoted(entry: str) -> str:
    return _ESCAPE.sub(_unescaped, entry[1:-1]) if entry[0] in "'\"" else entry


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else match[0]
    if code in ("\\", "'", '"', "\n"):
        return code.strip("\n")
    return _CONTROLS.get(code, match[0])


def _blank(value: object) -> bool:
    return value is None or (not value.strip() if isinstance(value, str) else value in ([], ()))


def _text(value: object, where: str, field: str) -> str:
    """A cell as text: numbers as JSON writes them."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise DataError(f"{where}: field {field!r} is a {type(value).__name__}; expected a text.")


def _answers(row: Mapping[str, Any], where: str) -> list[str]:
    name = next((name for name in ANSWER_COLUMNS if not _blank(row.get(name))), "")
    value = row.get(name)
    if isinstance(value, str):
        listed = read_list(value)
        value = [value] if listed is None else listed
    if isinstance(value, Mapping):
        raise DataError(f"{where}: field {name!r} is an object; expected a text or a list of texts.")
    entries = value if isinstance(value, (list, tuple)) else [value]
    texts = [_text(entry, where, name).strip() for entry in entries]
    return list(dict.fromkeys(text for text in texts if text))


def _image_paths(row: Mapping[str, Any], where: str) -> list[str]:
    for name in ("image_path", "image_paths"):
        value = row.get(name)
        if _blank(value):
            continue
        if isinstance(value, str):
            value = read_list(value) or [value]
        paths = [path.strip() for path in value if isinstance(path, str)] if isinstance(value, list) else []
        if not paths or "" in paths or len(paths) < len(value or ()):
            raise DataError(f"{where}: field {name!r} is {value!r}; expected the path of an image.")
        return paths
    return []


def _task_type(row: Mapping[str, Any]) -> str:
    """The type; several in one list are joined by `|`, as the public data join them."""
    for name in TYPE_COLUMNS:
        value = row.get(name)
        if isinstance(value, (list, tuple)):
            value = "|".join(str(entry).strip() for entry in value if not _blank(entry))
        if not _blank(value):
            return str(value).strip()
    return FALLBACK_TYPE
