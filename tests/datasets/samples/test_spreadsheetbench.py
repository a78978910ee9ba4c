"""The sample workbooks: as shipped, the same every time, readable by what users read workbooks with."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from skillopt.datasets.samples import spreadsheetbench as samples
from skillopt.datasets.samples.plain_xlsx import Formula, write_workbook

SHIPPED = Path(__file__).parents[3] / "data" / "samples" / "spreadsheetbench"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_shipped_files_are_what_the_generator_writes(tmp_path: Path) -> None:
    samples.write(tmp_path)
    made = files(tmp_path)
    assert made == files(SHIPPED)
    assert sum(map(len, made.values())) < 250_000


def test_cells_of_every_type_come_back(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason='reads workbooks: pip install "skillopt[spreadsheet]"')
    cells = ("<a & b>", 1, 2.5, dt.date(2031, 3, 1), None, " x ", Formula("B1+1", 2))
    write_workbook(tmp_path / "b.xlsx", {"A 'quoted' & name": [cells], "Two": []})
    for values, last in ((True, 2), (False, "=B1+1")):
        book = openpyxl.load_workbook(tmp_path / "b.xlsx", data_only=values)
        assert book.sheetnames == ["A 'quoted' & name", "Two"]
        row = [cell.value for cell in book.worksheets[0][1]]
        assert row == ["<a & b>", 1, 2.5, dt.datetime(2031, 3, 1), None, " x ", last]  # noqa: DTZ001
        assert book.worksheets[0]["D1"].is_date
