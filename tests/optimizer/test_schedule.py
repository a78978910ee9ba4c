"""The edit budget as a function of the step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import ConfigError
from skillopt.optimizer import schedule
from skillopt.optimizer.schedule import NO_LIMIT, build_scheduler, edit_budget_at


@pytest.mark.parametrize(
    ("name", "maximum", "minimum", "total", "expected"),
    [
        ("linear", 10, 2, 4, [8, 6, 4, 2]),
        ("linear", 10, 2, 10, [9, 8, 8, 7, 6, 5, 4, 4, 3, 2]),
        ("linear", 8, 2, 8, [7, 6, 6, 5, 4, 4, 3, 2]),
        ("cosine", 10, 2, 4, [9, 6, 3, 2]),
        ("cosine", 10, 2, 10, [10, 9, 8, 7, 6, 5, 4, 3, 2, 2]),
        ("cosine", 8, 2, 8, [8, 7, 6, 5, 4, 3, 2, 2]),
        ("cosine", 4, 2, 4, [4, 3, 2, 2]),
        ("constant", 4, 1, 3, [4, 4, 4]),
    ],
)
def test_known_sequences(name: str, maximum: int, minimum: int, total: int, expected: list[int]) -> None:
    assert [edit_budget_at(step, total, name, maximum, minimum) for step in range(1, total + 1)] == expected
    scheduler = build_scheduler(name, maximum, minimum, total)
    assert [scheduler.step() for _ in range(total)] == expected


def test_cosine_from_hundred_to_zero_starts_at_85() -> None:
    assert edit_budget_at(1, 4, "cosine", 100, 0) == 85


@given(st.sampled_from(["constant", "linear", "cosine"]), st.integers(0, 50), st.integers(0, 50), st.integers(0, 60))
def test_never_rises_and_stays_between_minimum_and_maximum(name: str, low: int, more: int, total: int) -> None:
    values = [edit_budget_at(step, total, name, low + more, low) for step in range(1, total + 5)]
    assert all(type(value) is int and low <= value <= low + more for value in values)
    assert values == sorted(values, reverse=True)
    if total > 1 and name != "constant":
        assert values[total - 1 :] == [low] * 5


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_special_cases(name: str) -> None:
    assert edit_budget_at(1, 0, name, 6, 2) == edit_budget_at(1, 1, name, 6, 2) == 6
    assert {edit_budget_at(step, 5, name, 3, 3) for step in range(1, 6)} == {3}
    assert {edit_budget_at(step, 5, name, 2, 4) for step in range(1, 6)} == {4}


def test_resume_gives_the_same_value() -> None:
    straight = build_scheduler("cosine", 10, 2, 10)
    for _ in range(3):
        straight.step()
    resumed = build_scheduler("cosine", 10, 2, 10)
    resumed.load_state_dict(straight.state_dict())
    assert straight.state_dict() == {"current_step": 3}
    assert resumed.step() == straight.step() == 7
    resumed.load_state_dict({})
    assert resumed.current_step == 0


def test_names() -> None:
    with pytest.raises(ConfigError, match="Unknown scheduler mode 'cosin'"):
        build_scheduler("cosin")
    with pytest.raises(ConfigError, match="Unknown scheduler mode"):
        edit_budget_at(1, 2, "cosin", 2, 1)
    assert isinstance(build_scheduler(), schedule.ConstantScheduler)
    assert build_scheduler("autonomous").step() == NO_LIMIT == schedule.AutonomousScheduler.NO_LIMIT == 999
    with pytest.raises(TypeError):
        schedule.LRScheduler(4)  # type: ignore[abstract]
