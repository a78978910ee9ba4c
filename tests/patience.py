"""Time for what tests wait for: long where it is not reached when all is well, and more of it on a slow machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SOON = 60.0


def until(met: Callable[[], bool]) -> bool:
    """Wait until `met`, for a long time at most; what it says then."""
    ends = time.monotonic() + SOON
    while not met() and time.monotonic() < ends:
        time.sleep(0.005)
    return met()


def given_time(attempt: Callable[[float], T], begun: Callable[[T], bool], seconds: float = 1.0) -> T:
    """What `attempt` gives for a time limit, tried again with a longer one while not even what it waits for has begun.

    For limits that are reached in any case: a short one costs little, and a slow machine is no defect. A limit that is
    not kept is one.
    """
    while True:
        started = time.monotonic()
        made = attempt(seconds)
        assert time.monotonic() - started < seconds + SOON, "it went on after its time"
        seconds *= 4
        if begun(made) or seconds > SOON:
            return made
