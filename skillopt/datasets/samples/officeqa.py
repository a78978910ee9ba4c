"""Sample data of OfficeQA: the quarterly bulletins of an invented country, as text and as parsed pages, and questions.

Everything is made up. The tables are in thousands, the questions ask for millions, and each bulletin repeats the form
of the others, so that the right document, the right column and the unit all matter.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, atomic_write_text

DOCS_FOLDER = "docs"
_SEED = 11
_QUARTERS = (
    ("1931-03", "March 1931", ("January", "February", "March")),
    ("1931-06", "June 1931", ("April", "May", "June")),
    ("1931-09", "September 1931", ("July", "August", "September")),
    ("1931-12", "December 1931", ("October", "November", "December")),
)
_RECEIPTS = ("Harbour dues", "Salt duty", "Stamp tax", "Post and telegraph")
_DEBT = ("Internal loans", "Foreign loans", "Treasury notes")


@dataclass(frozen=True, slots=True)
class _Bulletin:
    """One bulletin. `receipts` and `debt`: rows of three months each, in thousands of crowns."""

    date: str
    title: str
    months: tuple[str, str, str]
    receipts: tuple[tuple[int, ...], ...]
    debt: tuple[tuple[int, ...], ...]

    @property
    def file(self) -> str:
        """Name of its text."""
        return f"{self.stem}.txt"

    @property
    def stem(self) -> str:
        """Name without the ending."""
        return f"velmora_bulletin_{self.date.replace('-', '_')}"

    def tables(self) -> list[tuple[str, str, list[list[str]]]]:
        """(title, note, rows) of its two tables; the first row is the head."""
        head = ["", *self.months]
        sums = [f"{sum(column):,}" for column in zip(*self.receipts, strict=True)]
        receipts = [head, *map(_cells, _RECEIPTS, self.receipts), ["Total", *sums]]
        debt = [["At the end of", *self.months], *map(_cells, _DEBT, self.debt)]
        return [
            ("Table 1. Receipts of the Treasury by source", "In thousands of crowns.", receipts),
            ("Table 2. Public debt", "In thousands of crowns. Loans of the towns are not included.", debt),
        ]


def write(folder: Path) -> None:
    """Write the splits, and the documents in `docs`: texts in `transformed`, parsed pages in `jsons`."""
    bulletins = _bulletins()
    for bulletin in bulletins:
        atomic_write_text(folder / DOCS_FOLDER / "transformed" / bulletin.file, _text(bulletin))
        atomic_write_json(folder / DOCS_FOLDER / "jsons" / f"{bulletin.stem}.json", _parsed(bulletin))
    for split, rows in items().items():
        atomic_write_json(folder / split / "items.json", rows)


def items() -> dict[str, list[JsonObject]]:
    """The items of each split, in their order."""
    first, second, third, fourth = _bulletins()
    return {
        "train": [
            _figure(1, first, 0, 1),
            _change(2, first, 1, 0, 2),
            _share(3, second, 2, 0),
            _figure(4, second, 3, 2),
            _debt(5, third, 1, 0),
            _across(6, first, second, 2),
        ],
        "val": [_figure(7, third, 2, 0), _change(8, second, 0, 0, 1), _share(9, fourth, 1, 2), _debt(10, first, 2, 2)],
        "test": [
            _figure(11, fourth, 0, 2),
            _change(12, third, 3, 0, 1),
            _debt(13, fourth, 0, 1),
            _across(14, third, fourth, 1),
        ],
    }


def _bulletins() -> list[_Bulletin]:
    rng = random.Random(_SEED)

    def rows(names: Sequence[str], low: int, high: int) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(rng.randrange(low, high, 10) for _ in range(3)) for _ in names)

    return [_Bulletin(*quarter, rows(_RECEIPTS, 4_000, 60_000), rows(_DEBT, 90_000, 900_000)) for quarter in _QUARTERS]


def _cells(name: str, values: Sequence[int]) -> list[str]:
    return [name, *(f"{value:,}" for value in values)]


def _text(bulletin: _Bulletin) -> str:
    parts = [f"TREASURY OF VELMORA\nQuarterly Bulletin, {bulletin.title}"]
    for title, note, rows in bulletin.tables():
        parts.append("\n".join([title, note, "", *(" | ".join(row) for row in rows)]))
    parts.append("Figures of the last month are provisional.")
    return "\n\n".join(parts) + "\n"


def _parsed(bulletin: _Bulletin) -> JsonObject:
    elements: list[JsonObject] = []
    for page, (title, note, rows) in enumerate(bulletin.tables(), 1):
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        for kind, content in (("title", title), ("text", note), ("table", f"<table>{body}</table>")):
            place = [{"coord": [0, 0, 100, 100], "page_id": page}]
            elements.append({"id": len(elements), "type": kind, "content": content, "bbox": place})
    return {"document": {"elements": elements, "pages": [{"id": 1}, {"id": 2}]}}


def _item(number: int, kind: str, question: str, answer: str, *sources: tuple[_Bulletin, int]) -> JsonObject:
    docs = [f"https://bulletins.example/velmora/{bulletin.date}?page={page}" for bulletin, page in sources]
    return {
        "uid": f"VB{number:04d}",
        "question": question,
        "ground_truth": answer,
        "category": kind,
        "source_files": [bulletin.file for bulletin, _ in sources],
        "source_docs": docs,
    }


def _figure(number: int, bulletin: _Bulletin, source: int, month: int) -> JsonObject:
    question = (
        f"According to the Velmora Treasury bulletin of {bulletin.title}, what were the receipts from "
        f"{_RECEIPTS[source]} in {bulletin.months[month]}, in millions of crowns?"
    )
    return _item(number, "easy", question, _millions(bulletin.receipts[source][month]), (bulletin, 1))


def _change(number: int, bulletin: _Bulletin, source: int, before: int, after: int) -> JsonObject:
    row = bulletin.receipts[source]
    question = (
        f"According to the Velmora Treasury bulletin of {bulletin.title}, by how many millions of crowns did receipts "
        f"from {_RECEIPTS[source]} change from {bulletin.months[before]} to {bulletin.months[after]}, with a minus "
        "for a fall?"
    )
    return _item(number, "hard", question, _millions(row[after] - row[before]), (bulletin, 1))


def _share(number: int, bulletin: _Bulletin, source: int, month: int) -> JsonObject:
    total = sum(row[month] for row in bulletin.receipts)
    share = (Decimal(100 * bulletin.receipts[source][month]) / total).quantize(Decimal("0.1"))
    question = (
        f"According to the Velmora Treasury bulletin of {bulletin.title}, what share of all receipts came from "
        f"{_RECEIPTS[source]} in {bulletin.months[month]}, in per cent with one decimal place?"
    )
    return _item(number, "hard", question, f"{share}%", (bulletin, 1))


def _debt(number: int, bulletin: _Bulletin, kind: int, month: int) -> JsonObject:
    question = (
        f"According to the Velmora Treasury bulletin of {bulletin.title}, how large was the public debt in "
        f"{_DEBT[kind]} at the end of {bulletin.months[month]}, in millions of crowns?"
    )
    return _item(number, "easy", question, _millions(bulletin.debt[kind][month]), (bulletin, 2))


def _across(number: int, first: _Bulletin, second: _Bulletin, source: int) -> JsonObject:
    question = (
        f"According to the Velmora Treasury bulletins of {first.title} and {second.title}, what were the receipts from "
        f"{_RECEIPTS[source]} in {first.months[2]} and {second.months[0]} together, in millions of crowns?"
    )
    total = first.receipts[source][2] + second.receipts[source][0]
    return _item(number, "hard", question, _millions(total), (first, 1), (second, 1))


def _millions(thousands: int) -> str:
    value = (Decimal(thousands) / 1000).quantize(Decimal("0.01"))
    return f"{value} million"
