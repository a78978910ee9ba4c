"""What a run that goes on after a stop reads back, and what it does when that is missing, broken or left over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of

from skillopt.config.resolve import resolve
from skillopt.config.run_config import RunConfig
from skillopt.engine.setup import prepare
from skillopt.engine.trainer import train
from skillopt.envs.base import EnvAdapter
from skillopt.errors import BudgetExceededError, ResumeMismatchError, RunError
from skillopt.model import chat_optimizer
from skillopt.skill.document import Skill
from skillopt.testing import status
from skillopt.types import JsonObject, RolloutResult

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
        kind = '"failure_summary": [{"failure_type": "\\udfff", "count": 1, "description": "x\\ud800"}]'
        return answer(request).replace('"gaps"', '"g\\ud800aps"').replace('"failure_summary": []', kind)

    world = make_world(reply)
    assert run(world)["best_selection_hard"] == 1.0


def test_half_a_surrogate_pair_in_a_result_stops_nothing(world: World) -> None:
    config = resolve(world.config())
    adapter = prepare(config)
    kind: Any = type(adapter)

    def run_item(self: Any, item: Any, skill: str, chat: Any) -> RolloutResult:
        result = kind.run_item(self, item, skill, chat)
        turn = {"role": "assistant", "content": "\ud800"}
        return replace(result, fail_reason="b\ud800: x", trajectory=(*result.trajectory, turn))

    adapter.__class__ = type("Odd", (kind,), {"run_item": run_item})
    assert train(config, adapter=adapter)["best_selection_hard"] == 1.0


def test_reports_of_an_attempt_that_was_not_committed_do_not_stay(world: World) -> None:
    run(world, train={"num_epochs": 1})
    folder = world.out_root / "steps" / "step_0004"
    folder.mkdir(parents=True)
    for name in ("screening.json", "edit_apply_report.json", "rewrite_result.json"):
        (folder / name).write_text('[{"status": "of another attempt"}]', encoding="utf-8")
    run(world, train={"num_epochs": 2})
    left = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}
    assert "step_record.json" in left
    assert not any("of another attempt" in text for text in left.values())


def test_one_failed_analyst_of_many_batches_stops_nothing(make_world: Callable[..., World]) -> None:
    seen: list[str] = []

    def reply(request: Mapping[str, Any]) -> str:
        user = text_of(request, "user")
        if "Trajectories (" in user and not seen:
            seen.append(user)
        return "no JSON" if seen and seen[0] in user else answer(request)

    world = make_world(reply)
    small = {"minibatch_size": 8, "analyst_workers": 1}
    run(world, train={"num_epochs": 1, "accumulation": 3}, gradient=small)
    assert history(world.out_root)[0]["optimizer_failed"] == 1


def test_an_item_that_has_a_score_at_last_counts_on_a_resume(make_world: Callable[..., World]) -> None:
    """The score of the current skill is the mean over what is graded, also when that becomes more."""
    broken = ["[val-0]"]

    def reply(request: Mapping[str, Any]) -> Any:
        user = text_of(request, "user")
        return status(500) if any(mark in user for mark in broken) else answer(request)

    world = make_world(reply)
    limits = {"max_error_rate": 0.1, "item_retries": 0}
    with pytest.raises(BudgetExceededError):
        run(world, model={"retries": 0}, env=limits, budget={"max_calls": 60})
    state = json.loads((world.out_root / "runtime_state.json").read_text(encoding="utf-8"))
    assert 0 < state["last_completed_step"] < 6
    assert state["current_score"] * 11 == pytest.approx(round(state["current_score"] * 11))
    broken.clear()
    summary = run(world, model={"retries": 0}, env=limits)
    assert summary["best_selection_score"] == summary["best_selection_hard"] == 1.0
    lines = (world.out_root / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    again = max(n for n, event in enumerate(events) if event["kind"] == "run_started")
    current = next(event["current"] for event in events[again:] if event["kind"] == "gate")
    assert current * 12 == pytest.approx(round(current * 12))


def test_companion_files_stay_with_the_skill(world: World) -> None:
    config = resolve(world.config(budget={"max_calls": 60}))
    skill = Skill.parse("# Notes\n", {"scripts/look.py": "print(1)\n"})
    with pytest.raises(BudgetExceededError):
        train(config, initial=skill)
    asked = len(world.requests("target-model"))
    summary = train(resolve(world.config()), initial=skill)
    assert summary["best_selection_hard"] == 1.0
    seen = [json.dumps(body["messages"]) for body in world.requests("target-model")]
    assert len(seen) == len(set(seen)) > asked
    with pytest.raises(ResumeMismatchError, match="initial_skill"):
        train(resolve(world.config()), initial=Skill.parse("# Notes\n", {"scripts/look.py": "print(2)\n"}))


def with_own_reflect(config: RunConfig, reflect: Callable[..., Any]) -> EnvAdapter:
    adapter = prepare(config)
    kind = type(adapter)
    adapter.__class__ = type("Own", (kind,), {"reflect": lambda self, *given, **kw: reflect(*given, **kw)})
    return adapter


def test_an_environment_that_reflects_by_itself_can_call_the_optimizer_and_is_not_asked_twice(world: World) -> None:
    asked: list[int] = []

    def reflect(results: list[JsonObject], skill: str, _folder: str, *, random_seed: int, **_kw: Any) -> list[Any]:
        asked.append(random_seed)
        topics = "\n".join(row["question"] for row in results if row["hard"] < 1)
        text, _ = chat_optimizer("propose", f"{skill}\n## Trajectories ({len(results)})\n{topics}")
        return [None, {**json.loads(text), "source_type": "failure"}]

    def start(**sections: Mapping[str, Any]) -> JsonObject:
        config = resolve(world.config(**sections))
        return train(config, adapter=with_own_reflect(config, reflect))

    with pytest.raises(BudgetExceededError):
        start(budget={"max_calls": 12 + 8 + 1 + 2})  # in the middle of the first look
    assert len(asked) == 1
    assert start()["best_selection_hard"] == 1.0
    assert len(asked) == len(set(asked)) == 6


def test_an_environment_that_breaks_while_it_reflects_is_named(world: World) -> None:
    def reflect(*_given: Any, **_kw: Any) -> list[Any]:
        raise KeyError("patch")

    config = resolve(world.config())
    with pytest.raises(RunError, match="Environment Own raised KeyError in reflect: 'patch'"):
        train(config, adapter=with_own_reflect(config, reflect))


def test_what_earlier_processes_cost_is_counted_by_the_price_of_the_backend(make_world: Callable[..., World]) -> None:
    price = {"input": 1000.0, "output": 1000.0}
    prices = {f"openai_compatible/{role}-model": price for role in ("target", "optimizer")}
    whole = run(make_world(), model={"prices": prices})["cost_usd"]
    assert whole > 0
    world = make_world()
    shutil.rmtree(world.out_root)
    stopped(world, 60)
    with pytest.raises(BudgetExceededError, match="max_cost_usd"):
        run(world, model={"prices": prices}, budget={"max_cost_usd": whole / 10})
    assert run(world, model={"prices": prices})["cost_usd"] == pytest.approx(whole)


def test_a_used_up_error_budget_is_told_when_the_run_goes_on(world: World) -> None:
    paired = {"evaluation": {"gate_policy": "paired"}}
    run(world, train={"num_epochs": 1}, **paired)
    state = json.loads((world.out_root / "runtime_state.json").read_text(encoding="utf-8"))
    state |= {"looks": 3, "alpha_spent": 0.05}
    (world.out_root / "runtime_state.json").write_text(json.dumps(state), encoding="utf-8")
    run(world, train={"num_epochs": 2}, **paired)
    assert "error budget of the paired gate" in (world.out_root / "events.jsonl").read_text(encoding="utf-8")
