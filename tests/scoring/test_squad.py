"""SearchQA: the worked examples in both modes, the row's three scores, and the time they take."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.answers import AnswerTag
from skillopt.scoring import get_scorer
from skillopt.scoring.squad import SquadScores, squad_scores

EXAMPLES = [
    ("I think <answer>The Beatles</answer>", ["beatles"], 1, 1, 1),
    ("<answer>Abraham Lincoln</answer>", ["Lincoln"], 0, 2 / 3, 1),
    ("<answer>big big cat</answer>", ["big cat"], 0, 0.8, 1),
    ("<answer>a</answer>", ["A"], 1, 1, 1),
    ("<answer>New-York</answer>", ["New York"], 0, 0, 0),
    ("<answer>U.S.A.</answer>", ["usa"], 1, 1, 1),
    ("<answer>“Paris”</answer>", ["Paris"], 0, 0, 1),
    ("<answer>café</answer>", ["cafe"], 0, 0, 0),
    ("<answer>unterminated", ["unterminated"], 0, 0, 1),
    ("<answer>one</answer> or <answer>two</answer>", ["two"], 1, 1, 1),
]


@pytest.mark.parametrize("mode", ["strict", "paper"])
@pytest.mark.parametrize(("response", "golds", "em", "f1", "sub_em"), EXAMPLES)
def test_worked_examples(response, golds, em, f1, sub_em, mode):
    answer = AnswerTag()(response)
    assert squad_scores(answer, golds, mode) == SquadScores(em, pytest.approx(f1), sub_em)
    score = get_scorer("squad", mode=mode)(answer, golds)
    assert (score.hard, score.soft) == (em, pytest.approx(f1))


def test_an_empty_answer_is_part_of_every_reference_only_in_the_paper():
    assert squad_scores(AnswerTag()(""), ["x"], "paper") == SquadScores(0, 0, 1)
    assert squad_scores(AnswerTag()(""), ["x"], "strict") == SquadScores(0, 0, 0)


def test_one_text_is_one_reference_and_not_its_letters():
    assert squad_scores("Paris", "Paris", "paper") == SquadScores(0, 0, 1)
    assert squad_scores("Paris", "Paris", "strict") == SquadScores(1, 1, 1)
    assert get_scorer("squad", mode="paper")("Paris", "Paris").hard == 0
    assert get_scorer("squad")("Paris", "Paris").hard == 1


def test_answers_of_which_the_script_leaves_nothing():
    assert squad_scores("the", ["A"], "paper") == SquadScores(1, 1, 1)  # both are nothing
    assert squad_scores("the", ["A"], "strict") == SquadScores(0, 0, 0)
    assert squad_scores("!!!", ["Paris"], "paper").sub_em == 1
    assert squad_scores("!!!", ["Paris"], "strict").sub_em == 0


@pytest.mark.parametrize("mode", ["strict", "paper"])
def test_no_references_no_marks(mode):
    assert squad_scores("x", [], mode) == SquadScores(0, 0, 0)
    assert get_scorer("squad", mode=mode)("x", []).hard == 0


def test_blank_references_match_blank_answers_only():
    assert squad_scores("", [""], "strict") == SquadScores(1, 1, 1)
    assert squad_scores("x", ["", "x y"], "strict") == SquadScores(0, pytest.approx(2 / 3), 1)


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=3), st.sampled_from(["strict", "paper"]))
def test_scores_stay_in_range_and_gold_scores_1(answer, golds, mode):
    scores = squad_scores(answer, golds, mode)
    assert scores.em in (0, 1) and 0 <= scores.f1 <= 1 and scores.sub_em in (0, 1) and scores.f1 >= scores.em
    assert squad_scores(answer, [*golds, answer], mode) == SquadScores(1, 1, 1)
    assert get_scorer("squad", mode=mode)(answer, [*golds, answer]).hard == 1


def test_1400_answers_take_far_less_than_two_seconds():
    scorer = get_scorer("squad")
    rows = [(f"the answer number {i} is a Big-City", [f"answer {i}", "big city", "A city"]) for i in range(1400)]
    start = time.thread_time()
    for answer, golds in rows:
        scorer(answer, golds)
        squad_scores(answer, golds)
    assert time.thread_time() - start < 5
