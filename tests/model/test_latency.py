"""Durations in bounded memory."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.model.latency import Latency


def of(durations: list[float]) -> Latency:
    latency = Latency()
    for seconds in durations:
        latency = latency.plus(seconds)
    return latency


def test_nothing_is_unknown() -> None:
    assert Latency().summary() == {"mean_s": None, "p50_s": None, "p95_s": None, "max_s": None}


@given(st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=50), st.sampled_from([0.5, 0.95, 1.0]))
def test_quantiles_are_near_and_the_rest_is_exact(durations: list[float], share: float) -> None:
    latency = of(durations)
    exact = sorted(durations)[max(0, -(-int(share * 100) * len(durations) // 100) - 1)]
    assert latency.quantile(share) == pytest.approx(exact, rel=0.1)
    assert latency.worst == max(durations)
    assert latency.mean == pytest.approx(sum(durations) / len(durations))


def test_it_stays_small_and_survives_json() -> None:
    latency = of([0.0, 1e9, *(n * 0.37 for n in range(2000))])
    assert len(latency.counts) <= 101
    again = Latency.from_dict(json.loads(json.dumps(latency.to_dict())))
    assert again == latency
    assert Latency.from_dict({}) == Latency()
