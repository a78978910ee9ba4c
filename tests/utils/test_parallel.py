"""Bounded parallel work with results in the order of the items."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt.errors import InterruptedRunError
from skillopt.utils.cancel import CancelToken
from skillopt.utils.parallel import map_ordered


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 0.003), max_size=12), st.integers(1, 5))
def test_results_come_in_the_order_of_the_items(delays: list[float], workers: int) -> None:
    def slow(delay: float) -> float:
        time.sleep(delay)
        return delay

    assert map_ordered(slow, delays, workers=workers) == delays


def test_an_exception_is_the_result_of_its_item() -> None:
    def invert(number: int) -> float:
        return 1 / number

    one, broken, half = map_ordered(invert, [1, 0, 2], workers=2)
    assert (one, half) == (1.0, 0.5)
    assert isinstance(broken, ZeroDivisionError)


def test_no_more_than_the_given_number_run_at_once() -> None:
    lock, three, running, most = threading.Lock(), threading.Barrier(3), 0, 0

    def work(number: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if number < 3:
            three.wait(60)
        time.sleep(0.002)
        with lock:
            running -= 1

    map_ordered(work, range(20), workers=3)
    assert most == 3


def test_nothing_new_is_started_after_the_caller_gives_up() -> None:
    started: list[int] = []
    given_up = threading.Event()

    def work(number: int) -> None:
        started.append(number)
        if number > 0:
            given_up.wait(60)

    def on_done(index: int, outcome: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        map_ordered(work, range(100), workers=2, on_done=on_done)
    given_up.set()
    time.sleep(0.05)
    assert len(started) <= 3


def test_a_stop_ends_the_wait_for_items_that_hang() -> None:
    stop, release = CancelToken(), threading.Event()
    threading.Timer(0.02, stop.cancel).start()
    with pytest.raises(InterruptedRunError):
        map_ordered(lambda _: release.wait(30), range(4), workers=2, stop=stop)
    release.set()


def test_a_pool_without_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        map_ordered(str, [1], workers=0)


def test_code_that_ends_its_thread_does_not_hold_up_the_rest() -> None:
    def leave(number: int) -> int:
        if number == 1:
            raise SystemExit(3)
        return number

    zero, left, two = map_ordered(leave, [0, 1, 2], workers=1, stop=CancelToken(timeout=60))
    assert (zero, two) == (0, 2)
    assert isinstance(left, RuntimeError)
    assert "SystemExit" in str(left)
