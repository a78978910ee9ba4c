"""Counters, prices and budgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import BudgetExceededError, ConfigError
from skillopt.model.budget import Budget, Spent
from skillopt.model.usage import Price, UsageKey, UsageTracker, cost_of, read_prices
from skillopt.types import Usage

KEY = UsageKey("target", "openai_compatible", "m", "rollout")
SOME = Usage(calls=1, prompt_tokens=100, completion_tokens=10, cached_tokens=40)


def test_summary_has_sorted_stages_and_a_total() -> None:
    tracker = UsageTracker()
    for stage in ("rollout", "analyst", "rollout"):
        key = UsageKey("target", "b", "m", stage)
        tracker.add_tokens(key, SOME)
        tracker.add_success(key, 0.5)
    assert list(tracker.summary()) == ["analyst", "rollout", "_total"]
    assert tracker.summary()["_total"] == {
        "calls": 3,
        "prompt_tokens": 300,
        "completion_tokens": 30,
        "total_tokens": 330,
    }
    assert tracker.by_role_stage()["target"]["rollout"].calls == 2
    assert tracker.by_stage()["analyst"].prompt_tokens == 100
    tracker.reset()
    assert tracker.summary() == {"_total": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 99), st.integers(0, 99)), max_size=20))
def test_stages_add_up_to_the_total(rows: list[tuple[str, int, int]]) -> None:
    tracker = UsageTracker()
    for stage, prompt, completion in rows:
        key = UsageKey("target", "b", "m", stage)
        tracker.add_tokens(key, Usage(1, prompt, completion))
        tracker.add_success(key, 0.0)
    summary = tracker.summary()
    total = summary.pop("_total")
    for name in total:
        assert total[name] == sum(stage[name] for stage in summary.values())
    assert total["calls"] == len(rows)


def test_prices() -> None:
    assert Price(1.0, 10.0).of(SOME) == pytest.approx(200e-6)
    assert Price(1.0, 10.0, cached=0.1).of(SOME) == pytest.approx((60 + 4 + 100) * 1e-6)
    prices = read_prices({"m": {"input": 1.0, "output": 10.0}, "openai_compatible/m": Price(2.0, 20.0)})
    assert cost_of(KEY, SOME, prices) == pytest.approx(400e-6)
    assert cost_of(KEY, SOME, {}) is None
    assert cost_of(KEY, Usage(calls=1, known=False), prices) is None
    assert cost_of(KEY, Usage(), {}) == 0.0
    assert cost_of(UsageKey("t", "local_chat", "x", "s", free=True), SOME, {}) == 0.0


def test_budget_goes_on_where_an_earlier_process_stopped() -> None:
    budget = Budget(max_calls=3, used=Usage(calls=2, prompt_tokens=5))
    budget.start_call()
    with pytest.raises(BudgetExceededError, match=r"budget\.max_calls = 3 is used up \(3\)"):
        budget.start_call()
    assert budget.spent.calls == 3 and budget.spent.tokens == 5
    again = Budget(max_calls=4, used=Spent.from_dict(budget.spent.to_dict()))
    again.start_call()
    with pytest.raises(BudgetExceededError):
        again.check()


def test_budget_of_tokens_money_and_time() -> None:
    now = 0.0
    budget = Budget(max_tokens=100, clock=lambda: now)
    budget.add(Usage(calls=1, prompt_tokens=99), None)
    budget.check()
    budget.add(Usage(calls=1, prompt_tokens=1), None)
    with pytest.raises(BudgetExceededError, match="max_tokens"):
        budget.check()
    money = Budget(max_cost_usd=0.5)
    money.add(SOME, 0.5)
    with pytest.raises(BudgetExceededError, match="max_cost_usd"):
        money.check()
    with pytest.raises(ConfigError, match=r"model\.prices"):
        Budget(max_cost_usd=1.0).add(SOME, None)
    timed = Budget(max_seconds=10, used=Spent(seconds=50), clock=lambda: now)
    timed.check()
    now = 10.0
    with pytest.raises(BudgetExceededError, match="max_seconds"):
        timed.check()
    assert timed.spent.seconds == 60.0
    Budget().check()
