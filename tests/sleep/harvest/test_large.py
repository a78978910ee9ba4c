"""A large history: memory and bytes, measured in processes of their own by the benchmark's code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "bench_harvest.py"


def measure(home: Path, count: int, size: int) -> dict[str, dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("bench_harvest", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, dict[str, Any]] = module.measure(home, count, size)
    return found


def check(figures: dict[str, dict[str, Any]], count: int, most_megabytes: float) -> None:
    assert figures["all"]["digests"] == count
    assert figures["all"]["read"] == figures["all"]["new"]
    assert figures["all"]["rss"] - figures["idle"]["rss"] < most_megabytes
    assert figures["one more"]["digests"] == figures["one more"]["files"] == 1
    assert figures["one more"]["read"] == figures["one more"]["new"]
    assert (figures["nothing new"]["read"], figures["nothing new"]["digests"]) == (0, 0)


def test_a_small_history_in_the_same_way(tmp_path: Path) -> None:
    check(measure(tmp_path, 40, 14_000_000), 40, 25)


@pytest.mark.slow
def test_2000_sessions_of_700_megabytes_in_bounded_memory(tmp_path: Path) -> None:
    figures = measure(tmp_path, 2000, 700_000_000)
    assert figures["all"]["new"] > 650_000_000
    check(figures, 2000, 60)
