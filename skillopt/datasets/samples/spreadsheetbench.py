"""Sample items of SpreadsheetBench: small workbooks of an imaginary shop, each with the right result beside it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt.datasets.samples.plain_xlsx import Row, Value, write_workbook
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json

SPLITS = ("train", "val", "test")
_CELL, _SHEET = "Cell-Level Manipulation", "Sheet-Level Manipulation"
_GOODS = ("kettle", "lantern", "rope", "bucket", "anvil", "compass", "blanket", "ladder", "saddle", "whistle")
_GROUPS = ("camp", "kitchen", "stable", "workshop")
_FIRST_DAY = dt.date(2031, 3, 1)

Sheets = dict[str, list[Row]]
Draw = Callable[[random.Random], tuple[Sheets, Sheets]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of task. `names`: file names of input and result, with the case's number and the item's id put in."""

    name: str
    instruction: str
    instruction_type: str
    answer_position: str
    draw: Draw
    cases: int = 1
    answer_sheet: str = ""
    names: tuple[str, str] = ("{case}_{id}_init.xlsx", "{case}_{id}_golden.xlsx")


def write(folder: Path) -> None:
    """Write `train`, `val` and `test` with their items, and the workbooks below `spreadsheet`."""
    for split in SPLITS:
        rows = []
        for kind in _KINDS:
            item_id = f"{split}-{kind.name}"
            for case in range(1, kind.cases + 1):
                books = kind.draw(random.Random(f"{item_id} {case}"))
                for name, sheets in zip(kind.names, books, strict=True):
                    file = name.format(case=case, id=item_id)
                    write_workbook(folder / "spreadsheet" / item_id / file, sheets)
            rows.append(_row(item_id, kind))
        atomic_write_json(folder / split / "items.json", rows)


def _row(item_id: str, kind: _Kind) -> JsonObject:
    row: JsonObject = {
        "id": item_id,
        "instruction": kind.instruction,
        "instruction_type": kind.instruction_type,
        "answer_position": kind.answer_position,
        "spreadsheet_path": f"spreadsheet/{item_id}",
    }
    return {**row, "answer_sheet": kind.answer_sheet} if kind.answer_sheet else row


def _total(rng: random.Random) -> tuple[Sheets, Sheets]:
    amounts = [rng.randrange(20, 900) for _ in range(rng.randrange(6, 10))]
    as_text = set(rng.sample(range(len(amounts)), 2))
    rows: list[Row] = [("Item", "Amount", None, "Total")]
    rows += [
        (rng.choice(_GOODS), f" {amount} " if n in as_text else amount, None, None) for n, amount in enumerate(amounts)
    ]
    solved = [rows[0], (*rows[1][:3], sum(amounts)), *rows[2:]]
    return {"Sales": rows}, {"Sales": solved}


def _days(rng: random.Random) -> tuple[Sheets, Sheets]:
    head: Row = ("Item", "Lent", "Returned", "Days")
    rows: list[Row] = [head]
    solved: list[Row] = [head]
    for _ in range(rng.randrange(5, 9)):
        lent = _FIRST_DAY + dt.timedelta(days=rng.randrange(300))
        days = rng.randrange(1, 60)
        row = (rng.choice(_GOODS), lent, lent + dt.timedelta(days=days))
        rows.append(row)
        solved.append((*row, days))
    return {"Loans": rows}, {"Loans": solved}


def _status(rng: random.Random) -> tuple[Sheets, Sheets]:
    head: Row = ("Item", "Stock", "Minimum", "Status")
    rows: list[Row] = [head]
    solved: list[Row] = [head]
    for name in rng.sample(_GOODS, rng.randrange(5, 9)):
        stock, minimum = rng.randrange(0, 40), rng.randrange(5, 25)
        rows.append((name, stock, minimum))
        solved.append((name, stock, minimum, "order" if stock < minimum else "enough"))
    notes: list[Row] = [("Counted by hand every Friday",)]
    return {"Notes": notes, "Stock list": rows}, {"Notes": notes, "Stock list": solved}


def _groups(rng: random.Random) -> tuple[Sheets, Sheets]:
    head: Row = ("Department", "Cost")
    rows: list[Row] = [head]
    sums: dict[str, int] = {}
    for _ in range(rng.randrange(8, 13)):
        group, cost = rng.choice(_GROUPS), rng.randrange(10, 400)
        sums[group] = sums.get(group, 0) + cost
        rows.append((group, cost))
    table: list[Row] = [("Department", "Total cost")]
    solved = [*table, *((group, sums[group]) for group in sorted(sums))]
    return {"Costs": rows, "Summary": table}, {"Costs": rows, "Summary": solved}


def _unique(rng: random.Random) -> tuple[Sheets, Sheets]:
    head: Row = ("Code", "Item", "Shelf")
    shelves: list[tuple[Value, ...]] = [
        (f"K{100 + n}", name, rng.choice("ABCD")) for n, name in enumerate(rng.sample(_GOODS, rng.randrange(5, 8)))
    ]
    listed = [*shelves, *rng.sample(shelves, 3)]
    rng.shuffle(listed)
    first: Sequence[Row] = list(dict.fromkeys(listed))
    return {"Shelves": [head, *listed]}, {"Shelves": [head, *first]}


_KINDS = (
    _Kind(
        "total",
        "Add up the amounts in column B and put the total into D2. Some amounts were typed as text with spaces around "
        "them; they count too.",
        _CELL,
        "D2",
        _total,
    ),
    _Kind(
        "days",
        "For each loan in the sheet Loans, put the number of days from the day it was lent to the day it was returned "
        "into the column Days.",
        _CELL,
        "Loans!D2:D12",
        _days,
        cases=2,
        names=("{case}_{id}_input.xlsx", "{case}_{id}_answer.xlsx"),
    ),
    _Kind(
        "status",
        "In the sheet 'Stock list', write 'order' into the column Status where the stock is below the minimum, and "
        "'enough' everywhere else.",
        _CELL,
        "$D$2:$D$12",
        _status,
        answer_sheet="Stock list",
    ),
    _Kind(
        "groups",
        "Fill the sheet Summary: one row for each department that occurs in the sheet Costs, in alphabetical order, "
        "with the sum of its costs beside it.",
        _SHEET,
        "'Summary'!A2:B8",
        _groups,
        names=("initial.xlsx", "golden.xlsx"),
    ),
    _Kind(
        "unique",
        "Some rows of the list stand there twice. Keep the first of each, in the given order, without gaps.",
        _SHEET,
        "Shelves!A1:C14",
        _unique,
        cases=2,
    ),
)
