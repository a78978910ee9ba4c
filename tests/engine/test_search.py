"""How good a skill the presets find for how many target calls, in a world where a quarter of proposals is harmful."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest
from search_runs import TARGET_CALLS, Search, search
from search_world import SearchWorld

SEEDS = range(5)


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Search]]:
    return {
        preset: [search(preset, SearchWorld(seed), tmp_path_factory.mktemp(f"{preset}_{seed}")) for seed in SEEDS]
        for preset in ("efficient", "paper")
    }


@pytest.mark.slow
def test_efficient_finds_a_good_skill_for_few_target_calls(searches: dict[str, list[Search]]) -> None:
    efficient = searches["efficient"]
    assert mean(run.score for run in efficient) >= 0.85
    assert max(run.target_calls for run in efficient) <= TARGET_CALLS


@pytest.mark.slow
def test_efficient_does_at_least_as_well_as_the_decisions_of_the_paper(searches: dict[str, list[Search]]) -> None:
    assert mean(run.score for run in searches["efficient"]) >= mean(run.within for run in searches["paper"])


@pytest.mark.slow
def test_no_call_of_a_search_is_repeated(searches: dict[str, list[Search]]) -> None:
    assert [run.repeated for runs in searches.values() for run in runs] == [0] * 10


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])])
def test_a_server_on_loopback_sees_the_same_search(tmp_path: Path, seed: int) -> None:
    here = search("efficient", SearchWorld(seed), tmp_path / "here")
    assert search("efficient", SearchWorld(seed), tmp_path / "loopback", loopback=True) == here
    assert here.repeated == 0
