"""Which failures are tried again, and how long is waited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt import errors
from skillopt.model.retry import CrowdedError, RetryPolicy, run
from skillopt.utils.cancel import CancelToken

QUICK = RetryPolicy(retries=3, first_wait=0.001, longest_wait=0.002, retry_after_ceiling=10)


def attempts(*outcomes: Exception | str):
    made: list[int] = []

    def attempt(number: int) -> str:
        made.append(number)
        outcome = outcomes[number - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return attempt, made


def test_retryable_errors_are_tried_again_in_order() -> None:
    waits: list[float] = []
    attempt, made = attempts(errors.TransientError("a"), errors.RateLimitError("b"), errors.EmptyReplyError("c"), "ok")
    assert run(attempt, QUICK, CancelToken(), lambda error, number, wait: waits.append(wait)) == "ok"
    assert made == [1, 2, 3, 4] and len(waits) == 3


@pytest.mark.parametrize(
    "error",
    [
        errors.AuthError("x"),
        errors.ModelSetupError("x"),
        errors.BadRequestError("x"),
        errors.TruncatedError("x"),
        errors.DeadlineError("x"),
    ],
)
def test_others_are_not(error: errors.ModelError) -> None:
    attempt, made = attempts(error)
    with pytest.raises(type(error)):
        run(attempt, QUICK, CancelToken(), lambda *_: None)
    assert made == [1]


def test_nothing_is_waited_after_the_last_attempt() -> None:
    waits: list[float] = []
    attempt, made = attempts(*[errors.TransientError(str(n)) for n in range(9)])
    with pytest.raises(errors.TransientError, match="3"):
        run(attempt, QUICK, CancelToken(), lambda error, number, wait: waits.append(wait))
    assert len(made) == 4 and len(waits) == 3


def test_who_waits_for_room_waits_in_line_and_loses_no_retry() -> None:
    waits: list[float] = []
    attempt, made = attempts(*[CrowdedError("full", retry_after=5.0) for _ in range(20)], "ok")
    assert run(attempt, QUICK, CancelToken(timeout=4.0), lambda error, number, wait: waits.append(wait)) == "ok"
    assert len(made) == 21 and set(waits) == {0.0}


def test_waits_for_room_do_not_make_later_waits_longer() -> None:
    waits: list[float] = []
    crowd = [CrowdedError("full") for _ in range(20)]
    attempt, _ = attempts(*crowd, errors.TransientError("broken"), "ok")
    policy = RetryPolicy(first_wait=0.001, longest_wait=3600.0)
    assert run(attempt, policy, CancelToken(timeout=60.0), lambda error, number, wait: waits.append(wait)) == "ok"
    assert 0 <= waits[-1] <= 0.001


def test_no_room_for_longer_than_the_ceiling_ends_it_too() -> None:
    attempt, made = attempts(CrowdedError("full", retry_after=3600.0))
    with pytest.raises(errors.RateLimitedUntilError):
        run(attempt, QUICK, CancelToken(), lambda *_: None)
    assert made == [1]


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    attempt, made = attempts(errors.RateLimitError("slow", retry_after=5.0))
    with pytest.raises(errors.DeadlineError, match="slow"):
        run(attempt, QUICK, CancelToken(timeout=1.0), lambda *_: None)
    assert made == [1]


@given(st.integers(1, 60), st.floats(0.001, 5), st.floats(0.001, 100))
def test_waits_stay_between_nothing_and_the_longest(attempt: int, first: float, longest: float) -> None:
    policy = RetryPolicy(first_wait=first, longest_wait=longest)
    assert 0 <= policy.wait_after(errors.TransientError("x"), attempt) <= min(longest, first * 2 ** (attempt - 1))


@given(st.floats(0, 300), st.integers(1, 20))
def test_a_wait_asked_for_is_kept_to(asked: float, attempt: int) -> None:
    wait = RetryPolicy().wait_after(errors.RateLimitError("x", asked), attempt)
    assert asked <= wait <= asked * 1.1 + 1e-9


@pytest.mark.parametrize("asked", [1e9, 1e300])
def test_an_absurd_wait_is_refused_like_any_wait_above_the_ceiling(asked: float) -> None:
    attempt, made = attempts(errors.RateLimitError("slow down", asked))
    with pytest.raises(errors.RateLimitedUntilError):
        run(attempt, QUICK, CancelToken(), lambda *_: None)
    assert made == [1]
