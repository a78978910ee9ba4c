"""How many requests at once: against servers that are simulated in a time of their own."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.model.crowd import PATIENCE, START, STRIKES, Crowd

Serves = Callable[[float, int, int], bool]
"""Whether a request is served, by the time in seconds, the requests that are being served, and its number."""


@dataclass
class Seen:
    seconds: float
    sent: int
    refused: int
    limits: list[tuple[float, int]]

    @property
    def refused_share(self) -> float:
        return self.refused / self.sent


def simulate(
    serves: Serves,
    *,
    calls: int = 500,
    workers: int = 64,
    latency: float = 1.0,
    pause: float = 1.0,
    most: int = 64,
    start: int = 0,
    spread: float = 0.06,
) -> Seen:
    """Calls to a server that refuses at once, asking for `pause`, and answers after `latency` or some `spread` more."""
    crowd, now, blocked, left, refused, sent = Crowd(most), 0.0, 0.0, calls, 0, 0
    crowd.limit = start or crowd.limit
    running: list[tuple[float, int, bool]] = []  # when it ends, its number, whether it is served
    limits = [(0.0, crowd.limit)]
    while left or running:
        while left and len(running) < min(crowd.limit, workers) and now >= blocked:
            sent, left = sent + 1, left - 1
            served = serves(now, sum(good for *_, good in running), sent)
            heapq.heappush(
                running, (now + (latency * (1 + spread * (sent % 7) / 6) if served else 0.001), crowd.sent(), served)
            )
        if not running:
            now = blocked
            continue
        now, number, served = heapq.heappop(running)
        waiting = left > 0 and min(left, workers - len(running)) > 0
        if served:
            crowd.served(number, wanted=waiting)
        else:
            left, refused = left + 1, refused + 1
            if not crowd.refused(number, len(running)):
                blocked = max(blocked, now + pause)
        limits.append((now, crowd.limit))
        assert 1 <= crowd.limit <= most
        assert sent < 50 * calls, "it does not end"
    return Seen(now, sent, refused, limits)


@pytest.mark.parametrize("room", [1, 2, 5, 10, 30, 50])
def test_a_server_with_little_room_is_used_to_the_full_and_seldom_refuses(room: int) -> None:
    seen = simulate(lambda _now, running, _n: running < room)
    steady = 500 / min(room, 64)
    assert seen.seconds < 1.2 * steady + 2
    assert seen.refused_share < 0.12


def test_a_server_without_a_limit_is_soon_used_to_the_full() -> None:
    seen = simulate(lambda *_: True)
    assert seen.refused == 0 and seen.limits[-1][1] == 64
    assert min(now for now, limit in seen.limits if limit == 64) < 1.2


def test_starting_with_less_costs_little() -> None:
    """500 calls of one to two seconds."""
    fresh, full = (simulate(lambda *_: True, spread=1.0, start=start).seconds for start in (0, 64))
    assert full / fresh >= 0.9


def test_room_that_is_freed_later_is_found() -> None:
    seen = simulate(lambda now, running, _n: running < (8 if now < 60 else 40), calls=6000)
    assert max(limit for _, limit in seen.limits[-200:]) >= 36
    assert seen.refused_share < 0.05


def test_room_that_is_taken_away_is_given_up() -> None:
    seen = simulate(lambda now, running, _n: running < (40 if now < 20 else 6), calls=1200)
    assert seen.limits[-1][1] <= 7 and seen.refused_share < 0.12


def test_a_server_that_notices_an_end_late_is_given_less() -> None:
    """Its counter still holds a request whose answer has arrived already, one time in three."""
    seen = simulate(lambda _now, running, n: running + (n % 3 == 0) < 10)
    assert seen.seconds < 1.3 * 500 / 10 and seen.refused_share < 0.2


def test_a_period_in_which_everything_is_refused_is_waited_out() -> None:
    seen = simulate(lambda now, _running, _n: not 3 < now < 20, calls=1000, pause=5.0)
    assert seen.refused < 64 + 32 + 16 + 8 + 10
    assert seen.limits[-1][1] >= 16


def test_a_quota_a_minute_is_kept_to_with_pauses_for_all() -> None:
    """300 a minute, counted by the minute; a refusal asks for 30 s, whatever is left of the minute."""
    served: dict[int, int] = {}

    def serves(now: float, _running: int, _n: int) -> bool:
        minute = int(now // 60)
        served[minute] = served.get(minute, 0) + 1
        return served[minute] <= 300

    seen = simulate(serves, calls=1500, pause=30.0)
    assert seen.seconds < 5 * 60 and seen.refused_share < 0.17


@pytest.mark.parametrize("share", [50, 100])
def test_refusals_at_random_do_not_strangle_it(share: int) -> None:
    seen = simulate(lambda _now, _running, n: n % share != 0, calls=2000)
    assert min(limit for _, limit in seen.limits) >= min(START, 0.6 * share)


def test_what_is_refused_takes_its_place_with_it() -> None:
    crowd = Crowd(64)
    numbers = [crowd.sent() for _ in range(START)]
    running = len(numbers)
    for number in numbers[10:]:
        running -= 1
        assert crowd.refused(number, running)
    assert crowd.limit == 10


def test_one_refused_alone_has_no_better_chance() -> None:
    crowd = Crowd(16)
    assert not crowd.refused(crowd.sent(), 0)
    assert crowd.limit == 16


def test_after_some_in_a_row_nobody_is_served_and_half_as_many_go() -> None:
    crowd = Crowd(64)
    for _ in range(STRIKES):
        assert crowd.refused(crowd.sent(), 20)
    assert not crowd.refused(crowd.sent(), 20)
    assert crowd.limit == max(20, START // 2)


def test_it_grows_by_one_after_long_and_after_longer_when_that_failed() -> None:
    crowd = Crowd(64)
    crowd.refused(crowd.sent(), 4)
    waits = []
    for _ in range(3):
        successes = 0
        while crowd.limit == 4:
            crowd.served(crowd.sent(), wanted=True)
            successes += 1
        assert crowd.limit == 5
        waits.append(successes // 4 - 1)
        crowd.refused(crowd.sent(), 4)
    assert waits == [PATIENCE, 2 * PATIENCE, 4 * PATIENCE]


def test_it_grows_only_when_somebody_waits_and_never_above_what_is_allowed() -> None:
    crowd = Crowd(40)
    for _ in range(1000):
        crowd.served(crowd.sent(), wanted=False)
    assert crowd.limit == START
    for _ in range(1000):
        crowd.served(crowd.sent(), wanted=True)
    assert crowd.limit == 40


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 64), st.booleans()), max_size=300), st.integers(1, 100))
def test_the_limit_stays_between_one_and_what_is_allowed(events: list[tuple[bool, int, bool]], most: int) -> None:
    crowd = Crowd(most)
    for served, others, wanted in events:
        if served:
            crowd.served(crowd.sent(), wanted=wanted)
        else:
            crowd.refused(crowd.sent(), others)
        assert 1 <= crowd.limit <= most
