"""The exact early stop: order, waves, verdicts that no rest can overturn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt.evaluation.early_stop import Bar, Means, Race, gains, mean_scores
from skillopt.evaluation.evaluate import Evaluation
from skillopt.evaluation.gate import evaluate_gate, is_better, select_gate_score
from skillopt.types import RolloutResult

SCORES = st.sampled_from([(0.0, 0.0), (0.0, 0.3), (0.5, 0.5), (1 / 3, 0.9), (1.0, 1.0)])


def measure(metric: str, bonus: float) -> object:
    return lambda means: select_gate_score(*means, metric) + bonus


def race(before: list[Means], *, metric: str = "hard", bonus: tuple[float, float] = (0, 0), **options: bool) -> Race:
    current, candidate = measure(metric, bonus[0]), measure(metric, bonus[1])
    ids = tuple(f"i{n}" for n in range(len(before)))
    named = dict(zip(ids, before, strict=True))
    return Race(Bar(named, current(mean_scores(before)), current, candidate, **options), ids)  # type: ignore[arg-type, operator]


def flat(scores: str) -> list[Means]:
    return [(float(c), float(c)) for c in scores]


def drive(contest: Race, after: list[Means], workers: int) -> dict[int, Means]:
    done: dict[int, Means] = {}
    while not contest.over(done):
        wave = contest.wave(done, workers)
        assert wave
        assert not set(wave) & set(done)
        done |= {at: after[at] for at in wave}
    return done


def test_failed_items_come_first_in_item_order() -> None:
    assert race(flat("10110")).order == (1, 4, 0, 2, 3)


def test_a_candidate_that_gains_nothing_stops_after_the_failed_items() -> None:
    before = flat("1" * 60 + "0" * 40)
    assert len(drive(race(before), before, workers=8)) == 40


def test_a_gain_has_to_be_lost_again_before_it_stops() -> None:
    before, after = flat("11111111" + "00"), flat("10111111" + "10")
    assert len(drive(race(before), after, workers=1)) == 4  # both failures, one still right, the loss


def test_a_perfect_current_skill_leaves_nothing_to_evaluate() -> None:
    assert drive(race(flat("111")), flat("111"), workers=2) == {}


def test_a_winner_is_evaluated_in_full_unless_the_caller_needs_no_score() -> None:
    before, after = flat("0000000001"), flat("1111111111")
    assert len(drive(race(before), after, workers=1)) == 10
    assert len(drive(race(before, two_sided=True), after, workers=1)) == 2


def test_waves_keep_all_workers_busy_and_are_as_large_as_no_stop_allows() -> None:
    contest = race(flat("1" * 60 + "0" * 40))
    assert len(contest.wave({}, 24)) == 40  # before that, nothing can be certain
    done = dict.fromkeys(range(60, 100), (0.0, 0.0)) | {60: (1.0, 1.0)}
    assert len(contest.wave(done, 24)) == 24
    assert contest.wave(done, 24)[0] == 0
    nearly = done | dict.fromkeys(range(36), (1.0, 1.0))
    assert len(contest.wave(nearly, 20)) == 24  # not 20 and then 4


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=14),
    st.sampled_from(["hard", "soft", "mixed"]),
    st.tuples(st.sampled_from([0.0, 0.01, 0.1]), st.sampled_from([0.0, 0.01, 0.1])),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_verdict_is_that_of_the_gate(
    pairs: list[tuple[Means, Means]], metric: str, bonus: tuple[float, float], workers: int, two_sided: bool
) -> None:
    before, after = [b for b, _ in pairs], [a for _, a in pairs]
    contest = race(before, metric=metric, bonus=bonus, two_sided=two_sided)
    done = drive(contest, after, workers)
    current, candidate = contest.bar.score, contest.bar.candidate(mean_scores(after))
    accepted = evaluate_gate("c", candidate, "o", current, "o", current, 0, 1).accepted
    assert (contest.verdict(done) == "won") is accepted
    assert contest.bound(done) >= candidate
    if accepted and not two_sided:
        assert len(done) == len(before)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(SCORES, SCORES, st.booleans()), min_size=1, max_size=10),
    st.sampled_from(["hard", "soft", "mixed"]),
    st.tuples(st.sampled_from([0.0, 0.05, 0.4]), st.sampled_from([0.0, 0.05, 0.4])),
    st.booleans(),
)
def test_errors_that_were_not_reached_would_not_have_changed_the_verdict(
    rows: list[tuple[Means, Means, bool]], metric: str, bonus: tuple[float, float], two_sided: bool
) -> None:
    before = [b for b, _, _ in rows]
    contest = race(before, metric=metric, bonus=bonus, two_sided=two_sided)
    done: dict[int, Means] = {}
    while not contest.over(done):
        for at in contest.wave(done, 1):
            if rows[at][2]:
                return  # an error was met: everything is evaluated
            done[at] = rows[at][1]
    kept = [at for at, (_, _, error) in enumerate(rows) if at in done or not error]
    current = contest.bar.current(mean_scores([before[at] for at in kept]))
    candidate = contest.bar.candidate(mean_scores([rows[at][1] for at in kept]))
    if kept:
        assert is_better(candidate, current) is (contest.verdict(done) == "won")


def test_a_bar_judges_what_both_sides_were_graded_on() -> None:
    bar = race(flat("1100")).bar
    assert bar.verdict([("i1", (1.0, 1.0)), ("i2", (1.0, 1.0))]) == "won"
    assert bar.verdict([("i0", (1.0, 1.0)), ("i1", (1.0, 1.0)), ("x", (1.0, 1.0))]) == "lost"


def evaluation(scores: str, **fields: object) -> Evaluation:
    results = tuple(
        RolloutResult(id=str(n), hard=float(c != "0"), status="error" if c == "e" else "ok")
        for n, c in enumerate(scores)
    )
    return Evaluation("h", "train", results, 0.0, 0.0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "better"),
    [("0011", "0111", True), ("0011", "0011", False), ("0e11", "01e1", False), ("0e1", "1e1", True)],
)
def test_gains_compares_common_items(before: str, after: str, better: bool) -> None:
    assert gains(evaluation(before), evaluation(after)) is better


def test_gains_believes_the_verdict_of_an_evaluation_that_stopped_early() -> None:
    assert gains(evaluation("0011"), evaluation("11", skipped=2, decided="won"))
    assert not gains(evaluation("0011"), evaluation("11", skipped=2, decided="lost"))


def test_the_order_of_items_cannot_change_a_mean() -> None:
    values = [(random.Random(n).random(), n / 10) for n in range(10)]
    assert mean_scores(values) == mean_scores(values[::-1])
