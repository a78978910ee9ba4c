"""A machine for each test; nothing touches the real home."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sleep.night_world import Machine, answer

from skillopt.testing import LoopbackServer

_OURS = ("AZURE_OPENAI_", "SKILLOPT_SLEEP_", "ANTHROPIC_", "CODEX_", "OPENAI_", "CLAUDE_")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(_OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def make_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Machine]:
    def make(**options: Any) -> Machine:
        machine = Machine(tmp_path, **options)
        for name, value in machine.environment.items():
            monkeypatch.setenv(name, value)
        return machine

    return make


@pytest.fixture
def machine(make_machine: Callable[..., Machine]) -> Machine:
    return make_machine()


@pytest.fixture
def server(machine: Machine) -> Iterator[LoopbackServer]:
    with LoopbackServer(answer) as running:
        decided = {"val_fraction": 0.5, "gate_min_val": 1}  # whatever the hash of a temporary path makes of the splits
        machine.configure(backend="azure_openai", model="m", azure_endpoint=running.url, **decided)
        yield running
