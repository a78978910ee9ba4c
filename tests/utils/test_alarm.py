"""Many deadlines, one thread."""

from __future__ import annotations

import contextlib
import threading

import pytest
from patience import until

from skillopt.utils.alarm import Alarm


def test_a_function_runs_when_its_time_comes() -> None:
    called = threading.Event()
    with Alarm().at(0.01, called.set):
        assert called.wait(60)


def test_what_is_left_in_time_is_not_called() -> None:
    alarm, called, later = Alarm(), threading.Event(), threading.Event()
    with alarm.at(0.7, later.set):
        with alarm.at(0.5, called.set):
            pass
        assert later.wait(60)
    assert not called.is_set()


def test_an_earlier_deadline_that_comes_later_is_kept() -> None:
    alarm, called = Alarm(), threading.Event()
    with alarm.at(60, lambda: None), alarm.at(0.01, called.set):
        assert called.wait(60)


def test_many_deadlines_take_one_thread_that_ends_with_them() -> None:
    alarm, before = Alarm(), threading.active_count()
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(alarm.at(60, lambda: None))
        assert threading.active_count() <= before + 1
    assert until(lambda: threading.active_count() <= before)


def test_an_alarm_is_used_again_after_its_thread_has_ended() -> None:
    alarm = Alarm()
    for _ in range(20):
        called = threading.Event()
        with alarm.at(0.001, called.set):
            assert called.wait(60)


def test_a_function_that_fails_is_reported_and_other_deadlines_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))
    alarm, called = Alarm(), threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    with alarm.at(0.01, fail), alarm.at(0.02, called.set):
        assert called.wait(60)
    assert reported == [ValueError]
