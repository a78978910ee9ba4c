"""Where games are found, what type they are of, and what is known about the right way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillopt.datasets.materialize.games import games_root
from skillopt.envs.alfworld import games
from skillopt.errors import DataError
from skillopt.types import Item


def item(gamefile: Any, item_id: str = "train:0000") -> Item:
    return Item(item_id, {"id": item_id, "gamefile": gamefile})


def test_relative_files_are_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert games.game_path(item("a/game.tw-pddl"), tmp_path) == tmp_path / "a/game.tw-pddl"
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "d"))
    assert games_root() == tmp_path / "d"
    assert games_root(str(tmp_path)) == tmp_path
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert games_root() == tmp_path / ".cache/alfworld"


def test_home_variables_and_absolute_paths_are_the_persons_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "d"))
    root = Path("elsewhere")
    assert games.game_path(item("~/g.tw-pddl"), root) == tmp_path / "home/g.tw-pddl"
    assert games.game_path(item("$ALFWORLD_DATA/g.tw-pddl"), root) == tmp_path / "d/g.tw-pddl"
    assert games.game_path(item(str(tmp_path / "g.tw-pddl")), root) == tmp_path / "g.tw-pddl"
    monkeypatch.delenv("ALFWORLD_DATA")
    assert games.game_path(item("${ALFWORLD_DATA}/g.tw-pddl"), root) == tmp_path / "home/.cache/alfworld/g.tw-pddl"


@pytest.mark.parametrize("gamefile", ["../g.tw-pddl", "a/../../g.tw-pddl", "", None, 3, "game.json", "a\0.tw-pddl"])
def test_w6_a_path_out_of_the_folder_or_without_a_game_is_refused(gamefile: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x/\.\./7'.*gamefile"):
        games.game_path(item(gamefile, "x/../7"), tmp_path)


def test_types_are_those_of_the_manifest() -> None:
    assert games.task_type({"task_type": "pick_and_place"}) == "pick_and_place_simple"
    assert games.task_type({"task_type": "my own"}) == "my own"
    for kind in games.TASK_TYPES:
        assert games.task_type({"gamefile": f"json_2.1.1/train/{kind}-Mug-None-Shelf-1/trial_T1/game.tw-pddl"}) == kind
    assert games.task_type({"gamefile": "pick_and_place-Mug/game.tw-pddl"}) == "pick_and_place_simple"
    assert games.task_type({"gamefile": "x/game.tw-pddl"}) == "other"


def test_w29_the_reference_text_is_what_lies_beside_the_game(tmp_path: Path) -> None:
    notes = {
        "task_type": "pick_and_place_simple",
        "turk_annotations": {
            "anns": [{"task_desc": f"way {n}", "high_descs": [f"step {k}" for k in range(20)]} for n in range(5)]
        },
        "pddl_params": {"object_target": "Mug", "parent_target": "Shelf", "mrecep_target": "", "object_sliced": False},
        "plan": {"high_pddl": [{"discrete_action": {"action": "GotoLocation", "args": ["shelf"]}}, {"odd": 1}]},
        "scene": {"floor_plan": "FloorPlan1", "scene_num": 1, "objects": ["left out"]},
    }
    (tmp_path / "traj_data.json").write_text(json.dumps(notes), encoding="utf-8")
    text = games.reference_text(tmp_path / "game.tw-pddl")
    assert "Task type: pick_and_place_simple" in text
    assert "- way 2" in text and "way 3" not in text
    assert "- step 11" in text and "step 12" not in text
    assert "Parameters: object_target Mug, parent_target Shelf\n" in text
    assert "- GotoLocation(shelf)" in text
    assert "Scene: floor_plan FloorPlan1, scene_num 1" in text
    assert "left out" not in text


@pytest.mark.parametrize("content", [None, "no json", "[]", '{"turk_annotations": 3, "plan": {"high_pddl": [1]}}'])
def test_notes_that_are_missing_or_broken_are_no_reference(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "traj_data.json").write_text(content, encoding="utf-8")
    assert games.reference_text(tmp_path / "game.tw-pddl") == ""
