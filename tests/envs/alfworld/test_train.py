"""One epoch on the sample games: the real simulator, the real runner, a target that plays well once it is told how."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World, text_of

from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train

RULE = "- Name the next thing to fetch before each step."


def plans(games: Path) -> dict[str, list[str]]:
    """The walkthrough of each task, by the task's words."""
    found = {}
    for path in games.rglob("game.tw-pddl"):
        game = json.loads(path.read_text(encoding="utf-8"))
        goal = re.search(r"Your task is to: ([^\"]+)\.", game["grammar"])
        assert goal is not None
        found[f"{goal[1]}."] = game["walkthrough"]
    return found


def player(games: Path) -> Callable[[Mapping[str, Any]], str]:
    """Follows the walkthrough if the skill holds the rule; else the target dawdles. The optimizer proposes the rule."""
    walkthroughs = plans(games)

    def reply(request: Mapping[str, Any]) -> str:
        user = text_of(request, "user")
        if "Reply with: ok" in user:
            return "ok"
        if request["model"] != "target-model":
            return json.dumps({"patch": {"reasoning": "it dawdles", "edits": [{"op": "append", "content": RULE}]}})
        task, step = re.search(r"Task: (.+)\nStep (\d+) of", user).groups()  # type: ignore[union-attr]
        action = walkthroughs[task][int(step) - 1] if RULE in text_of(request, "system") else "look"
        return f"<think>step {step}</think>\n<action>{action}</action>"

    return reply


@pytest.mark.parametrize("items", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_an_epoch_on_the_sample_games_gains(
    games: Path, make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    monkeypatch.chdir(games.parent)  # the shipped configuration names its folders from the working directory
    world = make_world(player(games))
    env = {
        "name": "alfworld",
        "split_dir": games.name,
        "data_root": games.name,
        "limit": items,
        "max_steps": 9,
        "workers": min(items, 3),
        "task_type_field": None,
        "max_api_workers": 2,
        "exec_timeout": 120,
    }
    config = world.config(
        env=env,
        train={"num_epochs": 1, "batch_size": items},
        gradient={"minibatch_size": items},
        evaluation={"test_env_num": 2},
    )
    summary = train(resolve(config))
    assert summary["baseline_test_hard"] == 0.0
    assert summary["best_selection_hard"] == summary["test_hard"] == 1.0
    assert RULE in (world.out_root / "best_skill.md").read_text(encoding="utf-8")
    analyst = next(body for body in world.requests("optimizer-model") if "Trajectories (" in text_of(body, "user"))
    assert "navigation_loop" in text_of(analyst, "system")
    shown = text_of(analyst, "user")
    assert "[step 9 action] look" in shown
    assert "Failure reason: timeout" in shown
    assert "Hidden reference" in shown
