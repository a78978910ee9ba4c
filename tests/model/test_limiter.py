"""Concurrency and rates of one endpoint, with a clock of our own where time matters."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from skillopt.errors import DeadlineError, InterruptedRunError
from skillopt.model.limiter import SUCCESSES_TO_GROW, EndpointLimiter, _Bucket
from skillopt.utils.cancel import CancelToken


def use(limiter: EndpointLimiter, *, limited: bool = False, wait: float | None = None) -> None:
    with limiter.slot(CancelToken()) as slot:
        if limited:
            limiter.throttled(slot, wait)
        else:
            slot.used(1)


def crowd(limiter: EndpointLimiter) -> list[bool]:
    """As many requests at once as are allowed, all refused."""
    with contextlib.ExitStack() as stack:
        slots = [stack.enter_context(limiter.slot(CancelToken())) for _ in range(limiter.concurrency)]
        return [limiter.throttled(slot, None) for slot in slots]


def test_a_429_halves_and_successes_add_one() -> None:
    limiter = EndpointLimiter(16)
    seen = []
    for _ in range(6):
        better = crowd(limiter)
        seen.append((limiter.concurrency, all(better)))
    assert seen == [(8, True), (4, True), (2, True), (1, True), (1, False), (1, False)]
    for _ in range(SUCCESSES_TO_GROW):
        use(limiter)
    assert limiter.concurrency == 2


def test_requests_sent_before_a_decrease_do_not_decrease_again() -> None:
    limiter = EndpointLimiter(16)
    with contextlib.ExitStack() as stack:
        slots = [stack.enter_context(limiter.slot(CancelToken())) for _ in range(10)]
        for slot in slots:
            assert limiter.throttled(slot, None)
    assert limiter.concurrency == 5


def test_a_request_refused_alone_has_no_better_chance() -> None:
    limiter = EndpointLimiter(16)
    with limiter.slot(CancelToken()) as slot:
        assert not limiter.throttled(slot, None)
    assert limiter.concurrency == 16


def test_it_never_grows_above_what_is_allowed() -> None:
    limiter = EndpointLimiter(3)
    for _ in range(5 * SUCCESSES_TO_GROW):
        use(limiter)
    assert limiter.concurrency == 3


def test_no_more_run_than_allowed_and_all_get_their_turn() -> None:
    limiter = EndpointLimiter(3)
    running, most, order = 0, 0, []
    lock = threading.Lock()

    def work(number: int) -> None:
        nonlocal running, most
        with limiter.slot(CancelToken(timeout=10)) as slot:
            with lock:
                running += 1
                most = max(most, running)
                order.append(number)
            time.sleep(0.002)
            with lock:
                running -= 1
            slot.used(1)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 3 and sorted(order) == list(range(40))


def test_waiting_ends_with_the_token() -> None:
    limiter = EndpointLimiter(1)
    with limiter.slot(CancelToken()):
        with pytest.raises(DeadlineError), limiter.slot(CancelToken(timeout=0.05)):
            pass
        token = CancelToken()
        threading.Timer(0.05, token.cancel).start()
        with pytest.raises(InterruptedRunError), limiter.slot(token):
            pass
    use(limiter)  # those who gave up do not block the line


def test_an_asked_pause_holds_everybody() -> None:
    limiter = EndpointLimiter(4)
    use(limiter, limited=True, wait=0.08)
    started = time.monotonic()
    use(limiter)
    assert time.monotonic() - started >= 0.07


def test_bucket_gives_a_tenth_of_a_minute_at_once_then_its_rate() -> None:
    bucket = _Bucket(60, now=0.0)
    for _ in range(6):
        assert bucket.wait(0.0, 1) == 0
        bucket.take(1)
    assert bucket.wait(0.0, 1) == pytest.approx(1.0)
    assert bucket.wait(1.0, 1) == 0
    assert _Bucket(None, 0.0).wait(0.0, 1e9) == 0


def test_bucket_lets_a_large_call_pass_and_makes_later_ones_wait() -> None:
    bucket = _Bucket(600, now=0.0)
    assert bucket.wait(0.0, 5000) == 0
    bucket.take(5000)
    assert bucket.wait(0.0, 1) == pytest.approx((5000 - 60 + 1) / 10)


def test_requests_a_minute() -> None:
    limiter = EndpointLimiter(8, requests_per_minute=1200)  # 120 at once, then 20 a second
    started = time.monotonic()
    for _ in range(122):
        use(limiter)
    assert time.monotonic() - started >= 0.08


def test_tokens_are_settled_by_what_was_used() -> None:
    now = 0.0
    limiter = EndpointLimiter(8, tokens_per_minute=6000, clock=lambda: now)  # 600 at once, 100 a second
    with limiter.slot(CancelToken(), 10) as slot:
        slot.used(700)
    with pytest.raises(DeadlineError), limiter.slot(CancelToken(timeout=0.02), 10):
        pass
    now = 2.0
    with limiter.slot(CancelToken(timeout=1), 10):
        pass
