"""Text of models and transcripts is shown as text and nothing else."""

from __future__ import annotations

import html
import json
import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.show import clip, json_safe, plain_line, prose, quoted, score_text, table_cell, terminal_line
from skillopt_sleep.types import EditRecord


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("\x9b31mred", "red"),
        ("a\r\nb\tc\x00d", "a b c d"),
        ("a\u202eb\u200bc\u2028d", "a b c d"),
        ("  many   spaces ", "many spaces"),
        ("\ud800x", "x"),
        ("\x1b", ""),
    ],
)
def test_a_line_holds_no_escape_sequence_and_no_control_character(text: str, shown: str) -> None:
    assert plain_line(text) == shown


@given(st.text())
def test_any_text_becomes_one_printable_line(text: str) -> None:
    line = plain_line(text)
    assert "\x1b" not in line
    assert len(line.splitlines()) <= 1


def test_a_terminal_line_is_redacted_and_cut() -> None:
    assert terminal_line("key sk-abcdefghij1234") == "key [REDACTED_OPENAI_KEY]"
    assert terminal_line("a" * 10, 3) == "aaa \u2026"
    assert clip("abc", 3) == "abc"


def test_table_cells_and_prose_hold_no_markup() -> None:
    assert table_cell("a|b `c` <img src=x onerror=alert(1)>\n&") == (
        "a&#124;b &#96;c&#96; &lt;img src=x onerror=alert(1)&gt; &amp;"
    )
    assert prose("[x](y) *b* _i_ #h +1 !{z} \\") == ("\\[x\\]\\(y\\) \\*b\\* \\_i\\_ \\#h \\+1 \\!\\{z\\} \\\\")
    assert prose("a|b `#1`") == "a&#124;b &#96;\\#1&#96;"


_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])|&(?:#\d+|\w+);")


@given(st.one_of(st.text(), st.text("|`&#\\<>*_[];12a ", max_size=20)))
def test_prose_reads_as_the_text_again(text: str) -> None:
    shown = prose(text)
    assert _ESCAPED.sub(lambda found: found[1] or html.unescape(found[0]), shown) == terminal_line(text)
    assert not set("|`<>*_[]") & set(_ESCAPED.sub("", shown)), "what is left is no markup"


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "1", True])
def test_missing_scores_are_a_dash(value: object) -> None:
    assert score_text(value) == "\u2014"


def test_scores_have_three_decimals() -> None:
    assert (score_text(1 / 3), score_text(1)) == ("0.333", "1.000")


def test_names_are_shown_as_quoted_ascii() -> None:
    assert quoted("a'; rm -rf ~\n\u202e") == '"a\'; rm -rf ~"'
    assert quoted("\u00fc") == "'\\xfc'"


def test_json_safe_leaves_only_what_json_knows() -> None:
    value = {"a": math.nan, 1: (math.inf, {2, 1}), "e": EditRecord("skill", "add"), "s": "\ud800", "t": True}
    safe = json_safe(value)
    assert json.loads(json.dumps(safe, allow_nan=False)) == safe
    assert (safe["a"], safe["1"], safe["e"]["op"], safe["s"], safe["t"]) == (None, [None, [1, 2]], "add", "?", True)


def test_hostile_text_takes_time_in_proportion_to_its_length() -> None:
    start = time.thread_time()
    for piece in ("\x1b]", "\x1b[", "\x1b[;", "\x9d\x1b", " \n"):
        plain_line(piece * 50_000)
    assert time.thread_time() - start < 15
