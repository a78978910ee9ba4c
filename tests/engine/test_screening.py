"""Edit screening on a real run folder and a loopback server: what passes, what the gate sees, what is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from search_world import SearchWorld, broken_by, rule, write_data
from worlds import World, text_of

from skillopt.config.resolve import resolve
from skillopt.engine import setup
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.screening import SKIPPED, ScreeningReport, Trained, gate_screened
from skillopt.engine.state import Progress, Standing
from skillopt.engine.trainer import train
from skillopt.errors import BudgetExceededError
from skillopt.skill.document import Skill
from skillopt.types import Edit, Patch, RolloutResult

START = "\n".join(["# Seals", rule("amber"), rule("basalt"), ""])
WORLD = SearchWorld(0)
Answer = Callable[[Mapping[str, Any]], str]


def append(line: str) -> Edit:
    return Edit("append", line)


def habit(*topics: str) -> Edit:
    """An edit that breaks these topics and helps none."""
    name = next(f"{n:x}" for n in range(100_000) if broken_by(f"{n:x}") == topics)
    return append(f"- Habit {name}: mention the colour as well.")


class Bench:
    """A step whose rollout is done."""

    def __init__(self, world: World, kit: Kit) -> None:
        self.world, self.kit = world, kit
        skill = Skill.parse(START)
        scores = kit.evaluate(skill, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
        standing = Standing(skill, scores.hard, "initial_skill", "skills/skill_v0000.md", scores)
        self.progress = Progress(0, standing, standing, 0, (scores.hard, scores.soft))
        batch = kit.batches(1, 1)[0]
        results = kit.rollout(batch, skill, kit.folder.step(1) / "rollout")
        self.trained = Trained.of([(batch, results)], skill)
        world.server.requests.clear()

    def screen(self, *edits: Edit) -> tuple[Progress, ScreeningReport]:
        progress, _, report = gate_screened(self.kit, self.progress, Patch(edits), self.trained, 1)
        return progress, report

    def asked(self, split: str) -> list[Mapping[str, Any]]:
        return [body for body in self.world.requests("target-model") if f"[{split}]" in text_of(body, "user")]


@pytest.fixture
def make_bench(make_world: Callable[..., World]) -> Iterator[Callable[..., Bench]]:
    open_now = []

    def make(answer: Answer = WORLD.answer, **sections: Mapping[str, Any]) -> Bench:
        world = make_world(answer)
        write_data(world.root / "data", train=24, val=24, test=12)
        config = resolve(world.config(**{"train": {"batch_size": 24}, "optimizer": {"screen_edits": True}, **sections}))
        opened = setup.open_kit(config, setup.prepare(config))
        open_now.append(opened)
        return Bench(world, opened.__enter__())

    yield make
    for opened in open_now:
        opened.__exit__(None, None, None)


def statuses(report: ScreeningReport) -> list[str]:
    return [trial.status for trial in report.trials]


def test_a_bad_edit_neither_takes_good_ones_down_nor_rides_in_on_them(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bad = habit("amber", "basalt")
    progress, report = bench.screen(append(rule("cobalt")), bad, append(rule("dolomite")))
    assert statuses(report) == ["gain", "no_gain", "gain"]
    assert [(entry.edits, entry.action) for entry in report.gated] == [((1, 3), "accept_new_best")]
    assert report.action == "accept_new_best"
    assert report.refused == ()
    text = progress.current.skill.text
    assert rule("cobalt") in text and rule("dolomite") in text and bad.content not in text
    assert progress.best.skill.text == text
    assert progress.best_step == 1


def test_an_edit_that_cannot_gain_any_more_costs_only_the_failures(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(env={"workers": 1})
    _, report = bench.screen(habit("amber"))
    failing = sum(not result.hard for result in bench.trained.scores.results)
    assert report.trials[0].evaluated == failing < 24
    assert len(bench.asked("train")) == failing


def test_where_no_edit_gains_validation_is_not_looked_at(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    progress, report = bench.screen(habit("amber"), habit("basalt"))
    assert report.action == SKIPPED
    assert report.together is not None
    assert not report.together.passed
    assert report.gated == report.refused == ()
    assert bench.asked("val") == []
    assert progress == bench.progress


def test_an_edit_that_changes_nothing_is_reported_and_costs_nothing(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    _, report = bench.screen(Edit("delete", target="a line that is not there"))
    assert statuses(report) == ["no_change"]
    assert report.action == SKIPPED
    assert bench.asked("train") == bench.asked("val") == []
    written = json.loads((bench.kit.folder.step(1) / "screening.json").read_text(encoding="utf-8"))
    assert written["trials"] == [
        {"edits": [1], "status": "no_change", "passed": False, "evaluated": 0, "gained": 0, "lost": 0}
    ]


def test_an_edit_that_leaks_is_left_out_and_the_others_go_on(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    leaking = append("- Remember that train-7 is about dolomite.\n" + rule("dolomite"))
    progress, report = bench.screen(append(rule("cobalt")), leaking)
    assert statuses(report) == ["gain", "leak"]
    assert report.trials[1].evaluated == 0
    assert report.leaks
    assert report.refused == ()
    assert rule("cobalt") in progress.current.skill.text
    assert "train-7" not in progress.current.skill.text


def test_edits_that_help_only_together_are_found(make_bench: Callable[..., Bench]) -> None:
    def both_needed(request: Mapping[str, Any]) -> str:
        system = text_of(request, "system")
        if "First half" in system and "Second half" in system:
            system += "\n" + rule("cobalt")
        return WORLD.target(system, text_of(request, "user"))

    bench = make_bench(both_needed)
    progress, report = bench.screen(append("- First half."), append("- Second half."))
    assert statuses(report) == ["no_gain", "no_gain"]
    assert report.together is not None
    assert report.together.passed
    assert [(entry.edits, entry.action) for entry in report.gated] == [((1, 2), "accept_new_best")]
    assert "Second half" in progress.current.skill.text


def clash_on_validation(request: Mapping[str, Any]) -> str:
    """Two rules that get in each other's way, as only validation items show."""
    system, user = text_of(request, "system"), text_of(request, "user")
    if "[val]" in user and rule("cobalt") in system and rule("dolomite") in system:
        return "confused"
    return WORLD.target(system, user)


