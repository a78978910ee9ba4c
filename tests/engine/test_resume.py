"""What a run that goes on after a stop reads back, and what it does when that is missing, broken or left over."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, answer_optimizer, answer_target, text_of

from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train
from skillopt.errors import BudgetExceededError, RunError, TooManyErrorsError
from skillopt.types import JsonObject

_TIMES = ("timing", "wall_time_s", "time_s")


def run(world: World, **sections: Mapping[str, Any]) -> JsonObject:
    return train(resolve(world.config(**sections)))


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in _TIMES}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def history(root: Path) -> Any:
    return timeless(json.loads((root / "history.json").read_text(encoding="utf-8")))


def stopped(world: World, calls: int) -> None:
    with pytest.raises(BudgetExceededError):
        run(world, budget={"max_calls": calls})


@pytest.mark.parametrize("broken", ["missing", "cut off", "not an object", "without a step"])
def test_a_lost_digest_is_made_again_from_what_is_paid(make_world: Callable[..., World], broken: str) -> None:
    world = make_world()
    run(world)
    whole = history(world.out_root)
    asked = len(world.server.requests)
    digest = world.out_root / "steps" / "step_0001" / "trajectory_digest.json"
    text = digest.read_text(encoding="utf-8")
    texts = {"cut off": text[: len(text) // 2], "not an object": "[1]", "without a step": "{}"}
    digest.unlink()
    if broken in texts:
        digest.write_text(texts[broken], encoding="utf-8")
    run(world, train={"num_epochs": 3})
    assert digest.read_text(encoding="utf-8") == text
    assert history(world.out_root)[: len(whole)] == whole
    seen = [json.dumps(body["messages"]) for body in world.requests("target-model")]
    assert len(seen) == len(set(seen))
    assert len(world.server.requests) > asked


def test_replies_that_stopped_the_run_are_asked_for_again(make_world: Callable[..., World]) -> None:
    mended: list[bool] = []

    def reply(request: Mapping[str, Any]) -> str:
        if request["model"] == "optimizer-model" and "Reply with: ok" not in text_of(request, "user") and not mended:
            return "I would rather not say it in JSON."
        return answer(request)

    world = make_world(reply)
    with pytest.raises(RunError, match="analyst calls failed"):
        run(world)
    mended.append(True)
    assert run(world)["best_selection_hard"] == 1.0


def test_half_a_surrogate_pair_in_a_reply_stops_nothing(make_world: Callable[..., World]) -> None:
    def reply(request: Mapping[str, Any]) -> str:
        text = answer(request)
        return text.replace('"gaps"', '"g\\ud800aps"').replace('"failure_summary": []', '"failure_summary": [{"failure_type": "\\udfff", "count": 1, "description": "x\\ud800"}]')

    world = make_world(reply)
    assert run(world)["best_selection_hard"] == 1.0
