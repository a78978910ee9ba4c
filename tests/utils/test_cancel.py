"""Deadlines and cancellation."""

from __future__ import annotations

import threading

import pytest

from skillopt.errors import DeadlineError, InterruptedRunError
from skillopt.utils.cancel import CancelToken


def test_a_token_without_a_limit_goes_on() -> None:
    token = CancelToken()
    assert token.remaining() is None
    assert not token.cancelled
    token.raise_if_cancelled()
    token.wait(0.001)


def test_a_child_ends_with_the_nearest_deadline() -> None:
    parent = CancelToken(timeout=0.0)
    child = CancelToken(timeout=60, parent=parent)
    assert child.remaining() == 0.0
    with pytest.raises(DeadlineError):
        child.wait(60)


def test_cancelling_a_parent_wakes_a_child_that_waits() -> None:
    parent = CancelToken()
    child = CancelToken(timeout=60, parent=parent)
    threading.Timer(0.02, parent.cancel).start()
    with pytest.raises(InterruptedRunError):
        child.wait(60)
    assert child.cancelled
    assert not CancelToken(timeout=60).cancelled


def test_a_token_cancelled_before_the_wait_does_not_sleep() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(InterruptedRunError):
        token.wait(60)


@pytest.mark.parametrize("how", ["deadline", "cancel"])
def test_a_registered_callback_runs_when_the_token_ends(how: str) -> None:
    token = CancelToken(timeout=0.02 if how == "deadline" else 60)
    called = threading.Event()
    with token.on_cancel(called.set):
        if how == "cancel":
            token.cancel()
        assert called.wait(60)


def test_a_callback_is_forgotten_after_its_block() -> None:
    token = CancelToken()
    called = threading.Event()
    with token.on_cancel(called.set):
        pass
    token.cancel()
    assert not called.is_set()


def test_what_is_registered_after_the_end_is_called_too() -> None:
    parent = CancelToken()
    parent.cancel()
    called = threading.Event()
    with CancelToken(parent=parent).on_cancel(called.set):
        assert called.wait(60)


def test_a_callback_that_fails_does_not_keep_others_from_being_called() -> None:
    token = CancelToken()
    called = threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    with token.on_cancel(fail), token.on_cancel(called.set), pytest.raises(ValueError, match="broken"):
        token.cancel()
    assert called.is_set()


def test_a_signal_handler_may_cancel_while_its_own_thread_registers() -> None:
    token = CancelToken()
    done = threading.Event()

    def interrupted_while_registering() -> None:
        with token._lock:
            token.cancel()
        done.set()

    threading.Thread(target=interrupted_while_registering, daemon=True).start()
    assert done.wait(60)
