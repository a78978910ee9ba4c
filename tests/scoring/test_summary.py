from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import DataError
from skillopt.scoring import compute_score, summarize_scores
from skillopt.types import RolloutResult


def test_mean_over_dicts_and_objects():
    results = [{"id": "a", "hard": 1, "soft": 0.5}, RolloutResult("b", hard=0.0, soft=0.5), SimpleNamespace(hard=0.5)]
    assert compute_score(results) == (0.5, pytest.approx(1 / 3))


def test_empty_is_0_0():
    assert compute_score([]) == (0.0, 0.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms())
def test_c062_the_order_of_results_does_not_matter(scores, rng: random.Random):
    results = [{"id": str(i), "hard": s, "soft": s} for i, s in enumerate(scores)]
    again = list(results)
    rng.shuffle(again)
    assert compute_score(results) == compute_score(again)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.5, 7])
def test_c064_a_score_that_is_no_number_in_range_names_the_item(bad):
    with pytest.raises(DataError, match="item q2: hard is"):
        compute_score([{"id": "q1", "hard": 1}, {"id": "q2", "hard": bad}, {"id": "q3", "hard": 0}])


def test_c067_fractions_are_kept():
    assert compute_score([{"id": "a", "hard": 0.75}, {"id": "b", "hard": 0.25}])[0] == 0.5


def test_c070_booleans_count_and_texts_are_refused():
    assert compute_score([{"id": "a", "hard": True, "soft": False}]) == (1.0, 0.0)
    for bad in ("1", "pass", [1]):
        with pytest.raises(DataError, match="item a: hard is"):
            compute_score([{"id": "a", "hard": bad}])


def test_c071_errors_and_missing_items_make_a_summary_incomplete():
    ids = [str(i) for i in range(10)]
    results = [RolloutResult(i, hard=1.0, soft=1.0) for i in ids[:7]] + [
        RolloutResult("7", status="error", error="503")
    ]
    summary = summarize_scores(results, expected_ids=ids)
    assert (summary.hard, summary.scored, summary.errors, summary.missing) == (1.0, 7, ("7",), ("8", "9"))
    assert not summary.complete
    assert summarize_scores(results[:7], ids[:7]).complete


def test_an_error_is_never_a_score():
    good, bad = {"id": "a", "hard": 1, "soft": 1}, {"id": "b", "hard": 0, "soft": 0, "status": "error"}
    assert compute_score([good, bad]) == (1.0, 1.0)
    with pytest.raises(DataError, match="all 1 results ended in an error"):
        compute_score([bad])
