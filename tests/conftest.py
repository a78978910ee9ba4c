"""Fixtures for tests that need whole runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from worlds import World, answer, write_data

from skillopt.testing import LoopbackServer

# No test measures time: a slow machine is no defect.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


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
