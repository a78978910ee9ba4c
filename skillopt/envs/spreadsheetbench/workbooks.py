"""Reading workbooks: their values for grading, a preview for the prompt, and formulas that nothing has computed."""

from __future__ import annotations

import importlib.util
import io
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from skillopt.errors import DataError, MissingExtraError
from skillopt.scoring.cell_ranges import MAX_ROW
from skillopt.scoring.cells import CellRange, Workbook, cell_name

Tick = Callable[[], object]
"""Called now and then while reading; raises to end it."""

_PREVIEW_ROWS, _PREVIEW_COLUMNS, _PREVIEW_CELL, _PREVIEW_TEXT = 5, 20, 40, 20_000
_LARGEST_UNPACKED = 256 * 1024**2  # bytes
_MOST_CELLS = 5_000_000
_MOST_TAGS = 8_000_000  # of one part; a million takes about two seconds to read, which nothing can interrupt
_ROWS_A_TICK = 500
_CONTENTS = "xl/workbook.xml"


def need_openpyxl() -> None:
    """Raise MissingExtraError when the library that reads workbooks is not installed."""
    if importlib.util.find_spec("openpyxl") is None:
        raise MissingExtraError('SpreadsheetBench reads workbooks with openpyxl: pip install "skillopt[spreadsheet]"')


def sheet_names(path: Path) -> tuple[str, ...]:
    """Names of a workbook's sheets in order. Raises DataError, naming the file, for one that cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [name for name in archive.namelist() if name == _CONTENTS]
            root = ElementTree.fromstring(archive.read(_CONTENTS)) if parts else None
    except Exception as error:
        raise _unreadable(path, error) from error
    if root is not None:
        found = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "sheet"]
        return tuple(name for name in found if name is not None)
    with _Opened(path, values=True) as opened:  # the list stands elsewhere, which is rare
        return tuple(opened.sheets)


def read_workbook(path: Path, ranges: Sequence[CellRange], *, first: str = "", tick: Tick = lambda: None) -> Workbook:
    """The values of the sheets that `ranges` name, as the file stores them; formulas are not computed.

    `first`: name of the sheet that a range without a sheet means; empty: the workbook's first one. Raises DataError,
    naming the file, for one that cannot be read.
    """
    used: dict[str, tuple[int, int]] = {}
    cells: dict[str, dict[tuple[int, int], object]] = {}
    with _Opened(path, values=True) as opened:
        wanted = {(block.sheet or first or next(iter(opened.sheets), "")).casefold() for block in ranges}
        for name in opened.sheets:
            held = dict(opened.cells(name, tick)) if name.casefold() in wanted else {}
            cells[name], used[name] = held, _last(held)
    return Workbook(lambda sheet, row, column: cells[sheet].get((row, column)), used)


def preview(path: Path) -> str:
    """Every sheet's size and the first cells of its first rows, formulas as they are written."""
    parts = []
    with _Opened(path, values=False) as opened:
        for name in opened.sheets:
            held = dict(opened.cells(name, lambda: None))
            rows, columns = _last(held)
            size = f"A1:{cell_name(rows, columns)}, {rows} rows, {columns} columns" if rows else "empty"
            parts.append(f"Sheet {name!r}: {size}")
            parts += _rows(held, rows)
            if rows > _PREVIEW_ROWS:
                parts.append(f"… {rows - _PREVIEW_ROWS} more rows")
    text = "\n".join(parts)
    return text if len(text) <= _PREVIEW_TEXT else text[:_PREVIEW_TEXT] + "\n… (the preview is cut here)"


def uncomputed_formulas(path: Path, sheets: Sequence[str] = (), *, limit: int = 10) -> list[str]:
    """The first cells that hold a formula and no value, as `Sheet!A1: =…`; of all sheets or those named."""
    found: list[str] = []
    with _Opened(path, values=True) as computed, _Opened(path, values=False) as written:
        for name in written.sheets:
            if sheets and name not in sheets:
                continue
            values = {place for place, _ in computed.cells(name, lambda: None)}
            for place, value in written.cells(name, lambda: None):
                text = value if isinstance(value, str) else str(getattr(value, "text", "") or "")
                if place not in values and text.startswith("="):
                    found.append(f"{name}!{cell_name(*place)}: {_short(text)}")
                    if len(found) == limit:
                        return found
    return found


