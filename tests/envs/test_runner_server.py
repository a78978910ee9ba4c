"""Items run against a real server on loopback, through the real model session."""

from __future__ import annotations

import time
from typing import Any

import pytest

from skillopt.envs.runner import run_items
from skillopt.errors import AuthError
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.testing import LoopbackServer, every, hang, reset
from skillopt.types import Item

FAST = Limits(retries=2, retry_first_wait_seconds=0.01, retry_longest_wait_seconds=0.02)


def answer(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"]).upper()


def test_broken_connections_change_no_score(bench: Any, items: list[Item]) -> None:
    with (
        LoopbackServer(answer, faults=every(3, reset())) as server,
        Session({"target": server.role()}, limits=FAST) as s,
    ):
        results = run_items(bench.env, items, "s", bench.context(s))
    assert [result.hard for result in results] == [1.0] * len(items)
    assert len(server.requests) > len(items)


def test_a_wrong_key_ends_the_run_at_once(bench: Any, items: list[Item]) -> None:
    with LoopbackServer(answer, key="right") as server, pytest.raises(AuthError):
        session = Session({"target": server.role()}, limits=FAST)
        run_items(bench.env, items, "s", bench.context(session, workers=2))
    assert len(server.requests) <= 2
    assert list(bench.store.rollouts()) == []


def test_a_call_that_hangs_is_ended_with_its_item(bench: Any, items: list[Item]) -> None:
    started = time.monotonic()
    with LoopbackServer(answer, faults=[None, hang(30)]) as server, Session({"target": server.role()}) as session:
        context = bench.context(session, workers=1, item_timeout=1.5, item_retries=1)
        results = run_items(bench.env, items, "s", context)
    assert time.monotonic() - started < 20
    assert [result.hard for result in results] == [1.0] * len(items)
    assert len(server.requests) == len(items) + 1
