"""Comparison with a reference: as the mock does it, and as real answers are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.judges import exact_score, keyword_soft_score, score_exact
from skillopt_sleep.judges.exact import matches
from skillopt_sleep.types import TaskRecord


def task(reference: str, **judge: str) -> TaskRecord:
    return TaskRecord("t", "/p", "what?", reference_kind="exact", reference=reference, judge=dict(judge))


def test_the_full_normalised_reference_has_to_occur() -> None:
    assert exact_score("arXiv:1706.03762", "see ARXIV 1706-03762!") == 1
    assert exact_score("arXiv:1706.03762", "approximately arXiv:1706.037 (format not applied)") == 0
    assert exact_score("", "anything") == 0
    assert exact_score("no", "I do not know") == 1


def test_keywords_are_distinct_words_of_three_letters() -> None:
    assert keyword_soft_score("alpha alpha beta of", "ALPHABET") == 0.5
    assert keyword_soft_score("of", "of") == 0


@pytest.mark.parametrize(
    ("reference", "response", "same"),
    [
        ("no", "I do not know", False),
        ("no", "yes, there is no other way, I think", False),
        ("no", "No, it does not.", True),
        ("yes", "The answer is yes.", True),
        ("cat", "concatenate", False),
        ("cat", "A cat.", True),
        ("3", "3.5", False),
        ("3", "13", False),
        ("3", "it is 3.", True),
        ("1,000", "about 1000 items", True),
        ("3.5", "3.50", True),
        ("5", "-5", False),
        ("1706.03762", "arXiv:1706.03762v5", False),
        ("1706.03762", "arXiv:1706.03762", True),
        ("42", "It is 41. <answer>42</answer>", True),
        ("42", "It is 42. <answer>41</answer>", False),
        ("New York", "in new   york!", True),
        ("東京", "答えは <answer>東京</answer>", True),
        ("", "x", False),
    ],
)
def test_answers_have_to_state_the_reference(reference: str, response: str, same: bool) -> None:
    assert matches(reference, response) is same
    hard, soft, why = score_exact(task(reference), response)
    assert hard == float(same)
    assert hard <= soft <= 1
    assert bool(why) is not same


def test_a_task_names_its_comparison() -> None:
    assert score_exact(task("a, b", compare="set"), "B;\na")[0] == 1
    assert score_exact(task("a, b", compare="set"), "a, b, c")[0] == 0
    assert score_exact(task("cat", compare="equal"), "a cat")[0] == 0
    assert score_exact(task("0042", compare="number"), "42")[0] == 1
    with pytest.raises(ValueError, match="expected one of auto"):
        score_exact(task("x", compare="fuzzy"), "x")


@given(st.text(max_size=30), st.text(max_size=60))
def test_scores_lie_within_bounds(reference: str, response: str) -> None:
    hard, soft, _ = score_exact(task(reference), response)
    assert hard in (0.0, 1.0)
    assert hard <= soft <= 1
    assert 0 <= keyword_soft_score(reference, response) <= 1


@given(st.text(alphabet="ab c1.", max_size=12), st.text(alphabet="ab c1.", max_size=20))
def test_whole_words_never_give_more_than_the_loose_score(reference: str, response: str) -> None:
    if matches(reference, response, "span"):
        assert exact_score(reference, response) == 1


@pytest.mark.parametrize(
    ("answer", "stated"), [("No way to know. Yes", ""), ("no, yes", ""), ("Yes, it is so.", "yes")]
)
def test_an_answer_that_says_both_states_neither(answer: str, stated: str) -> None:
    assert [word for word in ("yes", "no") if matches(word, answer)] == [word for word in (stated,) if word]
