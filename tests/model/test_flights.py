"""Single flight."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillopt.errors import DeadlineError, InterruptedRunError
from skillopt.model.flights import Flights
from skillopt.utils.cancel import CancelToken


def test_a_leader_without_time_hands_over_to_the_next_in_line() -> None:
    flights: Flights[str] = Flights()
    joined = threading.Event()

    def too_late() -> str:
        joined.wait(60)
        raise DeadlineError("mine is over")

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(flights.once, "k", CancelToken(), too_late)
        while not flights._running:
            pass
        follower = pool.submit(flights.once, "k", CancelToken(), lambda: "done")
        joined.set()
        assert isinstance(leader.exception(), DeadlineError)
        assert follower.result() == ("done", True)
    assert flights._running == {}


def test_who_waits_can_be_stopped() -> None:
    flights: Flights[str] = Flights()
    go, token = threading.Event(), CancelToken()

    def slow() -> str:
        go.wait(60)
        return "late"

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(flights.once, "k", CancelToken(), slow)
        while not flights._running:
            pass
        follower = pool.submit(flights.once, "k", token, slow)
        token.cancel()
        assert isinstance(follower.exception(60), InterruptedRunError)
        with pytest.raises(DeadlineError):
            flights.once("k", CancelToken(timeout=0.01), slow)
        go.set()
        assert leader.result() == ("late", True)
