"""Reading `answer_position`: which cells of a workbook are graded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from skillopt.errors import DataError
from skillopt.scoring.base import Mode, shorten

MAX_ROW, MAX_COLUMN = 1_048_576, 16_384
_CORNER = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_COLUMN = re.compile(r"\$?([A-Za-z]{1,3})")
_ROW = re.compile(r"\$?([0-9]{1,7})")
_PART = re.compile(
    r"\s*(?:(?:'(?P<quoted>(?:[^']|'')*)'|(?P<bare>[^'!,;][^!,;]*?))\s*!)?\s*(?P<cells>[^!,;]*?|'[^'!,;]*')\s*(?:[,;]|$)"
)


@dataclass(frozen=True, slots=True)
class CellRange:
    """A block of cells, all four edges included and counted from 1.

    `sheet`: its name, or empty for the first sheet. A whole column has 0 as `bottom`, a whole row 0 as `right`: as far
    as the sheet goes. `problem`: why the block cannot be read (only in the published rules); it then holds no cell.
    """

    sheet: str
    top: int
    left: int
    bottom: int
    right: int
    problem: str = ""

    def within(self, rows: int, columns: int) -> CellRange:
        """The part of the block in the first `rows` rows and `columns` columns; without cells if it lies outside."""
        bottom = min(self.bottom or rows, rows)
        return CellRange(self.sheet, self.top, self.left, bottom, min(self.right or columns, columns), self.problem)

    def cells(self) -> Iterator[tuple[int, int]]:
        """Row and column of each cell, row by row; of an open block none."""
        for row in range(self.top, self.bottom + 1):
            for column in range(self.left, self.right + 1):
                yield row, column


def parse_answer_position(
    text: str, *, answer_sheet: str = "", mode: Mode = "strict", where: str = "item"
) -> tuple[CellRange, ...]:
    """The blocks of an answer position such as `A1`, `'My sheet'!$A$1:B2, C:C`.

    `strict`: blocks are set apart by commas or semicolons; a sheet name with such signs, spaces or `!` stands in single
    quotes (`''` for one quote inside); case does not matter, the corners of a block may stand in any order, `A:B` are
    whole columns and `1:3` whole rows. `answer_sheet` is the sheet of every block that names none. Raises DataError,
    naming `where`, for an empty position and for a block that cannot be read, so that no item has marks for nothing.

    `paper`: the published reading. An empty position and reversed corners hold no cell, small letters mean columns
    beyond Z, a comma always separates, `answer_sheet` belongs to the first block only; never raises.
    """
    if mode == "paper":
        return _published(f"{answer_sheet}!{text}" if answer_sheet and "!" not in text else text)
    if re.fullmatch(r"\s*'[^',;]*![^',;]*'\s*", text):
        text = text.strip(" \t\r\n'")  # quotes around sheet and cells together
    blocks: list[CellRange] = []
    end = 0
    while end < len(text):
        match = _PART.match(text, end)
        if match is None:
            raise DataError(f"{where}: cannot read the answer position {shorten(text)} from {shorten(text[end:])} on.")
        end = match.end()
        cells = match["cells"].strip("' \t\r\n")
        sheet = (match["bare"] or (match["quoted"] or "").replace("''", "'")).strip()
        if cells or sheet:
            blocks.append(_block(sheet or answer_sheet, cells, f"{where}, answer position {shorten(text)}"))
        elif match[0].strip() not in ("", ",", ";"):
            raise DataError(f"{where}: cannot read the answer position {shorten(text)}; expected cells such as A1:B2.")
    if not blocks:
        raise DataError(f"{where}: the answer position is empty; give the graded cells, such as A1:B2.")
    return tuple(blocks)


def cell_name(row: int, column: int) -> str:
    """Name of a cell, such as `AB12`."""
    letters = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row}"


def _block(sheet: str, cells: str, where: str) -> CellRange:
    first, colon, second = (part.strip() for part in cells.partition(":"))
    corners = [_CORNER.fullmatch(first), _CORNER.fullmatch(second or first)]
    columns = [_COLUMN.fullmatch(first), _COLUMN.fullmatch(second)]
    rows = [_ROW.fullmatch(first), _ROW.fullmatch(second)]
    across, down = [0, 0], [0, 0]
    if all(corners) and bool(colon) == bool(second):
        across = sorted(_column_number(match[1]) for match in corners if match)
        down = sorted(int(match[2]) for match in corners if match)
    elif all(columns):
        across, down = sorted(_column_number(match[1]) for match in columns if match), [1, 0]
    elif all(rows):
        across, down = [1, 0], sorted(int(match[1]) for match in rows if match)
    if not (across[0] and down[0] and across[1] <= MAX_COLUMN and down[1] <= MAX_ROW):
        raise DataError(f"{where}: {shorten(cells)} names no cells; expected one such as A1, A1:B2, A:C or 1:3.")
    return CellRange(sheet, down[0], across[0], down[1], across[1])


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _published(text: str) -> tuple[CellRange, ...]:
    return tuple(_published_block(part.strip()) for part in text.split(",") if part.strip())


def _published_block(part: str) -> CellRange:
    sheet, _, cells = part.rpartition("!")
    first, _, second = cells.strip("'").replace("$", "").partition(":")
    corners = [_CORNER.fullmatch(first.strip()), _CORNER.fullmatch((second or first).strip())]
    if not all(corners):
        return CellRange(sheet.strip("'"), 1, 1, 0, 0, f"cannot read the position {shorten(part)}")
    edges = [(int(match[2]), _published_column(match[1])) for match in corners if match]
    return CellRange(sheet.strip("'"), *edges[0], *edges[1])


def _published_column(letters: str) -> int:
    """Number of a column, counting from the capital A in the order of ASCII."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
