"""Budgets: hard caps that hold with many threads, and the depth that a token limit allows."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.budget import Budget, Meter, plan_depth
from skillopt_sleep.errors import BudgetSpent


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_call_counts_what_it_used_and_its_estimate_when_nobody_says() -> None:
    meter = Meter()
    with meter.call("attempt", 500) as charge:
        charge.tokens = 120
    with meter.call("judge", 30):
        pass
    assert meter.to_dict()["kinds"] == {"attempt": {"calls": 1, "tokens": 120}, "judge": {"calls": 1, "tokens": 30}}
    assert (meter.calls, meter.tokens) == (2, 150)


def test_a_failed_call_counts_as_a_call_without_the_estimate() -> None:
    meter = Meter()
    with pytest.raises(OSError, match="gone"), meter.call("attempt", 500):
        raise OSError("gone")
    assert (meter.calls, meter.tokens) == (1, 0)


@pytest.mark.parametrize(
    ("caps", "limit"), [({"max_calls": 2}, "calls"), ({"max_tokens": 25}, "tokens"), ({"max_minutes": 1}, "minutes")]
)
def test_each_cap_refuses_the_call_that_would_pass_it(caps: dict[str, int], limit: str) -> None:
    clock = Clock()
    meter = Meter(**caps, clock=clock)  # type: ignore[arg-type]
    for _ in range(2):
        with meter.call("attempt", 10):
            pass
    clock.now += 60
    with pytest.raises(BudgetSpent) as caught, meter.call("attempt", 10):
        pass
    assert caught.value.limit == limit
    assert f"max_{limit}_per_night" in str(caught.value)
    assert meter.calls == 2


@pytest.mark.parametrize("cap", ["max_calls", "max_tokens", "max_minutes"])
def test_a_cap_of_zero_admits_nothing(cap: str) -> None:
    meter = Meter(**{cap: 0})  # type: ignore[arg-type]
    with pytest.raises(BudgetSpent):
        meter.check()
    with pytest.raises(BudgetSpent), meter.call("attempt"):
        pass


def test_calls_in_flight_hold_their_estimate_so_that_threads_cannot_pass_the_cap_together() -> None:
    meter = Meter(max_tokens=1000)
    inside = threading.Barrier(11)
    leave = threading.Event()

    def call() -> None:
        with meter.call("attempt", 100):
            inside.wait(60)
            leave.wait(60)

    threads = [threading.Thread(target=call) for _ in range(10)]
    for thread in threads:
        thread.start()
    inside.wait(60)
    with pytest.raises(BudgetSpent):
        meter.check()
    leave.set()
    for thread in threads:
        thread.join()
    assert (meter.calls, meter.tokens) == (10, 1000)


def test_what_a_kind_of_call_has_used_is_held_for_the_next_of_its_kind() -> None:
    meter = Meter(max_tokens=1_000)
    with meter.call("attempt", 10) as charge:
        charge.tokens = 600
    with pytest.raises(BudgetSpent, match="may take 600"), meter.call("attempt", 10):
        raise AssertionError("not admitted")
    with meter.call("judge", 10):
        pass
    assert meter.tokens == 610


def test_a_resumed_night_goes_on_counting_where_it_stopped() -> None:
    clock = Clock()
    meter = Meter(clock=clock)
    with meter.call("attempt", 70):
        clock.now += 120
    again = Meter(max_calls=2, clock=clock)
    again.restore(meter.to_dict())
    assert (again.calls, again.tokens, again.minutes) == (1, 70, 2.0)


def test_budget_tells_what_is_left() -> None:
    clock = Clock()
    budget = Budget(100, 10, clock=clock)
    budget.spend(25)
    clock.now += 360
    assert budget.minutes_elapsed == 6
    assert budget.remaining_fraction == pytest.approx(0.4)
    assert not budget.exhausted
    budget.spend(75)
    assert (budget.exhausted, budget.remaining_fraction) == (True, 0.0)
    assert budget.status() == "100 tokens of 100, 6.0 minutes of 10"
    free = Budget()
    assert (free.exhausted, free.remaining_fraction) == (False, 1.0)
    assert Budget(0).exhausted


@pytest.mark.parametrize(
    ("tokens", "tasks", "depth"),
    [(None, 10, (2, 1)), (0, 10, (1, 1)), (45_000, 10, (1, 1)), (90_000, 10, (2, 1)), (120_000, 10, (2, 3)),
     (10_000_000, 10, (4, 5)), (100_000, 0, (4, 5))],
)  # fmt: skip
def test_depth_follows_the_formula(tokens: int | None, tasks: int, depth: tuple[int, int]) -> None:
    assert plan_depth(Budget(tokens), tasks) == depth


@given(st.integers(0, 10**9), st.integers(-5, 10**4))
def test_depth_stays_within_its_bounds(tokens: int, tasks: int) -> None:
    nights, k = plan_depth(Budget(tokens), tasks)
    assert 1 <= nights <= 4
    assert 1 <= k <= 5
