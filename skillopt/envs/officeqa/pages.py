"""Parsed pages: the elements of one page of a document, as text with Markdown tables.

A parsed document is `jsons/<stem>.json`: `document.elements` is a list of objects with `type`, `content` (tables as
HTML) and `bbox`, a list of places with a `page_id`.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path, PureWindowsPath
from typing import Any

from skillopt.envs.officeqa.documents import NESTED_FOLDER, PAGES_FOLDER
from skillopt.errors import DataError

PAGE_CHARS = 24_000
TOTAL_CHARS = 80_000
_CUT = "\n[… the page goes on]"
_NO_ROOM = "[… further pages left out]"
_KEPT_PAGES = 2048
_KEPT_FILES = 8
_WIDEST_SPAN = 64


class PageShelf:
    """Finds and renders parsed pages beside the folders of documents. Safe to use from many threads."""

    def __init__(self, roots: Sequence[Path]) -> None:
        near = dict.fromkeys(place for root in roots for place in (root, root.parent))
        self._folders = [place / PAGES_FOLDER for place in near] + [
            place / NESTED_FOLDER / PAGES_FOLDER for place in near
        ]
        self._lock = threading.RLock()
        self._files: OrderedDict[Path, dict[int, list[Mapping[str, Any]]]] = OrderedDict()
        self._pages: OrderedDict[tuple[Path, int], str] = OrderedDict()

    def file_of(self, source_file: str) -> Path | None:
        """The parsed form of a document, resolved, if there is one; folders in the name do not count."""
        name = f"{PureWindowsPath(source_file).stem}.json"
        for folder in self._folders:
            path = (folder / name).resolve()
            if path.is_file() and path.parent == folder.resolve():
                return path
        return None

    def page(self, path: Path, number: int) -> str:
        """Text of one page, at most `PAGE_CHARS` characters. Raises DataError for a page that is not there."""
        with self._lock:
            key = (path, number)
            if key not in self._pages:
                elements = self._elements(path).get(number)
                text = "\n\n".join(filter(None, map(render_element, elements or ())))
                if not text:
                    raise DataError(f"{path}: holds nothing on page {number}, which an item of the data names.")
                self._pages[key] = shortened(text, PAGE_CHARS)
                while len(self._pages) > _KEPT_PAGES:
                    self._pages.popitem(last=False)
            return self._pages[key]

    def _elements(self, path: Path) -> dict[int, list[Mapping[str, Any]]]:
        if path not in self._files:
            self._files[path] = _by_page(path)
            while len(self._files) > _KEPT_FILES:
                self._files.popitem(last=False)
        return self._files[path]


def shortened(text: str, limit: int) -> str:
    """`text` with at most `limit` characters, and a remark where it was cut."""
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def join_pages(pages: Sequence[tuple[str, str]]) -> str:
    """(title, text) of pages under headings, at most `TOTAL_CHARS` characters."""
    out: list[str] = []
    used = 0
    for title, text in pages:
        block = f"### {title}\n\n{text}"
        room = TOTAL_CHARS - used - len(_NO_ROOM) - 4
        if len(block) > room:
            out.append(shortened(block, room) if room > 200 + len(_CUT) else _NO_ROOM)
            break
        out.append(block)
        used += len(block) + 2
    return "\n\n".join(out)


def render_element(element: Mapping[str, Any]) -> str:
    """One element as text: HTML tables as Markdown tables, everything else as it is."""
    content = element.get("content") or element.get("description") or ""
    text = content if isinstance(content, str) else ""
    return markdown_tables(text) if "<t" in text.lower() else text.strip()


def markdown_tables(html: str) -> str:
    """HTML tables as Markdown tables, `|` in cells written as `\\|`; text outside of cells stays as lines."""
    reader = _TableReader()
    reader.feed(html)
    reader.close()
    reader.end_table()
    return "\n".join(reader.out).strip()


def _by_page(path: Path) -> dict[int, list[Mapping[str, Any]]]:
    try:
        elements = json.loads(path.read_bytes())["document"]["elements"]
        pairs = [(number, element) for element in elements for number in _page_ids(element)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: is no parsed document ({type(error).__name__}: {error}).") from None
    found: dict[int, list[Mapping[str, Any]]] = {}
    for number, element in pairs:
        found.setdefault(number, []).append(element)
    return found


def _page_ids(element: Mapping[str, Any]) -> Iterator[int]:
    ids = [place.get("page_id") for place in element.get("bbox") or ()]
    yield from dict.fromkeys(
        int(number) for number in ids if isinstance(number, (int, str)) and str(number).isdecimal()
    )


class _TableReader(HTMLParser):
    """Collects the rows of tables. A cell that spans several columns or rows leaves the others blank."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._rows: list[list[str]] = []
        self._below: dict[int, int] = {}
        self._cell: list[str] | None = None
        self._span = (1, 1)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell."""
        if tag == "table":
            self.end_table()
        elif tag == "tr":
            self._end_cell()
            self._rows.append([])
        elif tag in ("td", "th"):
            self._end_cell()
            given = dict(attrs)
            self._span = (_span(given.get("colspan")), _span(given.get("rowspan")))
            self._cell = []
        elif tag == "br" and self._cell is not None:
            self._cell.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """End a cell or a table."""
        if tag in ("td", "th", "tr"):
            self._end_cell()
        elif tag == "table":
            self.end_table()

    def handle_data(self, data: str) -> None:
        """Text, of a cell or between tables."""
        if self._cell is not None:
            self._cell.append(data)
        elif data.strip():
            self.out.append(data.strip())

    def end_table(self) -> None:
        """Write the rows read so far as a table."""
        self._end_cell()
        rows = [row for row in self._rows if any(row)]
        width = max(map(len, rows), default=0)
        for number, row in enumerate(rows):
            self.out.append("| " + " | ".join([*row, *[""] * (width - len(row))]) + " |")
            if number == 0:
                self.out.append("|" + " --- |" * width)
        self._rows, self._below = [], {}

    def _end_cell(self) -> None:
        if self._cell is None:
            return
        text = " ".join("".join(self._cell).split()).replace("|", "\\|")
        self._cell = None
        if not self._rows:
            self._rows.append([])
        row = self._rows[-1]
        while self._below.get(len(row), 0) > 0:
            self._below[len(row)] -= 1
            row.append("")
        columns, rows = self._span
        for offset in range(columns):
            if rows > 1:
                self._below[len(row)] = rows - 1
            row.append("" if offset else text)


def _span(value: str | None) -> int:
    return min(max(1, int(value)), _WIDEST_SPAN) if value and value.strip().isdecimal() else 1
