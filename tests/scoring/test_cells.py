"""Spreadsheet cells: values, positions and reports, with the worked examples of SpreadsheetBench in both modes."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import DataError
from skillopt.scoring.cells import (
    CellMismatch,
    CellRange,
    CellReport,
    Workbook,
    cell_name,
    compare_cells,
    missing_sheets,
    parse_answer_position,
    same_value,
    score_cases,
)

DAY = dt.datetime(2024, 1, 1)  # noqa: DTZ001 -- workbooks know no time zones
SERIAL = 45292

# one value, the other, equal in the paper, equal here
VALUES = [
    ("1", 1, True, True),
    (1.0, "1.001", True, True),
    (1, "1.001", True, True),
    ("1e3", 1000, True, True),
    (" 5 ", 5, True, True),
    ("", None, True, True),
    (None, 0, False, False),
    (0, "", False, False),
    ("abc", "ABC", False, False),
    ("abc", "abc ", False, False),
    ("5%", 0.05, False, False),
    ("1,000", 1000, False, False),
    ("TRUE", True, False, False),
    (dt.time(9, 30), "09:30", True, True),
    (DAY.replace(hour=13), SERIAL, False, False),
    (1.005, 1.01, False, True),  # half up, in decimal
    (2.675, 2.68, False, True),
    (True, 1, True, False),  # a truth value is no number
    (False, 0, True, False),
    ("1_000", 1000, True, False),  # a number in Python only
    ("nan", "nan", False, True),  # the same word
    (DAY.replace(hour=11), SERIAL, True, False),  # eleven o'clock is not midnight
    (DAY.date(), SERIAL, False, True),  # a date is its serial number
]


@pytest.mark.parametrize(("one", "other", "paper", "strict"), VALUES)
def test_worked_values(one, other, paper, strict):
    assert same_value(one, other, "paper") is same_value(other, one, "paper") is paper
    assert same_value(one, other) is same_value(other, one) is strict


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (DAY, DAY.date(), True),
        (DAY, SERIAL, True),
        (DAY.replace(hour=11), SERIAL + 11 / 24, True),
        (DAY.replace(hour=9, second=20), DAY.replace(hour=9), True),
        (DAY.replace(hour=9, minute=1), DAY.replace(hour=9), False),
        (dt.time(9, 30), 0.3958333333, True),
        (dt.time(9, 30, 15), "9:30:40", True),
        (dt.time(9, 30), "half past nine", False),
        (dt.timedelta(hours=26), 26 / 24, True),
        (dt.timedelta(hours=2), dt.time(2), True),
        (DAY, "2024-01-01", False),
        (DAY, None, False),
        (dt.time(0), "", False),
        (0.1 + 0.2, 0.3, True),
        (1.0049999999999999, 1.005, True),
        (1e300, 1e300, True),
        (123456789012.004, 123456789012.006, True),
        (-1.005, -1.01, True),
        (1.004, 1.006, False),
        (10**400, 10**400, True),
        (float("nan"), float("nan"), True),
        (float("inf"), "inf", False),
        ("a\r\nb", "a\nb", True),
        ("cafe\u0301", "caf\u00e9", True),
        ("#N/A", "#N/A", True),
        (" ", None, False),
        (True, True, True),
        (True, "1", False),
    ],
)
def test_other_values(one, other, equal):
    assert same_value(one, other) is same_value(other, one) is equal


CELL_VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.text("0123456789.:eE-+ _", max_size=10)
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
)


@given(CELL_VALUES, CELL_VALUES)
def test_comparison_is_symmetric_and_the_gold_value_is_right(one, other):
    for mode in ("strict", "paper"):
        assert same_value(one, other, mode) is same_value(other, one, mode)
    assert same_value(one, one)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("A1", [CellRange("", 1, 1, 1, 1)]),
        ("S1!A1", [CellRange("S1", 1, 1, 1, 1)]),
        ("'S1'!A1", [CellRange("S1", 1, 1, 1, 1)]),
        ("'S1!A1'", [CellRange("S1", 1, 1, 1, 1)]),
        ("'S1'!'A1:B2'", [CellRange("S1", 1, 1, 2, 2)]),
        ("$A$1:$B$2", [CellRange("", 1, 1, 2, 2)]),
        (" A1 : B2 , C3 ", [CellRange("", 1, 1, 2, 2), CellRange("", 3, 3, 3, 3)]),
        ("A1;B1", [CellRange("", 1, 1, 1, 1), CellRange("", 1, 2, 1, 2)]),
        ("'a, b!c'!A1,D!B2", [CellRange("a, b!c", 1, 1, 1, 1), CellRange("D", 2, 2, 2, 2)]),
        ("'it''s'!A1", [CellRange("it's", 1, 1, 1, 1)]),
        ("My sheet!A1", [CellRange("My sheet", 1, 1, 1, 1)]),
        ("Übersicht!AA10", [CellRange("Übersicht", 10, 27, 10, 27)]),
        ("b1:b3", [CellRange("", 1, 2, 3, 2)]),
        ("B2:A1", [CellRange("", 1, 1, 2, 2)]),
        ("A:C", [CellRange("", 1, 1, 0, 3)]),
        ("S!$3:1", [CellRange("S", 1, 1, 3, 0)]),
        ("XFD1048576", [CellRange("", 1_048_576, 16_384, 1_048_576, 16_384)]),
    ],
)
def test_positions(text, ranges):
    assert parse_answer_position(text) == tuple(ranges)


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "!", "A", "1", "A0", "A0:B2", "XFE1", "A1048577", "A1:", ":A1", "A1:B", "A:1", "S!", "'S'", "'S!A1"],
)
def test_nonsense_is_refused_at_once(text):
    with pytest.raises(DataError, match=r"^item q7") as caught:
        parse_answer_position(text, where="item q7")
    assert "answer position" in str(caught.value)


@pytest.mark.parametrize("text", ["S!A1!B1", "all cells", "A1 B2", "'S'A1", "A1,nonsense", "'S!A1,B1"])
def test_a_block_that_cannot_be_read_is_refused(text):
    with pytest.raises(DataError, match=r"^item: .*|^item, answer position"):
        parse_answer_position(text)


def test_answer_sheet_belongs_to_every_block_without_a_sheet():
    assert [r.sheet for r in parse_answer_position("A1,T!B1,C1", answer_sheet="S")] == ["S", "T", "S"]
    assert [r.sheet for r in parse_answer_position("A1,C1", answer_sheet="S", mode="paper")] == ["S", ""]


@given(st.text(max_size=20) | st.text("ABab19:$!', ;", max_size=15))
def test_any_position_is_read_or_refused(text):
    try:
        for block in parse_answer_position(text):
            assert block.top >= 1 and block.left >= 1 and (block.bottom >= block.top or block.bottom == 0)
    except DataError:
        pass
    parse_answer_position(text, mode="paper")


@given(st.integers(1, 16_384), st.integers(1, 1_048_576))
def test_names_of_cells_are_read_back(column, row):
    assert parse_answer_position(cell_name(row, column)) == (CellRange("", row, column, row, column),)


def book(sheets: Mapping[str, Mapping[tuple[int, int], object]]) -> Workbook:
    used = {
        name: (max((r for r, _ in cells), default=0), max((c for _, c in cells), default=0))
        for name, cells in sheets.items()
    }
    return Workbook(lambda sheet, row, column: sheets[sheet].get((row, column)), used)


GOLD = book({"S1": {(1, 1): 1, (1, 2): "x", (2, 1): 2.5, (3, 3): "end"}, "It, too": {(1, 1): "y"}})
RIGHT = book({"S1": {(1, 1): "1", (1, 2): "x", (2, 1): 2.5, (3, 3): "end"}, "It, too": {(1, 1): "y"}})
WRONG = book({"S1": {(1, 1): 7, (1, 2): "x", (5, 1): "more"}, "It, too": {}})


def passes(position: str, output: Workbook, mode: str = "strict") -> bool:
    return compare_cells(parse_answer_position(position, mode=mode), GOLD, output, mode=mode).passed


@pytest.mark.parametrize("position", ["A1", "S1!A1", "'S1'!A1", "$A$1:$B$2"])
@pytest.mark.parametrize("mode", ["strict", "paper"])
def test_usual_positions(position, mode):
    assert passes(position, RIGHT, mode) and not passes(position, WRONG, mode)


@pytest.mark.parametrize("position", ["", "a1:a1", "A2:A1"])
def test_free_marks_of_the_published_positions_are_gone(position):
    assert passes(position, WRONG, "paper")
    if position:
        assert passes(position, RIGHT) and not passes(position, WRONG)
    else:
        with pytest.raises(DataError):
            passes(position, WRONG)


@pytest.mark.parametrize("position", ["A:A", "1:3", "'It, too'!A1"])
def test_positions_that_the_published_reading_cannot_read_are_read(position):
    assert not passes(position, RIGHT, "paper")
    assert passes(position, RIGHT) and not passes(position, WRONG)


@pytest.mark.parametrize("mode", ["strict", "paper"])
def test_missing_sheets_fail_the_case(mode):
    other = book({"S2": {(1, 1): 1}})
    ranges = parse_answer_position("S1!A1", mode=mode)
    assert compare_cells(ranges, GOLD, other, mode=mode).problems == ("the output has no sheet 'S1'.",)
    assert compare_cells(ranges, other, GOLD, mode=mode).problems == ("the right workbook has no sheet 'S1'.",)
    assert missing_sheets(ranges, other) == ("S1",) and missing_sheets(ranges, GOLD) == ()


def test_the_first_sheet_is_the_gold_workbooks_first():
    turned = book({"It, too": {(1, 1): "y"}, "S1": {(1, 1): 1}})
    assert passes("A1", turned)


def test_sheet_names_match_regardless_of_case():
    assert passes("s1!A1", RIGHT)
    assert not passes("s1!A1", RIGHT, "paper")


def test_one_pass_counts_and_keeps_the_first_mismatches():
    report = compare_cells(parse_answer_position("A1:C5"), GOLD, WRONG, keep=2)
    assert (report.compared, report.wrong, report.empty) == (15, 4, 10)
    assert report.mismatches == (CellMismatch("S1", "A1", "1", "7"), CellMismatch("S1", "A2", "2.5", "nothing"))
    assert report.text() == (
        "15 cells compared, 4 wrong, 10 empty as expected.\nS1!A1: got 7, expected 1\n"
        "S1!A2: got nothing, expected 2.5\n"
        "… and 2 more wrong cells."
    )
    assert "expected 2.5" not in report.text(show_expected=False)
    assert len(report.text(limit=60)) == 60


def test_cells_beyond_both_workbooks_are_not_visited():
    start = time.thread_time()
    report = compare_cells(parse_answer_position("A1:XFD1048576"), GOLD, GOLD)
    assert report.passed and report.compared == 16_384 * 1_048_576
    assert time.thread_time() - start < 5


def test_a_case_without_cells_fails():
    empty = book({"S1": {}})
    report = compare_cells(parse_answer_position("A:A"), empty, empty)
    assert not report.passed and "no cell to compare" in report.problems[0]


def test_large_ranges_are_compared_quickly():
    sheet = Workbook(lambda _, row, column: row * 1.25 + column, {"S": (8000, 12)})
    start = time.thread_time()
    report = compare_cells(parse_answer_position("A1:L8000"), sheet, sheet)
    assert report.passed and report.compared == 96_000
    assert time.thread_time() - start < 10


def test_reports_stay_short():
    long = book({"S": {(row, 1): "x" * 10_000 for row in range(1, 200)}})
    report = compare_cells(parse_answer_position("S!A1:A199"), long, book({"S": {}}))
    assert report.wrong == 199 and len(report.mismatches) == 50 and len(report.text()) < 12_000


def test_score_of_the_cases_of_an_item():
    good, bad = CellReport(3), compare_cells(parse_answer_position("A1"), GOLD, WRONG)
    assert (score_cases([good, good]).hard, score_cases([good, good]).soft) == (1, 1)
    score = score_cases([good, bad])
    assert (score.hard, score.soft) == (0, 0.5)
    assert score.feedback == "case 2 of 2: cell S1!A1: expected 1, got 7; 1 wrong in all."
    assert (score_cases([]).hard, score_cases([]).soft) == (0, 0)


@given(st.dictionaries(st.tuples(st.integers(1, 4), st.integers(1, 4)), CELL_VALUES, max_size=6))
def test_the_gold_workbook_passes(cells):
    sheet = book({"S": cells})
    assert compare_cells(parse_answer_position("A1:D4"), sheet, sheet).passed
