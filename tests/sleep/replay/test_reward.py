"""Means leave out what has no score; the reward weighs accuracy, thrift and speed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.replay import aggregate_cost, aggregate_scores, metric_score, multi_objective_reward, summarize
from skillopt_sleep.types import ReplayResult, TaskRecord

unit = st.floats(0, 1)
results = st.lists(
    st.builds(
        ReplayResult,
        id=st.just("t"),
        hard=unit,
        soft=unit,
        tokens=st.integers(0, 5000),
        latency_ms=st.floats(0, 1e5),
        error=st.sampled_from(["", "", "failed"]),
    ),
    max_size=8,
)


@given(results)
def test_errors_enter_no_mean_and_are_counted(rows: list[ReplayResult]) -> None:
    scored = [row for row in rows if row.scored]
    assert aggregate_scores(rows) == aggregate_scores(scored)
    assert aggregate_cost(rows) == aggregate_cost(scored)
    scores = summarize(rows)
    assert (scores.n, scores.n_errors) == (len(scored), len(rows) - len(scored))
    assert scores.complete is (len(scored) == len(rows))
    pairs = [(TaskRecord("t", "/p", "x"), row) for row in rows]
    assert aggregate_scores(pairs) == aggregate_scores(rows)


@given(results, st.floats(0, 5), st.floats(0, 5), st.floats(0, 5))
def test_the_reward_lies_within_bounds(
    rows: list[ReplayResult], accuracy: float, tokens: float, latency: float
) -> None:
    reward = multi_objective_reward(rows, w_acc=accuracy, w_tokens=tokens, w_latency=latency)
    assert math.isfinite(reward)
    assert -1e-9 <= reward <= 1 + 1e-9


def test_worked_reward() -> None:
    rows = [ReplayResult("a", 1, 1, tokens=1000, latency_ms=3000), ReplayResult("b", 0, 0, tokens=0, latency_ms=0)]
    assert aggregate_cost(rows) == (500.0, 1500.0)
    assert multi_objective_reward(rows) == 0.5
    assert multi_objective_reward(rows, w_acc=1, w_tokens=1, w_latency=2) == pytest.approx((0.5 + 0.75 + 2 * 0.9) / 4)
    assert multi_objective_reward(rows, w_acc=0) == 0.5
    assert multi_objective_reward([]) == 0
    assert multi_objective_reward([ReplayResult("a", error="x")], w_tokens=1) == 0


def test_the_score_that_the_gate_compares() -> None:
    row = ReplayResult("a", 0.0, 0.5)
    assert [metric_score(row, metric) for metric in ("hard", "soft", "mixed")] == [0.0, 0.5, 0.25]
    assert metric_score(row, "mixed", 7) == 0.5
    with pytest.raises(ValueError, match="expected hard"):
        metric_score(row, "x")
