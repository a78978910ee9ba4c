"""The score of SpreadsheetBench: cells of a workbook compared with those of the right one. No workbook library here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillopt.scoring.base import Mode, Score, shorten
from skillopt.scoring.cell_ranges import CellRange, cell_name, parse_answer_position
from skillopt.scoring.cell_values import same_value

__all__ = [
    "CellMismatch",
    "CellRange",
    "CellReport",
    "Workbook",
    "cell_name",
    "compare_cells",
    "missing_sheets",
    "parse_answer_position",
    "same_value",
    "score_cases",
]


@dataclass(frozen=True, slots=True)
class Workbook:
    """A workbook as the comparison sees it.

    `value(sheet, row, column)`: the cached value of a cell, rows and columns counted from 1, None where there is none.
    `used`: sheet names in the order of the workbook, each with its last used row and column.
    """

    value: Callable[[str, int, int], object]
    used: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class CellMismatch:
    """A cell that is not as expected: sheet, name such as `B2`, and both values as short text."""

    sheet: str
    cell: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class CellReport:
    """What the comparison of one case found.

    `compared`: number of cells; `empty`: how many of them are empty in both; `wrong`: how many differ, of which the
    first are in `mismatches`. `problems`: what kept blocks from being compared, one sentence each.
    """

    compared: int = 0
    empty: int = 0
    wrong: int = 0
    mismatches: tuple[CellMismatch, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every cell is as expected."""
        return not self.wrong and not self.problems

    def text(self, *, show_expected: bool = True, limit: int = 12_000) -> str:
        """The report in words, at most `limit` characters, with or without the expected values."""
        counts = f"{self.compared} cells compared, {self.wrong} wrong, {self.empty} empty as expected."
        lines = [counts, *self.problems]
        for miss in self.mismatches:
            expected = f", expected {miss.expected}" if show_expected else ""
            lines.append(f"{miss.sheet}!{miss.cell}: got {miss.got}{expected}")
        if self.wrong > len(self.mismatches):
            lines.append(f"… and {self.wrong - len(self.mismatches)} more wrong cells.")
        text = "\n".join(lines)
        return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def compare_cells(
    ranges: Sequence[CellRange], gold: Workbook, output: Workbook, *, mode: Mode = "strict", keep: int = 50
) -> CellReport:
    """Compare every cell of `ranges` in `output` with `gold`, in one pass; the first `keep` mismatches are kept.

    Cells beyond what either workbook uses are empty in both and not visited. Whole columns and rows reach as far as
    the gold sheet does. A sheet that one of the workbooks lacks fails the case. In strict mode sheet names match
    regardless of case, and a case without any cell to compare fails.
    """
    compared = empty = wrong = 0
    mismatches: list[CellMismatch] = []
    problems: list[str] = []
    for block in ranges:
        problem, names, area = _locate(block, gold, output, mode)
        if problem:
            problems.append(problem)
            continue
        compared += _size(block, area)
        seen = 0
        for cell, expected, got in _pairs(area, names, gold, output):
            seen += 1
            if expected is None and got is None:
                empty += 1
            elif not same_value(expected, got, mode):
                wrong += 1
                if len(mismatches) < keep:
                    mismatches.append(CellMismatch(names[0], cell_name(*cell), _shown(expected), _shown(got)))
            elif expected in (None, ""):
                empty += 1
        empty += _size(block, area) - seen
    if mode == "strict" and not compared and not problems:
        problems.append("there is no cell to compare: the graded part of the right workbook is empty.")
    return CellReport(compared, empty, wrong, tuple(mismatches), tuple(problems))


def missing_sheets(ranges: Sequence[CellRange], gold: Workbook) -> tuple[str, ...]:
    """Sheets that `ranges` name and `gold` lacks: such an item cannot be graded."""
    named = dict.fromkeys(block.sheet for block in ranges if block.sheet)
    return tuple(name for name in named if not _sheet(name, gold, "strict"))


def score_cases(reports: Sequence[CellReport]) -> Score:
    """Score of an item: `soft` is the share of its cases that passed, `hard` 1 if all did and there is at least one."""
    passed = sum(report.passed for report in reports)
    if not reports:
        return Score(0.0, 0.0, "the item has no test cases.")
    if passed == len(reports):
        return Score(1.0, 1.0, "correct.")
    number, failed = next((n, report) for n, report in enumerate(reports, 1) if not report.passed)
    return Score(0.0, passed / len(reports), f"case {number} of {len(reports)}: {_reason(failed)}")


def _reason(report: CellReport) -> str:
    if report.problems or not report.mismatches:
        return report.problems[0] if report.problems else f"{report.wrong} cells are wrong."
    miss = report.mismatches[0]
    return f"cell {miss.sheet}!{miss.cell}: expected {miss.expected}, got {miss.got}; {report.wrong} wrong in all."


def _locate(block: CellRange, gold: Workbook, output: Workbook, mode: Mode) -> tuple[str, tuple[str, str], CellRange]:
    """Why the block cannot be compared, its sheet's name in both workbooks, and the part that has to be visited."""
    names = _sheet(block.sheet, gold, mode), _sheet(block.sheet or _sheet("", gold, mode), output, mode)
    if block.problem:
        return f"{block.problem}.", names, block
    for name, owner in zip(names, ("right workbook", "output"), strict=True):
        if not name:
            return f"the {owner} has no sheet {shorten(block.sheet or names[0])}.", names, block
    rows, columns = gold.used[names[0]]
    more_rows, more_columns = output.used[names[1]]
    closed = block.within(block.bottom or rows, block.right or columns)
    return "", names, closed.within(max(rows, more_rows), max(columns, more_columns))


def _sheet(name: str, book: Workbook, mode: Mode) -> str:
    """The workbook's own name of a sheet, or of its first one for an empty name; empty if there is none."""
    if not name:
        return next(iter(book.used), "")
    if name in book.used or mode == "paper":
        return name if name in book.used else ""
    return next((own for own in book.used if own.casefold() == name.casefold()), "")


def _size(block: CellRange, area: CellRange) -> int:
    """Number of cells of a block; of an open one, of the part that is visited."""
    bottom, right = block.bottom or area.bottom, block.right or area.right
    return max(0, bottom - block.top + 1) * max(0, right - block.left + 1)


def _pairs(
    area: CellRange, names: tuple[str, str], gold: Workbook, output: Workbook
) -> Iterator[tuple[tuple[int, int], object, object]]:
    for row, column in area.cells():
        yield (row, column), gold.value(names[0], row, column), output.value(names[1], row, column)


def _shown(value: object) -> str:
    return shorten(value) if isinstance(value, str) else ("nothing" if value is None else shorten(str(value))[1:-1])
