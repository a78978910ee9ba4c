"""Paired differences: interval, exact sign-flip test, error budget."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.evaluation import stats
from skillopt.evaluation.stats import (
    Comparison,
    ErrorBudget,
    false_accept_rates,
    interval,
    on_grid,
    paired,
    sign_flip_test,
)

GRID = st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.2, 0.5, 1.0]), max_size=12)
ANY = st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), max_size=12)


def brute_force(differences: list[float]) -> float:
    observed = math.fsum(differences)
    signs = itertools.product((1, -1), repeat=len(differences))
    sums = [math.fsum(s * d for s, d in zip(choice, differences, strict=True)) for choice in signs]
    return sum(total >= observed - 1e-9 for total in sums) / len(sums)


@given(GRID)
def test_p_is_that_of_brute_force_on_a_grid(differences: list[float]) -> None:
    assert sign_flip_test(differences) == (brute_force(differences), True)


@given(ANY)
def test_p_is_that_of_brute_force_off_a_grid(differences: list[float]) -> None:
    p_value, exact = sign_flip_test(differences)
    assert exact
    assert p_value == pytest.approx(brute_force(differences), abs=1e-12)


@pytest.mark.parametrize("number", [1, 2, 7, 40, 300])
def test_all_gains_are_as_rare_as_all_heads(number: int) -> None:
    assert sign_flip_test([1.0] * number) == (2.0**-number, True)
    assert sign_flip_test([-1.0] * number) == (1.0, True)


@given(GRID)
def test_turning_all_signs_swaps_the_tails(differences: list[float]) -> None:
    p_value, _ = sign_flip_test(differences)
    other, _ = sign_flip_test([-d for d in differences])
    assert p_value + other >= 1.0 - 1e-12  # both hold the observed sum itself


@given(GRID, st.integers(0, 5), st.randoms())
def test_ties_and_order_do_not_matter(differences: list[float], ties: int, rng: random.Random) -> None:
    longer = differences + [0.0] * ties
    rng.shuffle(longer)
    assert sign_flip_test(longer) == sign_flip_test(differences)


def test_nothing_to_compare_shows_nothing() -> None:
    assert paired([]) == Comparison(0, 0.0, -1.0, 1.0, 1.0, 0, 0)
    assert paired([0.0] * 9).p_value == 1.0


def test_many_differences_of_any_kind_are_drawn_and_say_so() -> None:
    rng = random.Random(3)
    differences = [rng.gauss(0.05, 0.2) for _ in range(60)]
    p_value, exact = sign_flip_test(differences)
    assert not exact
    assert sign_flip_test(differences) == (p_value, False)
    sigma = math.sqrt(math.fsum(d * d for d in differences))
    assert p_value == pytest.approx(0.5 * math.erfc(math.fsum(differences) / sigma / math.sqrt(2)), abs=0.02)


def test_p_from_random_signs_is_never_zero() -> None:
    rng = random.Random(3)
    p_value, exact = sign_flip_test([rng.uniform(0.5, 1.0) for _ in range(60)])
    assert not exact
    assert 0 < p_value < 1e-4


def test_means_of_draws_lie_on_a_grid() -> None:
    values = [1 / 3, 2 / 3, 0.25, 1.0]
    assert on_grid(values) == [4, 8, 3, 12]
    assert on_grid([math.sqrt(0.5)]) is None


@given(GRID)
def test_the_interval_holds_the_mean(differences: list[float]) -> None:
    low, high = interval(differences)
    mean = math.fsum(differences) / len(differences) if differences else 0.0
    assert -1 <= low <= mean <= high <= 1
    assert low < high


def test_the_interval_is_that_of_agresti_and_min() -> None:  # 100 items, 15 gained, 5 lost
    differences = [1.0] * 15 + [-1.0] * 5 + [0.0] * 80
    b, c, n = 15.5, 5.5, 102
    half = 1.959963984540054 * math.sqrt((b + c) - (b - c) ** 2 / n) / n
    assert interval(differences) == pytest.approx(((b - c) / n - half, (b - c) / n + half))


def test_the_interval_covers_the_truth() -> None:
    rng = random.Random(11)
    hits = 0
    for _ in range(2000):
        differences = rng.choices([1.0, -1.0, 0.0], weights=(0.15, 0.05, 0.8), k=50)
        low, high = interval(differences)
        hits += low <= 0.1 <= high
    assert 0.94 <= hits / 2000 <= 0.99


def test_a_difference_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        paired([0.5, math.nan])


def test_the_record_names_what_users_look_for() -> None:
    assert paired([1.0, 1.0, -1.0, 0.0], gained=2, lost=1).to_dict() == {
        "n": 4,
        "mean_difference": 0.25,
        "ci_low": pytest.approx(-0.472899),
        "ci_high": pytest.approx(0.806232),
        "p_value": 0.5,
        "gained": 2,
        "lost": 1,
        "exact": True,
    }


@given(GRID, st.sampled_from([0.01, 0.05, 0.2, 0.5]))
def test_false_accepts_are_counted_over_all_signs(differences: list[float], share: float) -> None:
    differences = differences[:7]
    flipped = [
        [s * d for s, d in zip(signs, differences, strict=True)]
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    sums = [math.fsum(values) for values in flipped]
    above = [total > 1e-9 for total in sums]
    passed = [ok and sign_flip_test(values)[0] <= share for ok, values in zip(above, flipped, strict=True)]
    strict, paired_rate = false_accept_rates(differences, share)
    assert strict == sum(above) / len(sums)
    assert paired_rate == sum(passed) / len(sums)


def test_false_accepts_of_many_differences_of_any_kind_are_estimated() -> None:
    rng = random.Random(5)
    strict, paired_rate = false_accept_rates([rng.gauss(0.0, 0.2) for _ in range(60)], 0.01)
    assert strict == pytest.approx(0.5, abs=0.01)
    assert paired_rate == pytest.approx(0.01, abs=1e-4)


def test_a_target_that_repeats_itself_gives_no_false_accept() -> None:
    assert false_accept_rates([0.0] * 5, 0.05) == (0.0, 0.0)


@given(st.integers(1, 40), st.lists(st.integers(0, 60), max_size=80))
def test_no_plan_spends_more_than_alpha(planned: int, changes: list[int]) -> None:
    budget = ErrorBudget(0.05)
    for change in changes:  # the plan itself may change from look to look
        budget = budget.after(budget.share(planned + change))
    assert budget.spent <= 0.05 + 1e-12


def test_looks_as_planned_take_equal_shares_and_later_ones_nothing() -> None:
    budget, shares = ErrorBudget(0.05), []
    for _ in range(12):
        shares.append(budget.share(10))
        budget = budget.after(shares[-1])
    assert shares[:10] == pytest.approx([0.005] * 10)
    assert shares[10:] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_exact_counts_stay_quick_and_bounded() -> None:
    assert stats.on_grid([1.0] * 500) is not None
    assert stats.on_grid([1 - n / 9999 for n in range(1, 900)]) is None
