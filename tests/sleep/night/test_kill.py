"""kill -9 anywhere, then the same command again: the same result, and no call paid for twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sleep.night_world import answer, prompt_of

from skillopt.testing import LoopbackServer

SCRIPT = Path(__file__).with_name("killing.py")
ROOT = Path(__file__).parents[3]


def kill(base: Path, kind: str, url: str, shares: list[float]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(base), kind, url, *map(str, shares)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def moments(count: int) -> list[float]:
    """Seeded moments over the whole command, and more of them near its end, where most is written that counts."""
    rng = random.Random("moments")
    early = count // 2
    return [rng.random() for _ in range(early)] + [1 - 0.25 * rng.random() for _ in range(count - early)]


def check_run(tmp_path: Path, shares: list[float]) -> None:
    with LoopbackServer(answer) as server:
        found = kill(tmp_path, "run", server.url, shares)
        asked: dict[str, Counter[str]] = {}
        for request in server.requests:
            asked.setdefault(request.body["model"], Counter())[prompt_of(request.body)] += 1
    whole = found["whole"]
    assert json.loads(whole["result"])["nights"][0]["report"]["accepted"]
    assert whole["left"] == []
    assert any(row["killed"] for row in found["rows"])
    for row in found["rows"]:
        assert row["result"] == whole["result"], row["at"]
        assert row["left"] == [], row["at"]
        assert row["live_unchanged"], row["at"]
        # The one call whose answer had not reached the disk when the kill came has to be made again.
        calls = asked[row["name"]] - asked["whole"]
        assert sum(calls.values()) <= int(row["killed"]), row["at"]
        assert set(asked[row["name"]]) == set(asked["whole"])


def check_adopt(tmp_path: Path, shares: list[float]) -> None:
    found = kill(tmp_path, "adopt", "-", shares)
    assert any(row["killed"] for row in found["rows"])
    for row in found["rows"]:
        assert row["adopted"], row["at"]
        assert row["live_unchanged"], row["at"]


def test_a_killed_night_goes_on(tmp_path: Path) -> None:
    check_run(tmp_path, [0.3, 0.93, 0.985])


def test_a_killed_adoption_is_whole_or_nothing(tmp_path: Path) -> None:
    check_adopt(tmp_path, [0.15, 0.5, 0.85, 0.99])


@pytest.mark.slow
def test_fifty_moments_of_a_night(tmp_path: Path) -> None:
    check_run(tmp_path, moments(50))


@pytest.mark.slow
def test_fifty_moments_of_an_adoption(tmp_path: Path) -> None:
    check_adopt(tmp_path, moments(50))
