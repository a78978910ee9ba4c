"""What holds for all built-in benchmarks: they hold what differs, and leave running items to the one runner."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import skillopt.envs
from skillopt.envs.base import TaskEnv
from skillopt.envs.registry import BUILT_IN, get_env_class

ROOT = Path(skillopt.envs.__file__).parent
BENCHMARKS = sorted(set(BUILT_IN) - {"jsonl"})
RUNNERS_WORK = r"ThreadPoolExecutor|ProcessPoolExecutor|multiprocessing|time\.sleep|results\.jsonl|conversation\.json"


def test_there_are_six() -> None:
    assert len(BENCHMARKS) == 6


@pytest.mark.parametrize("name", BENCHMARKS)
def test_w28_w20_a_benchmark_has_no_pool_no_pause_and_no_result_file_of_its_own(name: str) -> None:
    for path in (ROOT / name).rglob("*.py"):
        assert not re.search(RUNNERS_WORK, path.read_text(encoding="utf-8")), path
    assert issubclass(get_env_class(name), TaskEnv)
    assert "rollout" not in vars(get_env_class(name)), "rows are kept one by one by the runner"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_brings_its_prompts_and_its_first_skill(name: str) -> None:
    for file in ("prompts/analyst_error.md", "prompts/analyst_success.md", "skills/initial.md"):
        assert (ROOT / name / file).read_text(encoding="utf-8").strip(), file
