"""The end of a run, and what its numbers and files are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of, write_data

import skillopt
from skillopt import api
from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train
from skillopt.errors import TooManyErrorsError
from skillopt.testing import chat_completion, status
from skillopt.types import JsonObject


def run(world: World, **sections: Mapping[str, Any]) -> JsonObject:
    return train(resolve(world.config(**sections)))


def test_tests_that_fail_lose_nothing(make_world: Callable[..., World]) -> None:
    broken = True

    def moody(request: Mapping[str, Any]) -> Any:
        fails = broken and "[test-" in text_of(request, "user") and request["model"] == "target-model"
        return chat_completion(None) if fails else answer(request)

    world = make_world(moody)
    once = {"model": {"retries": 0}, "env": {"item_retries": 0}}
    with pytest.raises(TooManyErrorsError):
        run(world, **once)
    summary = json.loads((world.out_root / "summary.json").read_text("utf-8"))
    assert summary["best_selection_hard"] == 1.0
    assert summary["test_hard"] is None
    asked = len(world.requests("target-model"))
    broken = False
    assert run(world, **once)["test_hard"] == 1.0
    later = world.requests("target-model")[asked:]
    assert all("[test-" in text_of(body, "user") for body in later)


def test_the_last_skill_is_checked_without_a_final_test(world: World) -> None:
    summary = run(world, evaluation={"eval_test": False})
    assert summary["final_selection_hard"] == 1.0
    assert summary["test_hard"] is None
    assert not any("[test-" in text_of(body, "user") for body in world.requests("target-model"))


def test_numbers_say_what_they_are(world: World) -> None:
    words = {"use_semantic_density": True, "semantic_density_weight": 0.5, "leading_words": ["rule"]}
    summary = run(world, evaluation=words)
    assert summary["best_selection_hard"] == summary["final_selection_hard"] == 1.0
    assert summary["best_selection_score"] > 1.0
    assert summary["baseline_selection_hard"] == 0.0
    assert summary["version"] == f"skillopt-{skillopt.__version__}"
    accounted = summary["total_accepts"] + summary["total_rejects"] + summary["total_skips"]
    assert accounted == summary["total_steps"] == 6


def test_a_run_has_as_many_files_with_more_items(make_world: Callable[..., World]) -> None:
    def files(root: Path) -> int:
        return sum(path.is_file() for path in root.rglob("*"))

    world = make_world()
    one = {"train": {"num_epochs": 1}}
    run(world, **one)
    few = files(world.out_root)
    write_data(world.root / "data", train=72, val=36, test=36)
    large = world.root / "large"
    run(
        world,
        env={"out_root": str(large)},
        train={"num_epochs": 1, "batch_size": 24},
        gradient={"minibatch_size": 12},
    )
    assert files(large) == few


def test_a_learning_rate_of_zero_asks_nobody_to_rank(world: World) -> None:
    run(world, optimizer={"learning_rate": 0, "min_learning_rate": 0}, train={"num_epochs": 1})
    assert not any("selected_indices" in text_of(body, "system") for body in world.requests("optimizer-model"))


def test_a_limit_needs_no_other_key(world: World) -> None:
    assert api.plan(world.config(env={"limit": 5})).items == {"train": 5, "val": 5, "test": 5}
    assert run(world, env={"limit": 5}, train={"num_epochs": 1})["total_steps"] == 1


def test_a_gain_is_over_the_items_that_both_skills_were_graded_on(make_world: Callable[..., World]) -> None:
    def reply(request: Mapping[str, Any]) -> Any:
        learned = "Rule basalt" in text_of(request, "system")
        return status(500) if learned and "[test-0]" in text_of(request, "user") else answer(request)

    world = make_world(reply)
    first = world.root / "first.md"
    first.write_text("- Rule amber: say its secret.\n", encoding="utf-8")
    limits = {"skill_init": str(first), "max_error_rate": 0.1, "item_retries": 0}
    summary = run(world, model={"retries": 0}, env=limits)
    assert (summary["baseline_test_hard"], summary["test_hard"], summary["test_errors"]) == (0.166667, 1.0, 1)
    assert summary["test_delta_hard"] == summary["final_test_delta_hard"] == 0.909091
    assert summary["test_comparison"]["mean_difference"] == 0.909091


def test_what_the_environment_has_to_say_stands_in_the_summary(world: World) -> None:
    assert any("limit 4" in text for text in run(world, env={"limit": 4})["notices"])
