"""Amounts: the worked examples of OfficeQA in both modes, and what equal numbers may look like."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt.errors import ConfigError
from skillopt.scoring import get_scorer

STRICT, PAPER = get_scorer("amount"), get_scorer("amount", mode="paper")

# answer, gold, hard and soft of the published formula, hard and soft of ours
EXAMPLES = [
    ("1,234.5", "1234.5", 1, 1, 1, 1),
    ("$1,234 million", "1234", 1, 1, 1, 1),  # the question asks for millions
    ("1234.50", "1234.5", 0, 0, 1, 1),  # the same number
    ("12.0", "12", 0, 0, 1, 1),  # the same number
    ("12 %", "12%", 0, 0, 1, 1),  # spacing
    ("0.5%", "0.50%", 0, 0, 1, 1),  # the same number
    ("1.5 billion", "1500 million", 0, 0, 1, 1),  # the same number
    ("million", "billion", 1, 1, 0, 0),  # no number at all: two different words
    ("5", "5.", 0, 0, 1, 1),  # a full stop is no digit
    ("(5)", "-5", 0, 0, 1, 1),  # how bookkeepers write a minus
    ("−5", "-5", 0, 0, 1, 1),  # U+2212 is a minus
    ("two words here", "two words", 0, 0.8, 0, 0.8),
]


@pytest.mark.parametrize(("answer", "gold", "hard", "soft", "strict_hard", "strict_soft"), EXAMPLES)
def test_worked_examples(answer, gold, hard, soft, strict_hard, strict_soft):
    paper, strict = PAPER(answer, [gold]), STRICT(answer, [gold])
    assert (paper.hard, paper.soft) == (hard, pytest.approx(soft))
    assert (strict.hard, strict.soft) == (strict_hard, pytest.approx(strict_soft))


SAME = [
    ("$1.5 billion", "1,500,000,000"),
    ("5 million (5,000,000)", "5 million"),
    ("2 thousand million", "2 billion"),
    ("12%", "12"),
    ("12 percent", "12%"),
    ("($5.2 million)", "-5,200,000"),
    ("$(5)", "-$5"),
    ("(1.2%)", "-1.2 percent"),
    ("minus 5", "-5"),
    ("–5", "-5"),
    ("+5", "5"),
    ("about 5 nominal dollars", "$5"),
    ("5 U.S. dollars", "5"),
    ("1,234", "1234 million"),
    ("[0.5, 0.70]", "0.50, 0.7"),
    ("3.0 months", "3 Months"),
    ("March 3, 1977", "march 3 1977"),
    ("1977–78", "1977-78"),
    ("Series E", "series E."),
]
DIFFERENT = [
    ("5 million", "5 billion"),
    ("5 hundred", "5"),
    ("5%", "0.05"),
    ("$5", "5%"),
    ("$5", "€5"),
    ("5", "-5"),
    ("(5)", "5"),
    ("1,234 (5)", "1,234"),
    ("5 million", "million"),
    ("dollars", "nominal"),
    ("March 1977", "1977"),
    ("1977 or 1978", "1977"),
    ("5, 3", "3, 5"),
    ("-", "+"),
    ("x →", "x ←"),
    ("1.2.3", "1.23"),
    ("12,34", "1234"),
    ("1234.56", "1234.6"),
    ("", "0"),
    ("0", ""),
]


@pytest.mark.parametrize(("answer", "gold"), SAME)
def test_the_same_amount_in_other_words(answer, gold):
    assert STRICT(answer, [gold]).hard == STRICT(gold, [answer]).hard == 1


@pytest.mark.parametrize(("answer", "gold"), DIFFERENT)
def test_no_free_marks(answer, gold):
    assert STRICT(answer, [gold]).hard == STRICT(gold, [answer]).hard == 0


def test_units_required():
    required = get_scorer("amount", units="required")
    assert required("$1,234 million", ["1234"]).hard == 0
    assert required("$1,234 million", ["1,234,000,000"]).hard == 1
    assert required("12%", ["12"]).hard == 0
    assert required("12 %", ["12.0%"]).hard == 1


def test_tolerances():
    absolute = get_scorer("amount", absolute_tolerance=0.1)
    assert absolute("1.1", ["1"]).hard == 1 and absolute("1.11", ["1"]).hard == 0
    assert get_scorer("amount", relative_tolerance=0.01)("101 million", ["100 million"]).hard == 1
    assert get_scorer("amount", relative_tolerance=0.01)("102 million", ["100 million"]).hard == 0
    with pytest.raises(ConfigError, match="scorer 'amount': relative_tolerance is -1"):
        get_scorer("amount", relative_tolerance=-1)


def test_an_amount_in_a_sentence_is_close_but_not_the_answer():
    score = STRICT("the total is 1,234", ["1234"])
    assert score.hard == 0 and score.soft == pytest.approx(0.4)


def test_no_answer_has_no_marks():
    assert PAPER("", [""]).hard == PAPER(" ", ["5"]).hard == 0
    assert PAPER("5", []).hard == STRICT("5", []).hard == 0
    assert PAPER("$", ["dollars"]).hard == 1  # the formula leaves nothing of either
    assert STRICT("$", ["dollars"]).hard == 0


TEXTS = st.text("0123456789.,()$%€−- million billionkab+/", max_size=25) | st.text(max_size=25)


@settings(max_examples=250, deadline=None)
@given(TEXTS, TEXTS)
def test_symmetric_and_in_range(left, right):
    one, other = STRICT(left, [right]), STRICT(right, [left])
    assert (one.hard, one.soft) == (other.hard, other.soft)
    assert 0 <= one.hard <= one.soft <= 1
    assert 0 <= PAPER(left, [right]).hard <= PAPER(left, [right]).soft <= 1
    assert STRICT(left, [left]).hard == 1 and PAPER(left, [left]).hard == float(bool(left.strip()))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_every_way_to_write_a_number(value):
    sign, size = ("-" if value < 0 else ""), abs(value)
    ways = [f"{value:f}", f"{sign}{size:,.3f}", f"{sign}${size:f}0", f"{value / 1000:f} thousand", f"{value:f}."]
    ways += [f"({size:,f})"] if value < 0 else []
    for way in ways:
        assert STRICT(way, [f"{value:f}"]).hard == 1, way


def test_long_hostile_texts_are_read_quickly():
    start = time.thread_time()
    for text in (
        "9" * 50_000,
        "(5" * 20_000,
        "(" * 50_000,
        "5 " * 20_000,
        "(5) " * 10_000,
        "a-" * 20_000,
        "5 (5) " * 9_000,
    ):
        assert STRICT(text, ["5 millions"]).hard == PAPER(text, ["5 millions"]).hard == 0
    assert time.thread_time() - start < 20
