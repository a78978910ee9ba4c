"""A world for each test; nothing touches the real home."""

from __future__ import annotations

from pathlib import Path

import pytest
from sleep.staging.staging_world import World


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SKILLOPT_SLEEP_HOME", str(tmp_path / "world" / "state"))


@pytest.fixture
def empty(tmp_path: Path) -> World:
    return World(tmp_path / "world")


@pytest.fixture
def world(empty: World) -> World:
    return empty.fill()
