"""Items from JSON, JSON Lines and CSV files. Every error names the file and the line or the position in it.

Forms: `.json` is a list of objects, an object whose `data` is such a list, an object of objects (its values; their
keys serve as ids if no value has one), one object that has an id (one item), or several objects one after the other
(read as JSON Lines). `.jsonl` and `.ndjson` hold one object a line, blank lines left out. `.csv` has a header row,
commas, and as many cells in each row as in the header. Files are UTF-8, with or without a byte order mark; a file with
nothing in it has no items.

Ids: the field `id` (or another one, by `id_field`) of each item, text or a whole number, read as text. If no item of
a file has an id, each gets `row-` and ten hex digits of the hash of its content; moving rows around does not change it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from skillopt.datasets.checks import check_id, refuse_duplicates
from skillopt.errors import DataError
from skillopt.types import canonical_json, content_hash

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv")
_CELL_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Row:
    """One item as it was read. `where` is `file:line` or `file: item n`; `key` its key in an object of objects."""

    data: dict[str, Any]
    where: str
    key: str = ""


def read_items(path: Path, *, id_field: str = "id") -> list[dict[str, Any]]:
    """Items of the file `path`, in file order, each with its id as text under `id`.

    Raises DataError for anything that cannot be read as the module describes, for ids that are missing in some items
    only, and for duplicate ids (1 and "1" are the same id), naming both places. Nothing is returned in part.
    """
    path = Path(path)
    return _with_ids(path, _rows(path, id_field), id_field)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Objects of the file `path` as they stand, in file order, whether they have ids or not.

    Raises DataError as `read_items` does, but says nothing about ids.
    """
    return [row.data for row in _rows(Path(path), "id")]


def _rows(path: Path, id_field: str) -> list[_Row]:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: cannot read this kind of file; expected one of {', '.join(SUFFIXES)}.")
    text = _read_utf8(path)
    if not text.strip():
        return []
    if suffix == ".csv":
        return list(_csv_rows(path, text))
    return _json_rows(path, text, id_field) if suffix == ".json" else list(_jsonl_rows(path, text))


def _read_utf8(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        found = f"byte {error.start} (0x{error.object[error.start]:02x})"
        raise DataError(f"{path}: {found} is not UTF-8; save the file as UTF-8.") from None
    if "\0" in text:
        raise DataError(f"{path}: holds a NUL character at position {text.index(chr(0))}; save the file as UTF-8 text.")
    return text


def _json_rows(path: Path, text: str, id_field: str) -> list[_Row]:
    try:
        value = _parse(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return list(_jsonl_rows(path, text))
        raise DataError(f"{path}:{error.lineno}: not valid JSON ({error.msg}, column {error.colno}).") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({_reason(error)}).") from None
    if isinstance(value, dict) and _is_wrapper(value, id_field):
        value = value["data"]
    if isinstance(value, list):
        return [_object(entry, f"{path}: item {number}") for number, entry in enumerate(value, 1)]
    if isinstance(value, dict) and id_field in value and not isinstance(value[id_field], (dict, list)):
        return [_object(value, f"{path}: the one item")]
    if isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values()):
        return [_object(entry, f"{path}: {key!r}", key) for key, entry in value.items()]
    raise DataError(
        f"{path}: expected a list of objects, an object with a list under 'data', an object of objects, "
        f"or one object with the field {id_field!r}."
    )


def _is_wrapper(value: dict[str, Any], id_field: str) -> bool:
    """Whether the items are the list under `data`, and `data` is not a field of one item."""
    data = value.get("data")
    return isinstance(data, list) and (id_field not in value or all(isinstance(entry, dict) for entry in data))


def _jsonl_rows(path: Path, text: str) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = _parse(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not valid JSON ({_reason(error)}); expected one object a line.") from None
        yield _object(value, where)


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _object(value: Any, where: str, key: str = "") -> _Row:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, found {type(value).__name__}.")
    try:
        canonical_json(value).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{where}: holds half of a surrogate pair (\\ud800 to \\udfff), which is no text.") from None
    return _Row(value, where, key)


def _csv_rows(path: Path, text: str) -> Iterator[_Row]:
    previous = csv.field_size_limit(_CELL_LIMIT)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    start = 1
    header: list[str] = []
    try:
        for cells in reader:
            where, start = f"{path}:{start}", reader.line_num + 1
            if not cells:
                continue
            if not header:
                header = _header(cells, where)
                continue
            if len(cells) != len(header):
                advice = (
                    "put cells that hold a comma in double quotes" if len(cells) > len(header) else "fill in the row"
                )
                raise DataError(f"{where}: {len(cells)} cells, but the header has {len(header)} columns; {advice}.")
            yield _Row(dict(zip(header, cells, strict=True)), where)
    except csv.Error as error:
        raise DataError(f"{path}:{start}: not valid CSV ({error}).") from None
    finally:
        csv.field_size_limit(previous)


def _header(cells: list[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise DataError(f"{where}: the header is one column, {names[0]!r}; expected columns separated by commas.")
    for name in names:
        if not name or names.count(name) > 1:
            problem = f"the column {name!r} stands twice" if name else "a column has no name"
            raise DataError(f"{where}: {problem} in the header; expected a different name for each column.")
    return names


def _with_ids(path: Path, rows: list[_Row], id_field: str) -> list[dict[str, Any]]:
    missing = [row for row in rows if row.data.get(id_field) is None]
    if missing and len(missing) < len(rows):
        raise DataError(f"{missing[0].where}: no {id_field!r}, but other items have one; give every item an id.")
    if missing and id_field != "id":
        names = [str(name) for name in missing[0].data]
        alike = [name for name in names if name.casefold() == id_field.casefold()]
        near = alike or get_close_matches(id_field, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise DataError(f"{path}: no item has the id field {id_field!r}{hint}")
    items: list[dict[str, Any]] = []
    for row in rows:
        raw = row.data[id_field] if not missing else row.key or _row_id(row.data)
        items.append({**row.data, "id": check_id(raw, row.where)})
    refuse_duplicates([(item["id"], row.where) for item, row in zip(items, rows, strict=True)])
    return items


def _row_id(data: dict[str, Any]) -> str:
    return f"row-{content_hash(data)[:10]}"


def is_row_id(item_id: object) -> bool:
    """Whether an id was made here, for an item of a file without ids."""
    return isinstance(item_id, str) and re.fullmatch(r"row-[0-9a-f]{10}", item_id) is not None
