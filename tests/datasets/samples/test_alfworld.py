"""The sample games: as shipped, the same every time, no task twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillopt.datasets.samples import alfworld as samples
from skillopt.errors import MissingExtraError

SHIPPED = Path(__file__).parents[3] / "data" / "samples" / "alfworld"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_shipped_lists_are_what_the_generator_writes(tmp_path: Path) -> None:
    samples.write_items(tmp_path)
    made = files(tmp_path)
    assert len(made) == 3
    assert {name: (SHIPPED / name).read_bytes() for name in made} == made


def test_no_task_comes_twice_and_every_split_has_every_type() -> None:
    rows = samples.items()
    games = [row["gamefile"] for split in rows.values() for row in split]
    assert len(games) == len(set(games)) == 18
    assert all(len({row["task_type"] for row in split}) == 6 for split in rows.values())


def test_games_are_the_same_every_time_and_kept_out_of_git(tmp_path: Path) -> None:
    pytest.importorskip("alfworld", reason='needs the game rules: pip install "skillopt[alfworld]"')
    samples.write(tmp_path / "a")
    samples.write(tmp_path / "b")
    made = files(tmp_path / "a")
    assert made == files(tmp_path / "b")
    assert sum(map(len, made.values())) < 1_500_000
    assert made["games/.gitignore"] == b"*\n"
    goals = set()
    for name in made:
        if name.endswith(".tw-pddl"):
            game = json.loads(made[name])
            assert set(game) == {"pddl_domain", "grammar", "pddl_problem", "solvable", "walkthrough"}
            goals.add(game["grammar"].partition("Your task is to: ")[2].partition('"')[0])
    assert len(goals) == 18


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "skillopt\[alfworld\]"'):
        samples.write(tmp_path)
    assert list(tmp_path.iterdir()) == []
