"""Calibration: the same skill twice, its noise, and what the gate makes of it."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of

from skillopt.cli.main import main
from skillopt.config.resolve import resolve
from skillopt.engine.calibrate import calibrate
from skillopt.engine.trainer import train


@pytest.fixture
def noisy(make_world: Callable[..., World]) -> World:
    """A target that gets the amber items right the first time only, and the basalt ones the second time only."""
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    def sometimes(request: Mapping[str, Any]) -> str:
        user = text_of(request, "user")
        if request["model"] != "target-model" or "about" not in user:
            return answer(request)
        with lock:
            seen[user] += 1
        for topic, turn in (("amber", 1), ("basalt", 2)):
            if topic in user:
                return f"{topic} secret" if seen[user] == turn else "no idea"
        return "no idea"

    return make_world(sometimes)


def test_noise_and_false_accepts_of_both_policies(noisy: World) -> None:
    report = calibrate(resolve(noisy.config()))
    assert report["items"] == 12
    assert report["hard"] == [pytest.approx(2 / 12, abs=1e-6)] * 2
    assert report["share_of_items_that_differ"] == pytest.approx(4 / 12, abs=1e-6)
    assert report["sd_of_differences"] == pytest.approx((4 / 12) ** 0.5, abs=1e-6)
    flips = [sum(signs) for signs in itertools.product((1, -1), repeat=4)]
    strict = sum(total > 0 for total in flips) / 16
    assert report["false_accept"]["strict"]["per_look"] == strict
    assert report["planned_looks"] == 6
    assert report["false_accept"]["strict"]["per_run"] == pytest.approx(1 - (1 - strict) ** 6)
    assert report["false_accept"]["paired"] == {"per_look": 0.0, "per_run": 0.0}  # 4 flips cannot reach the share
    written = json.loads((noisy.out_root / "calibration" / "summary.json").read_text(encoding="utf-8"))
    assert written == report


def test_both_draws_are_kept_and_the_first_serves_the_training(noisy: World) -> None:
    config = resolve(noisy.config())
    first = calibrate(config)
    calls = len(noisy.requests("target-model"))
    assert calls == 24
    assert calibrate(config) == first
    assert len(noisy.requests("target-model")) == calls
    train(config)
    baseline = [b for b in noisy.requests("target-model")[calls:] if "[val-" in text_of(b, "user")]
    assert all(text_of(body, "system") for body in baseline)  # the empty skill was not asked again


def test_the_command_prints_both(noisy: World, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(noisy.config())
    assert main(["calibrate", "--config", config]) == 0
    out = capsys.readouterr().out
    assert "items that differ      33.3%" in out
    assert "strict" in out
    assert "paired" in out
    assert main(["calibrate", "--config", config, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == 12


def test_a_target_that_repeats_itself_is_said_to(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--config", str(world.config())]) == 0
    assert "this target repeats itself" in capsys.readouterr().out


def test_a_configuration_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--config", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err