def test_a_refused_union_is_gated_one_by_one_on_the_skill_of_that_moment(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(clash_on_validation)
    edits = [append(rule(topic)) for topic in ("cobalt", "dolomite", "emerald")]
    progress, report = bench.screen(*edits)
    assert [(entry.edits, entry.action) for entry in report.gated] == [
        ((1, 2, 3), "reject"),
        ((1,), "accept_new_best"),
        ((2,), "reject"),
        ((3,), "accept_new_best"),
    ]
    assert report.action == "accept_new_best"
    assert report.refused == (edits[1],)
    assert [topic for topic in ("cobalt", "dolomite", "emerald") if rule(topic) in progress.current.skill.text] == [
        "cobalt",
        "emerald",
    ]
    assert progress.current.score == pytest.approx(8 / 24)
    kept = (bench.kit.folder.step(1) / "selection_eval" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum(json.loads(row)["hard"] for row in kept) == 8


def test_only_what_the_gate_refused_alone_is_remembered(make_bench: Callable[..., Bench]) -> None:
    def useless_on_validation(request: Mapping[str, Any]) -> str:
        system, user = text_of(request, "system"), text_of(request, "user")
        return "no" if "[val]" in user and "cobalt" in user else WORLD.target(system, user)

    bench = make_bench(useless_on_validation)
    edit = append(rule("cobalt"))
    progress, report = bench.screen(edit, habit("amber"))
    assert report.action == "reject"
    assert report.refused == (edit,)
    assert progress.current == bench.progress.current


def test_done_again_it_calls_nothing_and_decides_the_same(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(clash_on_validation)
    edits = [append(rule("cobalt")), habit("amber"), append(rule("dolomite"))]
    first = bench.screen(*edits)
    files = snapshot(bench.kit.folder.step(1))
    calls = len(bench.world.server.requests)
    assert bench.screen(*edits) == first
    assert len(bench.world.server.requests) == calls
    assert snapshot(bench.kit.folder.step(1)) == files
    seen = [json.dumps(body["messages"]) for body in bench.world.requests("target-model")]
    assert len(seen) == len(set(seen))


def snapshot(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}


def test_the_report_says_what_screening_took(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    _, report = bench.screen(append(rule("cobalt")), habit("amber"))
    record = report.record()
    assert record["n_edits_screened"] == 2
    assert record["n_edits_passed"] == 1
    assert record["gate_looks"] == 1
    assert record["screening_evaluated"] == len(bench.asked("train")) == report.usage.calls


def test_a_screened_run_goes_on_where_it_was_stopped(make_world: Callable[..., World]) -> None:
    world = make_world(SearchWorld(3).answer)
    write_data(world.root / "data", train=24, val=24, test=12)

    def run(folder: str, **budget: int) -> Any:
        sections: dict[str, Any] = {
            "train": {"num_epochs": 2, "batch_size": 12},
            "optimizer": {"learning_rate": 4, "screen_edits": True},
            "env": {"out_root": str(world.root / folder), "workers": 1},
            "budget": budget,
        }
        train(resolve(world.config(**sections)))
        return [untimed(record) for record in json.loads((world.root / folder / "history.json").read_text("utf-8"))]

    whole = run("whole")
    assert any(record["n_edits_passed"] < record["n_edits_screened"] for record in whole if "gate_looks" in record)
    world.server.requests.clear()
    stops = 0
    for budget in range(40, 2000, 37):
        try:
            parts = run("parts", max_calls=budget)
            break
        except BudgetExceededError:
            stops += 1
    assert stops > 3
    assert parts == whole
    assert (world.root / "parts" / "best_skill.md").read_bytes() == (
        world.root / "whole" / "best_skill.md"
    ).read_bytes()
    seen = [json.dumps(body["messages"]) for body in world.requests("target-model")]
    assert len(seen) == len(set(seen))


def untimed(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("timing", "wall_time_s")}


def result(item: str, hard: float) -> RolloutResult:
    return RolloutResult(id=item, hard=hard, soft=hard)


def rows(*ids: str) -> Sequence[Mapping[str, Any]]:
    return [{"id": item, "question": item} for item in ids]


def test_accumulated_batches_are_screened_as_one(make_bench: Callable[..., Bench]) -> None:
    batch = make_bench().kit.batches(1, 1)[0]
    skill = Skill.parse("x")
    one, two = replace(batch, payload=rows("a", "b")), replace(batch, payload=rows("b", "c"))
    trained = Trained.of([(one, [result("a", 1), result("b", 0)]), (two, [result("b", 0), result("c", 1)])], skill)
    assert [row["id"] for row in trained.batch.payload] == ["a", "b", "c"]
    assert trained.batch.batch_size == 3
    assert trained.scores.hard_by_item == {"a": 1, "b": 0, "c": 1}
    assert trained.scores.hard == pytest.approx(2 / 3)


def test_items_without_a_score_are_left_out_of_screening(make_bench: Callable[..., Bench]) -> None:
    batch = replace(make_bench().kit.batches(1, 1)[0], payload=rows("a", "b"))
    failed = replace(result("a", 0), status="error")
    trained = Trained.of([(batch, [failed, result("b", 1)])], Skill.parse("x"))
    assert [row["id"] for row in trained.batch.payload] == ["b"]
    assert trained.scores.hard == 1
