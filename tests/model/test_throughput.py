"""Many workers and a server with little room, beside as many steady connections as it has room for, in one run."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from skillopt.model import Limits, Session
from skillopt.testing import LoopbackServer

CALLS, ROOM, LATENCY = 500, 10, 0.05
SLOWER = 0.1


def measure(workers: int, latency: float, **asked: Any) -> tuple[float, float]:
    """Seconds that the calls took, and the share of requests that were refused."""
    with LoopbackServer("ok", latency=latency, max_in_flight=ROOM, **asked) as server:
        with Session({"target": server.role()}, limits=Limits(max_concurrency=64)) as session:
            begun = time.monotonic()
            with ThreadPoolExecutor(workers) as pool:
                texts = list(pool.map(lambda n: session.ask("target", "", str(n), stage="s").text, range(CALLS)))
            seconds = time.monotonic() - begun
        sent = len(server.requests)
        assert sorted({request.last_user for request in server.requests}) == sorted(map(str, range(CALLS)))
    assert texts == ["ok"] * CALLS
    return seconds, (sent - CALLS) / sent


def check(latency: float, **asked: Any) -> None:
    """One of three comparisons is enough: the load of a machine can change in the middle of one."""
    seen = []
    for _ in range(3):
        steady, none = measure(ROOM, latency)
        seconds, refused = measure(64, latency, **asked)
        assert none == 0
        seen.append((steady / seconds >= 0.8, refused < 0.25, steady, seconds, refused))
        if all(seen[-1][:2]):
            return
    pytest.fail(f"(fast enough, few refused, seconds steady, seconds, share refused): {seen}")


def test_sixty_four_workers_get_what_ten_steady_connections_get() -> None:  # C151
    check(LATENCY, retry_after=1)


@pytest.mark.slow
@pytest.mark.parametrize("latency", [LATENCY, SLOWER])
@pytest.mark.parametrize("asked", [{"retry_after": 1}, {"retry_after_ms": 100}, {}], ids=str)
def test_so_they_do_whatever_the_server_asks_for(asked: dict[str, int], latency: float) -> None:
    check(latency, **asked)
