"""Counters, prices and budgets."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import BudgetExceededError, ConfigError
from skillopt.model.budget import Budget, Spent
from skillopt.model.cost import Price, read_prices
from skillopt.model.usage import UsageKey, UsageTracker, cost_of
from skillopt.store import Store
from skillopt.testing import LoopbackServer, status
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
    assert tracker.by_stage()["rollout"].calls == 2
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


def test_what_is_known_of_a_cost_is_a_lower_bound() -> None:
    tracker = UsageTracker({"m": Price(1.0, 10.0, source="a list")})
    for usage in (SOME, Usage(calls=1, known=False)):
        tracker.add_tokens(KEY, usage)
        tracker.add_success(KEY, 0.5)
    (row,) = tracker.details()
    assert (row["cost_usd"], row["unknown_calls"], row["known"]) == (None, 1, False)
    assert row["cost_at_least_usd"] == pytest.approx(200e-6)
    assert row["price"] == {"input": 1.0, "output": 10.0, "cached": None, "source": "a list"}
    assert tracker.cost() is None and tracker.total_cost().usd == pytest.approx(200e-6)
    unpriced = UsageTracker()
    unpriced.add_tokens(KEY, SOME)
    assert (unpriced.details()[0]["cost_usd"], unpriced.details()[0]["price"]) == (None, None)


def test_an_error_stands_until_the_next_success() -> None:  # C149
    tracker = UsageTracker()
    tracker.add_failure(KEY, 0.1, "TransientError: broken")
    assert tracker.details()[0]["last_error"] == "TransientError: broken"
    tracker.add_success(KEY, 60.0)  # was on its way already when the other one failed
    assert tracker.details()[0]["last_error"] == "TransientError: broken"
    tracker.add_success(KEY, 0.0)
    (row,) = tracker.details()
    assert (row["last_error"], row["failures"], row["calls"]) == ("", 1, 2)


def test_counters_go_on_in_another_process(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "store.sqlite")) as store:
        first = UsageTracker({"m": Price(1.0, 10.0, source="a list")}, store)
        first.add_tokens(KEY, SOME)
        first.add_retry(KEY)
        first.add_success(KEY, 0.5)
        first.add_failure(KEY, 2.0, "TransientError: broken")
        first.add_cached(UsageKey("optimizer", "local_chat", "x", "merge", free=True))
    with closing(Store(tmp_path / "store.sqlite")) as store:
        second = UsageTracker(ledger=store)
        assert second.details() == first.details()
        assert second.rows() == first.rows()
        assert second.summary() == first.summary()
        second.add_success(KEY, 1.0)
        assert second.details()[-1]["latency"]["max_s"] == 1.0
        dearer = UsageTracker({"m": Price(2.0, 20.0)}, store)
        assert dearer.cost() == pytest.approx(400e-6)  # a price that is set now holds for all


_CALLS = """
import os, sys
from pathlib import Path
from skillopt.model.session import Session
from skillopt.model.usage import UsageTracker
from skillopt.store import Store
from skillopt.testing import role

store = Store(Path(sys.argv[2]))
session = Session({"target": role(sys.argv[1])}, usage=UsageTracker(ledger=store))
for number in range(100):
    session.ask("target", "", f"{number}?", stage="rollout")
    if number == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_its_counts(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with LoopbackServer("ok", faults=[status(500, {"retry-after-ms": "1"})]) as server:
        for last in (3, 6):
            command = [sys.executable, "-c", _CALLS, server.url, str(path), str(last)]
            assert subprocess.run(command, check=False).returncode == -9
        with closing(Store(path)) as store:
            (row,) = UsageTracker(ledger=store).details()
        assert len(server.requests) == 12
    assert (row["calls"], row["retries"], row["failures"], row["total_tokens"]) == (11, 1, 0, 165)
    assert row["latency"]["p50_s"] is not None


def test_another_attempt_is_not_a_call_and_needs_tokens_money_and_time() -> None:
    budget = Budget(max_calls=1, max_tokens=20)
    budget.start_call()
    assert budget.allows_attempt()
    budget.add(Usage(calls=1, prompt_tokens=20, completion_tokens=0), None)
    assert not budget.allows_attempt()
    assert not Budget(max_seconds=0).allows_attempt()