def inspection(path: Path) -> str:
    """What an agent is shown of its output: the first rows of the first sheet, and formulas without a value."""
    with _Opened(path, values=True) as opened:
        name = next(iter(opened.sheets), "")
        held = dict(opened.cells(name, lambda: None)) if name else {}
    rows, _ = _last(held)
    lines = [f"Output, sheet {name!r}, first rows as stored:", *(_rows(held, rows) or ["(no values)"])]
    formulas = uncomputed_formulas(path)
    if formulas:
        lines += ["Formulas that hold no value (a reader sees them as empty):", *formulas]
    return "\n".join(lines)


class _Opened:
    """A workbook open for reading, its sheets read row by row. `values`: stored values rather than formulas."""

    def __init__(self, path: Path, *, values: bool) -> None:
        self.path = path
        self._book = _open(path, values=values)
        self.sheets: Mapping[str, Any] = {sheet.title: sheet for sheet in self._book.worksheets}  # charts left out

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._book.close()

    def cells(self, name: str, tick: Tick) -> Iterator[tuple[tuple[int, int], object]]:
        """Row, column and value of each cell of a sheet that holds one."""
        sheet = self.sheets[name]
        sheet.reset_dimensions()  # what a file says of its own size may be wrong
        seen = 0
        for number, row in _unbroken(sheet.iter_rows(values_only=True), self.path):
            if number % _ROWS_A_TICK == 0:
                tick()
            seen += len(row)
            if seen > _MOST_CELLS or number > MAX_ROW:
                raise DataError(f"{self.path.name}: sheet {name!r} is too large (row {number:,}, {seen:,} cells).")
            for column, value in enumerate(row, 1):
                if value is not None:
                    yield (number, column), value


def _open(path: Path, *, values: bool) -> Any:
    need_openpyxl()
    import openpyxl

    warnings.filterwarnings("ignore", module=r"openpyxl\.")  # about styles and the like, which change no value
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
            if unpacked > _LARGEST_UNPACKED:
                raise ValueError(f"{unpacked:,} bytes unpacked")
            tags = max((archive.read(entry).count(b"<") for entry in archive.infolist()), default=0)
        if tags > _MOST_TAGS:
            raise ValueError(f"{tags:,} tags in one part")
        return openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=values, keep_links=False)
    except Exception as error:
        raise _unreadable(path, error) from error


def _unbroken(rows: Iterator[tuple[object, ...]], path: Path) -> Iterator[tuple[int, tuple[object, ...]]]:
    """The rows with their numbers; what the library raises inside becomes a DataError."""
    number = 0
    while True:
        number += 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:
            raise _unreadable(path, error) from error
        yield number, row


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path.name}: cannot be read as a workbook ({type(error).__name__}: {str(error)[:200]}).")


def _last(held: Mapping[tuple[int, int], object]) -> tuple[int, int]:
    return (max((row for row, _ in held), default=0), max((column for _, column in held), default=0))


def _rows(held: Mapping[tuple[int, int], object], rows: int) -> list[str]:
    lines = []
    for row in range(1, min(rows, _PREVIEW_ROWS) + 1):
        places = [(row, column) for column in range(1, _PREVIEW_COLUMNS + 1) if (row, column) in held]
        lines.append(
            " | ".join(f"{cell_name(*place)}={_short(held[place])}" for place in places) or f"(row {row} empty)"
        )
    return lines


def _short(value: object) -> str:
    text = " ".join(str(getattr(value, "text", None) or value).split())
    return text if len(text) <= _PREVIEW_CELL else text[: _PREVIEW_CELL - 1] + "…"
