"""ANLS: the worked examples of DocVQA in both modes, symmetry, and bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt.envs.answers import AnswerTag
from skillopt.errors import ConfigError, DataError
from skillopt.scoring import get_scorer
from skillopt.scoring.anls import Anls

STRICT, PAPER = get_scorer("anls"), get_scorer("anls", mode="paper")
LONG = "x" * 1000

# response, golds, soft, hard of the published formula, hard of ours
EXAMPLES = [
    ("<answer>Paris</answer>", ["paris"], 1, 1, 1),
    ("<answer>Pariss</answer>", ["paris"], 5 / 6, 0, 0),
    ("<answer>12/3/1999</answer>", ["12/03/1999"], 0.9, 0, 0),
    ("<answer>abc</answer>", ["abx"], 2 / 3, 0, 0),
    ("<answer>abcd</answer>", ["abxy"], 0, 0, 0),
    ("<answer>$1,000</answer>", ["1000"], 2 / 3, 0, 0),
    (f"<answer>{LONG}y</answer>", [LONG], 1 - 1 / 1001, 1, 0),  # a wrong letter is a wrong letter
]


@pytest.mark.parametrize(("response", "golds", "soft", "paper_hard", "strict_hard"), EXAMPLES)
def test_worked_examples(response, golds, soft, paper_hard, strict_hard):
    paper = PAPER(AnswerTag(which="outer")(response), golds)
    strict = STRICT(AnswerTag()(response), golds)
    assert (paper.soft, paper.hard) == (pytest.approx(soft, abs=1e-6), paper_hard)
    assert (strict.soft, strict.hard) == (pytest.approx(soft, abs=1e-6), strict_hard)


def test_no_marks_for_an_empty_answer_to_an_item_without_references():
    assert (PAPER("", []).soft, PAPER("", []).hard) == (1, 1)
    assert (STRICT("", []).soft, STRICT("", []).hard) == (0, 0)
    for scorer in (PAPER, STRICT):
        with pytest.raises(DataError, match="there is no reference answer"):
            scorer.check_references([], "item q1")


def test_text_between_two_closing_tags_is_part_of_the_published_answer_only():
    response = "<answer>a</answer> junk </answer>"
    assert PAPER(AnswerTag(which="outer")(response), ["a"]).soft == 0
    assert STRICT(AnswerTag()(response), ["a"]).hard == 1


@pytest.mark.parametrize(("answer", "gold", "soft"), [("", "x", 0), ("x", "", 0), (" ", "", 1), ("A  b\n", "a B", 1)])
def test_blank_and_spaced_texts(answer, gold, soft):
    assert PAPER(answer, [gold]).soft == STRICT(answer, [gold]).soft == soft


def test_golds_are_never_rewritten():
    assert STRICT("1,234", ["1,234"]).hard == 1 and STRICT("(1, 234)", ["1,234"]).hard == 0
    assert STRICT("1.5", ["1.50"]).hard == 0


def test_the_best_reference_counts_and_near_misses_are_explained():
    score = STRICT("Pariss", ["London", "Paris"])
    assert score.soft == pytest.approx(5 / 6) and score.feedback == "expected 'Paris', got 'Pariss' (ANLS 0.83)."


def test_threshold():
    assert get_scorer("anls", threshold=0.6)("abcd", ["abxy"]).soft == 0.5
    for bad in (0, 1.5):
        with pytest.raises(ConfigError, match="threshold"):
            get_scorer("anls", threshold=bad)


@settings(max_examples=150, deadline=None)
@given(st.text("abc ", max_size=12), st.text("abc ", max_size=12))
def test_symmetric_and_equal_to_the_formula(left, right):
    assert STRICT(left, [right]).soft == STRICT(right, [left]).soft == PAPER(left, [right]).soft
    a, b = " ".join(left.split()), " ".join(right.split())
    if a and b:
        share = _distance(a, b) / max(len(a), len(b))
        assert PAPER(left, [right]).soft == pytest.approx(0 if share >= 0.5 else 1 - share)


def _distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def test_long_texts_take_no_time():
    start = time.thread_time()
    assert Anls()("ab" * 2000, ["ba" * 2000]).soft > 0.99
    assert Anls()("é" * 10_000, ["ü" * 10_000]).soft == 0
    assert Anls()("x" * 10_000_000, ["paris"]).soft == 0
    assert Anls()("xy" * 40_000, ["x" * 79_999 + "y"]).soft == 0
    assert time.thread_time() - start < 10
