"""Concurrency and rates of one endpoint, with a clock of our own where time matters."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import pytest

from skillopt.errors import DeadlineError, InterruptedRunError
from skillopt.model.limiter import EndpointLimiter, Slot, _Bucket
from skillopt.model.retry import RetryPolicy
from skillopt.utils.cancel import CancelToken


def use(limiter: EndpointLimiter, *, limited: bool = False, wait: float | None = None) -> None:
    with limiter.slot(CancelToken()) as slot:
        if limited:
            limiter.throttled(slot, wait)
        else:
            slot.used(1)


def enter(limiter: EndpointLimiter, number: int) -> list[tuple[Slot, contextlib.ExitStack]]:
    """So many requests at once, each with what ends it."""
    out = []
    for _ in range(number):
        stack = contextlib.ExitStack()
        out.append((stack.enter_context(limiter.slot(CancelToken())), stack))
    return out


def refuse(limiter: EndpointLimiter, running: list[tuple[Slot, contextlib.ExitStack]], wait: float) -> list[bool]:
    """End requests with a refusal; for each whether it has a better chance now."""
    out = []
    for slot, stack in running:
        with stack:
            out.append(limiter.throttled(slot, wait))
    return out


def test_when_all_are_refused_half_as_many_go_next() -> None:
    limiter = EndpointLimiter(16)
    seen = []
    for _ in range(6):
        better = refuse(limiter, enter(limiter, limiter.concurrency), 0.0)
        seen.append((limiter.concurrency, better[-1]))
    assert seen == [(8, False), (4, False), (2, False), (1, False), (1, False), (1, False)]


def test_requests_refused_among_others_take_their_places_with_them() -> None:
    limiter = EndpointLimiter(16)
    running = enter(limiter, 16)
    assert refuse(limiter, running[10:], 60.0) == [True] * 6
    assert limiter.concurrency == 10
    for slot, stack in running[:10]:
        with stack:
            slot.used(1)
    use(limiter)  # nobody waits for the 60 s that were asked of requests refused for want of room


def test_a_request_refused_alone_has_no_better_chance() -> None:
    limiter = EndpointLimiter(16)
    with limiter.slot(CancelToken()) as slot:
        assert not limiter.throttled(slot, None)
    assert limiter.concurrency == 16


def test_a_pause_that_nobody_asked_for_grows() -> None:
    now = 0.0
    limiter = EndpointLimiter(1, policy=RetryPolicy(first_wait=1.0, longest_wait=8.0), clock=lambda: now)
    pauses = []
    for _ in range(40):
        with limiter.slot(CancelToken()) as slot:
            limiter.throttled(slot, None)
        pauses.append(limiter._blocked_until - now)
        now = max(now, limiter._blocked_until)
    assert max(pauses[:1]) <= 1.0 and max(pauses[10:]) > 4.0 and max(pauses) <= 8.0


def test_a_refused_request_keeps_its_place() -> None:
    limiter = EndpointLimiter(2)
    order: list[str] = []
    first = limiter.place()
    with contextlib.ExitStack() as stack:
        blocker = stack.enter_context(limiter.slot(CancelToken()))
        with limiter.slot(CancelToken(), place=first) as slot:
            waiting = [threading.Thread(target=_go, args=(limiter, order, None, str(n))) for n in range(3)]
            for thread in waiting:
                thread.start()
                _until(lambda: len(limiter._line) > waiting.index(thread))  # noqa: B023 - called before the next turn
            assert limiter.throttled(slot, None)
        again = threading.Thread(target=_go, args=(limiter, order, first, "refused"))
        again.start()
        _until(lambda: len(limiter._line) == 4)
        blocker.used(1)
    for thread in (*waiting, again):
        thread.join()
    assert order == ["refused", "0", "1", "2"]


def _go(limiter: EndpointLimiter, order: list[str], place: int | None, name: str) -> None:
    with limiter.slot(CancelToken(timeout=60), place=place) as slot:
        order.append(name)
        slot.used(1)


def _until(met: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not met() and time.monotonic() < ends:
        time.sleep(0.001)


def test_all_who_wait_are_let_in_when_the_session_ends() -> None:
    limiter = EndpointLimiter(1)
    inside: list[Slot] = []

    def enter() -> None:
        with limiter.slot(CancelToken(timeout=60)) as slot:
            inside.append(slot)

    with limiter.slot(CancelToken()):
        threads = [threading.Thread(target=enter) for _ in range(5)]
        for thread in threads:
            thread.start()
        limiter.release()
        for thread in threads:
            thread.join()
        assert len(inside) == 5


def test_no_more_run_than_allowed_and_all_get_their_turn() -> None:
    limiter = EndpointLimiter(3)
    running, most, order = 0, 0, []
    lock, three = threading.Lock(), threading.Barrier(3)

    def work(number: int) -> None:
        nonlocal running, most
        with limiter.slot(CancelToken(timeout=60)) as slot:
            with lock:
                running += 1
                most = max(most, running)
                order.append(number)
                first = len(order) <= 3
            if first:
                three.wait(60)
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
    started = time.monotonic()
    use(limiter, limited=True, wait=0.08)
    use(limiter)
    assert time.monotonic() - started >= 0.08


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
    started = time.monotonic()
    limiter = EndpointLimiter(8, requests_per_minute=1200)  # 120 at once, then 20 a second
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
    with limiter.slot(CancelToken(timeout=60), 10):
        pass
