"""Fixtures for tests that need whole runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from worlds import World, answer, write_data

from skillopt.testing import LoopbackServer

# No test measures time: a slow machine is no defect.
# A run is repeatable; HYPOTHESIS_PROFILE=explore looks for new examples.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNTIMED, derandomize=True)
settings.register_profile("explore", _UNTIMED, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    opened: list[LoopbackServer] = []

    def make(reply: Callable[[Mapping[str, Any]], str] = answer, **server: Any) -> World:
        running = LoopbackServer(reply, **server)
        running.__enter__()
        opened.append(running)
        write_data(tmp_path / "data")
        return World(tmp_path, running)

    yield make
    for running in opened:
        running.__exit__(None, None, None)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()
