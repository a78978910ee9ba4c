"""Rules that hold for every scorer and any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt.scoring import SCORERS, Score, get_scorer

OPTIONS = {"json_field": {"field": "answer"}}
TEXTS = st.text(max_size=60) | st.text(alphabet="AB(). 0123456789,-$%^x\"{}:'aeKm\n", max_size=40)
BLANKS = st.text(alphabet=" \t\n\r\u00a0", max_size=5)
PLAIN = [name for name in SCORERS if name not in ("regex", "json_field")]


def scorer(name):
    return get_scorer(name, **OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", SCORERS)
@settings(max_examples=120, deadline=None)
@given(answer=TEXTS, references=st.lists(TEXTS, max_size=3))
def test_any_text_gives_a_score_between_0_and_1(name, answer, references):
    score = scorer(name)(answer, references)
    assert isinstance(score, Score)
    assert 0.0 <= score.hard <= 1.0 and 0.0 <= score.soft <= 1.0
    assert score.feedback and "\n" not in score.feedback and len(score.feedback) < 500


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=150, deadline=None)
@given(gold=TEXTS, others=st.lists(TEXTS, max_size=2))
def test_the_gold_answer_scores_1(name, gold, others):
    score = scorer(name)(gold, [*others, gold])
    assert (score.hard, score.soft) == (1.0, 1.0)


@pytest.mark.parametrize("name", SCORERS)
@given(answer=BLANKS, references=st.lists(TEXTS, max_size=3))
@settings(max_examples=40, deadline=None)
def test_a_blank_answer_is_right_only_for_a_blank_reference(name, answer, references):
    expected = 1.0 if any(not reference.strip() for reference in references) else 0.0
    assert scorer(name)(answer, references).hard == expected


@pytest.mark.parametrize("name", SCORERS)
@given(answer=TEXTS.filter(lambda text: text.strip()), blank=BLANKS)
@settings(max_examples=30, deadline=None)
def test_a_blank_reference_matches_no_other_answer(name, answer, blank):
    if name != "json_field":
        assert scorer(name)(answer, [blank]).hard == 0.0


@pytest.mark.parametrize("name", SCORERS)
def test_no_reference_gives_no_marks(name):
    score = scorer(name)('{"answer": "anything"}', [])
    assert (score.hard, score.soft) == (0.0, 0.0)
    assert score.feedback.endswith("the item has no reference answer.")


def test_the_best_reference_counts():
    score = get_scorer("f1")("big red cat", ["dog", "big cat", "a red thing"])
    assert score.soft == pytest.approx(0.8)
    assert "'big cat'" in score.feedback


def test_one_reference_may_be_given_as_a_text():
    assert get_scorer("exact")("Paris", "paris").hard == 1.0
