"""A row of the data as an item: one name for each field, and lists that are lists."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

CATEGORY = "officeqa"
_PAGE_NAMES = ("page", "pagenum", "page_id")
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_NEXT_ADDRESS = re.compile(r"\s*[,;]\s*(?=[A-Za-z][A-Za-z0-9+.-]*://)|\s+(?=https?://)")


def normal_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with `id`, `question`, `ground_truth`, `category`, `source_files` and `source_docs`.

    The id is `uid` where there is one; `answer` and `difficulty` stand in for `ground_truth` and `category`.
    """
    return {
        **row,
        "id": _first(row, "uid") or row["id"],
        "ground_truth": _first(row, "ground_truth", "answer"),
        "category": _first(row, "category", "difficulty") or CATEGORY,
        "source_files": listed(row.get("source_files")),
        "source_docs": listed(row.get("source_docs")),
    }


def listed(value: object) -> list[str]:
    """A list of names: a list as it is, or a text that holds one as JSON, in lines, or with commas between.

    A comma inside a name is no separator: `Bulletin, May 1941.txt` is one file, `a.txt, b.txt` are two.
    """
    if isinstance(value, (list, tuple)):
        return [str(entry).strip() for entry in value if str(entry).strip()]
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith("["):
        entries = _literal_list(text)
        if entries is not None:
            return listed(entries)
    return [piece.strip() for line in text.splitlines() for piece in _pieces(line) if piece.strip()]


def page_number(source_doc: str) -> int | None:
    """The page that an address names in its query (`page`, `pagenum` or `page_id`), if any."""
    try:
        query = parse_qs(urlsplit(source_doc).query)
    except ValueError:
        return None
    for name in _PAGE_NAMES:
        number = query.get(name, [""])[0].strip()
        if re.fullmatch(r"[0-9]{1,6}", number):
            return int(number)
    return None


def page_hints(item: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(file, page) of each address with a page: the file at the same position, or the only one."""
    files, docs = item["source_files"], item["source_docs"]
    hints: list[tuple[str, int]] = []
    for position, doc in enumerate(docs):
        number = page_number(doc)
        file = files[0] if len(files) == 1 else files[position] if position < len(files) else ""
        if number is not None and file and (file, number) not in hints:
            hints.append((file, number))
    return hints


def _first(row: Mapping[str, Any], *names: str) -> str:
    return next((str(row[name]).strip() for name in names if row.get(name) not in (None, "")), "")


def _literal_list(text: str) -> list[Any] | None:
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def _pieces(line: str) -> list[str]:
    if "://" in line:
        return _NEXT_ADDRESS.split(line)
    pieces = re.split(r"[,;]", line)
    endings = [bool(_ENDING.search(piece.strip())) for piece in pieces if piece.strip()]
    return pieces if all(endings) or not any(endings) else [line]
