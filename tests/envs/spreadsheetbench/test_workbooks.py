"""Workbooks read once: values, previews, formulas; broken and oversized files are refused."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from skillopt.datasets.samples.plain_xlsx import Formula, write_workbook
from skillopt.envs.spreadsheetbench import workbooks
from skillopt.envs.spreadsheetbench.workbooks import (
    inspection,
    need_openpyxl,
    preview,
    read_workbook,
    sheet_names,
    uncomputed_formulas,
)
from skillopt.errors import DataError, DeadlineError, MissingExtraError
from skillopt.scoring.cells import compare_cells, parse_answer_position


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.xlsx"
    rows = [(f"r{n}", n, "x" * 60) for n in range(1, 9)]
    formulas = [(Formula("1+1", 2), Formula("SUM(A1:A2)"))]
    write_workbook(path, {"Big one": rows, "F & G": formulas, "Dates": [(dt.date(2031, 3, 1),)], "Empty": []})
    return path


def test_values_are_read_of_the_named_sheets(book: Path) -> None:
    read = read_workbook(book, parse_answer_position("'Big one'!A1:B9,dates!A1"))
    assert read.value("Big one", 8, 2) == 8 and read.value("Big one", 9, 2) is None
    assert read.value("Dates", 1, 1) == dt.datetime(2031, 3, 1)  # noqa: DTZ001
    assert read.used == {"Big one": (8, 3), "F & G": (0, 0), "Dates": (1, 1), "Empty": (0, 0)}
    assert read_workbook(book, parse_answer_position("A1"), first="F & G").value("F & G", 1, 1) == 2
    assert sheet_names(book) == ("Big one", "F & G", "Dates", "Empty")


def test_a_preview_shows_the_size_and_five_short_rows(book: Path) -> None:
    lines = preview(book).splitlines()
    assert lines[0] == "Sheet 'Big one': A1:C8, 8 rows, 3 columns"
    assert lines[1] == f"A1=r1 | B1=1 | C1={'x' * 39}…"
    assert lines[6] == "… 3 more rows"
    assert "A1==1+1 | B1==SUM(A1:A2)" in lines and lines[-1] == "Sheet 'Empty': empty"


def test_a_preview_of_many_sheets_is_bounded(tmp_path: Path) -> None:
    write_workbook(tmp_path / "b.xlsx", {f"S{n}": [["y" * 50] * 20] * 5 for n in range(30)})
    assert len(preview(tmp_path / "b.xlsx")) < 20_100


def test_formulas_without_a_value_are_named(book: Path) -> None:
    assert uncomputed_formulas(book) == ["F & G!B1: =SUM(A1:A2)"]
    assert uncomputed_formulas(book, ["Big one"]) == []
    assert inspection(book).startswith("Output, sheet 'Big one', first rows as stored:\nA1=r1 | B1=1")


def test_gaps_and_absurd_sizes_do_not_mislead(tmp_path: Path) -> None:
    path = tmp_path / "gaps.xlsx"
    write_workbook(path, {"S": [(), (None, 1), (), (2,)]})
    read = read_workbook(path, parse_answer_position("A1:B9"))
    assert read.used == {"S": (4, 2)} and (read.value("S", 2, 2), read.value("S", 4, 1)) == (1, 2)
    _rewrite(path, tmp_path / "far.xlsx", lambda data: data.replace(b'r="4"', b'r="999999999"'))
    with pytest.raises(DataError, match="is too large"):
        read_workbook(tmp_path / "far.xlsx", parse_answer_position("A1"))
    _rewrite(
        path, tmp_path / "lies.xlsx", lambda data: data.replace(b"<sheetData>", b'<dimension ref="A1"/><sheetData>')
    )
    assert read_workbook(tmp_path / "lies.xlsx", parse_answer_position("A1")).used == {"S": (4, 2)}


def _rewrite(source: Path, target: Path, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if name.endswith("sheet1.xml") else data)


def test_what_is_no_workbook_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, book: Path) -> None:
    (tmp_path / "x.xlsx").write_bytes(b"PK no")
    with pytest.raises(DataError, match=r"x.xlsx: cannot be read as a workbook \(BadZipFile"):
        read_workbook(tmp_path / "x.xlsx", ())
    with zipfile.ZipFile(tmp_path / "y.xlsx", "w") as archive:
        archive.writestr("a.txt", "no sheets")
    for read in (lambda path: read_workbook(path, ()), sheet_names):
        with pytest.raises(DataError, match=r"y.xlsx: cannot be read"):
            read(tmp_path / "y.xlsx")
    monkeypatch.setattr(workbooks, "_LARGEST_UNPACKED", 1000)
    with pytest.raises(DataError, match="bytes unpacked"):
        read_workbook(book, ())


def test_a_workbook_that_would_be_read_for_minutes_is_refused(tmp_path: Path, book: Path) -> None:
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(book) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name in source.namelist():
            made.writestr(name, source.read(name))
        made.writestr("xl/sharedStrings.xml", b"<sst>" + b"<si><t/></si>" * 3_000_000 + b"</sst>")
    with pytest.raises(DataError, match="9,000,002 tags in one part"):
        preview(bomb)


def test_a_sheet_with_broken_rows_is_refused(tmp_path: Path, book: Path) -> None:
    broken = tmp_path / "broken.xlsx"
    _rewrite(book, broken, lambda data: data[:-30])
    with pytest.raises(DataError, match=r"broken.xlsx: cannot be read"):
        read_workbook(broken, parse_answer_position("A1"))


def test_reading_can_be_ended(tmp_path: Path) -> None:
    write_workbook(tmp_path / "long.xlsx", {"S": [(1,)] * 1200})

    def over() -> None:
        raise DeadlineError("over")

    with pytest.raises(DeadlineError):
        read_workbook(tmp_path / "long.xlsx", parse_answer_position("A1"), tick=over)


def test_a_large_range_is_compared_in_one_pass(tmp_path: Path) -> None:
    for name in ("gold", "out"):
        write_workbook(tmp_path / f"{name}.xlsx", {"S": [list(range(n, n + 20)) for n in range(500)]})
    ranges = parse_answer_position("A1:T500,A:A,1:3")
    gold, out = (read_workbook(tmp_path / f"{name}.xlsx", ranges) for name in ("gold", "out"))
    report = compare_cells(ranges, gold, out)
    assert report.passed and report.compared == 10_000 + 500 + 60


def test_the_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    with pytest.raises(MissingExtraError, match=r'pip install "skillopt\[spreadsheet\]"'):
        need_openpyxl()
