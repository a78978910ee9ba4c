"""The managed block: changed line by line, everything else kept byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.schedule.table import BEGIN, END, mark_of, parse, with_entry, without_entries

MARK, OTHER = mark_of("/p/one"), mark_of("/p/two")
LINE = f"17 3 * * *  night  {MARK}"


def test_hand_edits_in_the_block_are_kept() -> None:  # C229
    text = f"{BEGIN}\nMAILTO=me@example.org\n# mine\n{LINE}\n5 5 * * * mine too\n{END}\n"
    after, replaced = with_entry(text, MARK, LINE.replace("17 3", "0 4"))
    assert after == text.replace("17 3", "0 4")
    assert replaced == [LINE]
    gone, removed = without_entries(after, None)
    assert removed == [LINE.replace("17 3", "0 4")]
    assert gone == f"{BEGIN}\nMAILTO=me@example.org\n# mine\n5 5 * * * mine too\n{END}\n"


@pytest.mark.parametrize(
    "text", ["", "0 1 * * *  a\n", "\t0  1 * * * b\n\n# c\n", "0 1 * * * no final newline", "a\r\nb\r\n"]
)
def test_lines_outside_are_unchanged_bytes(text: str) -> None:  # C230
    after, replaced = with_entry(text, MARK, LINE)
    assert after.startswith(text)
    assert replaced == []
    assert parse(after).entries == [LINE]
    back, removed = without_entries(after, MARK)
    assert removed == [LINE]
    assert back == text or back == text + "\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n",
        f"{BEGIN}\n0 1 * * * user line below an unfinished block\n",
        f"{END}\n0 1 * * * x\n",
        f"{END}\n{BEGIN}\n",
    ],
)
def test_markers_that_do_not_make_one_block_are_refused(text: str) -> None:  # C232
    for change in (lambda: with_entry(text, MARK, LINE), lambda: without_entries(text, MARK)):
        with pytest.raises(UsageProblem, match="line 1"):
            change()


def test_scheduling_twice_leaves_one_line() -> None:  # C236
    once, _ = with_entry("", MARK, LINE)
    twice, replaced = with_entry(once, MARK, LINE.replace("17 3", "0 4"))
    assert parse(twice).entries == [LINE.replace("17 3", "0 4")]
    assert replaced == [LINE]


def test_a_comment_that_quotes_the_mark_is_not_our_line() -> None:
    text = f"{BEGIN}\n# was: {LINE}\n{END}\n"
    assert parse(text).entries == []
    assert without_entries(text, MARK) == (text, [])


def test_the_mark_tells_nothing_of_the_path() -> None:
    assert len(MARK) == len("# project-sha256=") + 64
    assert "one" not in MARK


@given(st.text(alphabet="ab #*\n\t%\\", max_size=60), st.lists(st.sampled_from([MARK, OTHER]), min_size=1, max_size=6))
def test_whatever_was_there_comes_back(text: str, marks: list[str]) -> None:
    table = text
    for mark in marks:
        table, _ = with_entry(table, mark, f"1 1 * * *  x  {mark}")
    assert table.startswith(text)
    assert len(parse(table).entries) == len(set(marks))
    back, removed = without_entries(table, None)
    assert len(removed) == len(set(marks))
    assert back in (text, text + "\n")
