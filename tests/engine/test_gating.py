"""One look: when it stops, what it records, what the paired gate demands."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gate_worlds import Draw, Scripted, ScriptedTasks, accepts_of_alike_skills, look_at, make_kit, settings, start
from gate_worlds import with_section as section

from skillopt.engine.extent import Extent
from skillopt.engine.finish import finish
from skillopt.engine.kit import Kit
from skillopt.engine.state import TrainState
from skillopt.model.usage import UsageTracker
from skillopt.types import JsonObject

WORKERS = 4


def scripted(**solved: int) -> Draw:
    """Skills by their text, each with the number of items, from the first, that it solves."""

    def draw(text: str, item: str) -> tuple[float, float]:
        right = float(int(item.split("-")[1]) < solved[text])
        return right, right

    return draw


@pytest.fixture
def kit_of(tmp_path: Path) -> Callable[..., Kit]:
    def make(draw: Draw, items: int = 40, events: list[Any] | None = None, **evaluation: Any) -> Kit:
        config = section(settings(**evaluation), "env", workers=WORKERS, max_error_rate=0.2, item_retries=0)
        config = section(config, "train", train_size=40, batch_size=10, num_epochs=2)
        return make_kit(ScriptedTasks(items, draw), config, tmp_path, events)

    return make


def record_of(kit: Kit, *texts: str) -> JsonObject:
    progress = start(kit, texts[0])
    for step, text in enumerate(texts[1:], 1):
        progress, seen = look_at(kit, progress, text, step)
    return {"action": seen.action, **seen.record("hard")}


def test_a_candidate_that_cannot_win_is_not_run_to_the_end(kit_of: Callable[..., Kit]) -> None:
    kit = kit_of(scripted(old=20, new=20))
    assert record_of(kit, "old", "new") == {
        "action": "reject",
        "selection_n": 20,
        "selection_total": 40,
        "stopped_early": True,
        "selection_errors": 0,
        "selection_gained": 0,
        "selection_lost": 0,
        "gate_metric": "hard",
        "candidate_gate_bound": 0.5,
    }
    rows = (kit.folder.step(1) / "selection_eval" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(row)["id"] for row in rows] == [f"item-{n}" for n in range(20, 40)]


def test_an_accepted_candidate_has_a_full_score_and_a_comparison(kit_of: Callable[..., Kit]) -> None:
    events: list[Any] = []
    record = record_of(kit_of(scripted(old=20, new=30), events=events), "old", "new")
    assert record["action"] == "accept_new_best"
    assert record["selection_n"] == record["selection_total"] == 40
    assert (record["selection_hard"], record["candidate_gate_score"]) == (0.75, 0.75)
    comparison = record["comparison"]
    assert (comparison["n"], comparison["mean_difference"], comparison["gained"], comparison["lost"]) == (
        40,
        0.25,
        10,
        0,
    )
    assert comparison["p_value"] == pytest.approx(2**-10, rel=1e-5)
    assert 0 < comparison["ci_low"] < 0.25 < comparison["ci_high"] < 1
    gate = next(data for kind, data in events if kind == "gate")
    assert (gate["evaluated"], gate["total"], gate["stopped_early"]) == (40, 40, False)


@pytest.mark.parametrize("options", [{"early_stop": "off"}, {"use_gate": False}])
def test_everything_is_run_when_a_score_is_wanted_in_any_case(
    kit_of: Callable[..., Kit], options: dict[str, Any]
) -> None:
    record = record_of(kit_of(scripted(old=20, new=10), **options), "old", "new")
    assert record["selection_n"] == 40
    assert record["selection_hard"] == 0.25
    assert not record["stopped_early"]


def test_an_error_makes_it_run_everything(kit_of: Callable[..., Kit]) -> None:
    def draw(text: str, item: str) -> tuple[float, float] | None:
        if (text, item) == ("new", "item-25"):
            return None
        return scripted(old=20, new=20)(text, item)

    record = record_of(kit_of(draw), "old", "new")
    assert (record["selection_n"], record["selection_errors"], record["action"]) == (40, 1, "reject")
    assert record["comparison"]["n"] == 39


def test_without_early_stop_no_wave_is_run_twice(kit_of: Callable[..., Kit]) -> None:
    kit = kit_of(scripted(old=20, new=30))
    record_of(kit, "old", "new")
    adapter: Any = kit.adapter
    assert sorted(adapter.done) == sorted([f"item-{n}" for n in range(40)] * 2)


def test_custom_environments_get_few_batches_each_in_its_folder(tmp_path: Path) -> None:
    draw = scripted(old=20, new=30)
    adapter = Scripted(40, draw)
    kit = make_kit(adapter, section(settings(), "env", workers=1), tmp_path)
    record_of(kit, "old", "new")
    baseline, *waves = adapter.batches
    assert len(baseline) == 40
    assert [len(wave) for wave in waves] == [20, 10, 10]
    assert len({item for wave in waves for item in wave}) == 40
    folder = kit.folder.step(1) / "selection_eval"
    assert (folder / "wave_2").is_dir()
    assert len((folder / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 40


def test_a_gain_that_may_be_chance_is_inconclusive_and_changes_nothing(kit_of: Callable[..., Kit]) -> None:  # C260
    kit = kit_of(scripted(old=20, lucky=22, better=32), gate_policy="paired")
    before = start(kit, "old")
    progress, seen = look_at(kit, before, "lucky", 1)
    assert seen.action == "inconclusive"
    assert not seen.accepted
    assert seen.record("hard")["gate_share"] == pytest.approx(0.05 / 8)
    assert seen.record("hard")["selection_hard"] == 0.55
    assert (progress.current, progress.best, progress.best_step) == (before.current, before.best, 0)
    progress, seen = look_at(kit, progress, "better", 2)
    assert seen.action == "accept_new_best"
    assert (progress.looks, progress.alpha_spent) == (2, pytest.approx(0.05 / 8 * 2))


def test_a_candidate_that_is_worse_is_rejected_under_either_policy(kit_of: Callable[..., Kit]) -> None:
    assert record_of(kit_of(scripted(old=20, new=19), gate_policy="paired"), "old", "new")["action"] == "reject"


def test_the_error_budget_survives_a_resume_to_the_bit(kit_of: Callable[..., Kit]) -> None:
    kit = kit_of(scripted(old=20, a=21, b=21, c=21), gate_policy="paired")
    progress = start(kit, "old")
    for step, text in enumerate("ab", 1):
        progress, _ = look_at(kit, progress, text, step)
    read = TrainState.from_dict(json.loads(json.dumps({**_fields(progress.state())})))
    assert (read.looks, read.alpha_spent) == (progress.looks, progress.alpha_spent)


def _fields(state: TrainState) -> JsonObject:
    return {name: getattr(state, name) for name in TrainState.__slots__}


def test_looks_beyond_the_plan_have_nothing_left_to_spend(kit_of: Callable[..., Kit]) -> None:
    kit = kit_of(scripted(old=0, new=1, good=40), gate_policy="paired")
    progress = start(kit, "old")
    for step in range(8):
        progress, _ = look_at(kit, progress, "new", step)
    progress, seen = look_at(kit, progress, "good", 9)
    assert seen.action == "inconclusive"
    assert progress.alpha_spent <= 0.05 + 1e-12


@pytest.mark.parametrize(
    ("optimizer", "looks"),
    [
        ({}, 8),
        ({"screen_edits": True, "learning_rate": 4}, 40),
        ({"use_slow_update": True}, 9),
        ({"use_skill_aware_reflection": True}, 9),
        ({"use_slow_update": True, "slow_update_gate_with_selection": True}, 9),
    ],
)
def test_planned_looks(optimizer: dict[str, Any], looks: int) -> None:
    config = section(settings(), "optimizer", **{"use_slow_update": False, **optimizer})
    config = section(config, "train", num_epochs=2, batch_size=5, accumulation=2)
    assert Extent.of(config, 40).looks == looks


def test_draws_of_an_item_are_kept_apart_and_averaged(tmp_path: Path) -> None:
    drawn: list[str] = []

    def draw(text: str, item: str) -> tuple[float, float]:
        drawn.append(item)
        return float(drawn.count(item) == 1), 0.5

    config = section(settings(), "env", workers=1, samples_per_item=3)
    kit = make_kit(ScriptedTasks(2, draw), config, tmp_path)
    progress = start(kit, "old")
    assert drawn.count("item-0") == 3
    assert progress.baseline == (pytest.approx(1 / 3), 0.5)
    first = progress.current.scores
    assert first is not None
    assert first.results[0].hard == 1 / 3
    assert first.results[0].extras["samples"][0] == {"hard": 1.0, "soft": 0.5}
    again = start(kit, "old")
    assert len(drawn) == 6  # every draw came from the store
    assert again.current.scores == first


def test_an_item_with_a_failed_draw_is_an_error(tmp_path: Path) -> None:
    drawn: list[str] = []

    def draw(text: str, item: str) -> tuple[float, float] | None:
        drawn.append(item)
        return None if item == "item-0" and drawn.count(item) == 2 else (1.0, 1.0)

    config = section(settings(), "env", workers=1, samples_per_item=2, max_error_rate=0.5, item_retries=0)
    scores = start(make_kit(ScriptedTasks(2, draw), config, tmp_path), "old").current.scores
    assert scores is not None
    assert [result.status for result in scores.results] == ["error", "ok"]
    assert scores.hard == 1.0


def test_an_evaluation_that_stopped_early_has_no_mean(kit_of: Callable[..., Kit]) -> None:
    kit = kit_of(scripted(old=20, new=10))
    _, seen = look_at(kit, start(kit, "old"), "new", 1)
    assert math.isnan(seen.scored.hard)
    assert math.isnan(seen.scored.soft)
    assert not seen.scored.complete
    assert seen.scored.skipped == 20
    assert (seen.score, seen.candidate_score) == (None, 0.5)


def test_alike_skills_are_accepted_in_at_most_alpha_of_2000_runs() -> None:
    strict, paired = accepts_of_alike_skills(2000)
    assert paired <= 0.05
    assert strict > 0.5


def failing_for(draw: Draw, *failed: tuple[str, str]) -> Draw:
    return lambda text, item: None if (text, item) in failed else draw(text, item)


def test_what_a_skill_keeps_as_its_score_is_over_all_its_items(kit_of: Callable[..., Kit]) -> None:
    """An error of the skill before is no gift to the one that replaces it: the next is measured by what is true."""
    errors = [("old", f"item-{n}") for n in range(36, 40)]
    kit = kit_of(failing_for(scripted(old=20, new=22, next=23, same=23), *errors))
    progress = start(kit, "old")
    progress, seen = look_at(kit, progress, "new", 1)
    assert (seen.action, seen.current_score, seen.candidate_score) == ("accept_new_best", 20 / 36, 22 / 36)
    assert progress.current.score == progress.best.score == 22 / 40
    progress, seen = look_at(kit, progress, "next", 2)
    assert (seen.action, seen.current_score, seen.candidate_score) == ("accept_new_best", 22 / 40, 23 / 40)
    progress, seen = look_at(kit, progress, "same", 3)
    assert (seen.action, progress.current.score) == ("reject", 23 / 40)


def test_errors_of_a_candidate_change_nothing_about_the_best(kit_of: Callable[..., Kit]) -> None:
    """A best skill that is current is measured on the same items as the candidate; else each has a score of its own."""
    easy = [("new", f"item-{n}") for n in range(4)]
    kit = kit_of(failing_for(scripted(old=20, new=21, worse=10), *easy, ("worse", "item-39")))
    progress, seen = look_at(kit, start(kit, "old"), "new", 1)
    assert (seen.current_score, seen.candidate_score) == (16 / 36, 17 / 36)
    assert (seen.action, progress.best) == ("accept_new_best", progress.current)
    worse, old = start(kit, "worse"), start(kit, "old").best
    progress, seen = look_at(kit, replace(worse, best=replace(old, score=0.475)), "new", 1)
    assert (seen.candidate_score, progress.current.score) == (17 / 35, 17 / 36)
    assert (seen.action, progress.best.skill) == ("accept", old.skill)


def test_the_last_skill_is_not_promoted_for_leaving_items_out(kit_of: Callable[..., Kit]) -> None:
    hard = [("last", f"item-{n}") for n in range(36, 40)]
    kit = kit_of(failing_for(scripted(best=20, last=20), *hard), eval_test=False)
    kit = replace(kit, session=cast(Any, SimpleNamespace(roles={}, usage=UsageTracker(), prices={}, notes=())))
    best, last = start(kit, "best"), start(kit, "last")
    assert last.current.score == 20 / 36 > best.best.score == 20 / 40
    after, summary = finish(kit, replace(last, best=best.best), best.best.skill, 0)
    assert (after.best, summary["best_selection_hard"]) == (best.best, 0.5)


@pytest.mark.parametrize(
    ("policy", "last", "promoted"), [("strict", 22, True), ("paired", 22, False), ("paired", 36, True)]
)
def test_the_last_skill_is_promoted_by_the_rules_of_the_gate(
    kit_of: Callable[..., Kit], policy: str, last: int, promoted: bool
) -> None:
    """What became current past the gate may become best at the end, if the gate's evidence is there."""
    kit = kit_of(scripted(best=20, last=last), gate_policy=policy, eval_test=False)
    kit = replace(kit, session=cast(Any, SimpleNamespace(roles={}, usage=UsageTracker(), prices={}, notes=())))
    best = start(kit, "best").best
    after, _ = finish(kit, replace(start(kit, "last"), best=best), best.skill, 0)
    assert (after.best.skill.text == "last") is promoted
    assert after.alpha_spent <= 0.05
