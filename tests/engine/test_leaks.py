"""The leak guard of a run: what it knows of the data, and what becomes of a candidate that it refuses."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from worlds import World

from skillopt.config.resolve import resolve
from skillopt.engine import setup
from skillopt.engine.kit import Kit
from skillopt.engine.leaks import find_leaks, leak_advice, leak_record, refuse_leaks
from skillopt.optimizer.step_buffer import StepEntry, render
from skillopt.optimizer.update import update_skill
from skillopt.skill.document import Skill
from skillopt.types import Edit, Patch
from skillopt.utils.files import atomic_write_json

CURRENT = Skill.parse("# Skill\n")


@contextlib.contextmanager
def kit_of(world: World, **sections: Any) -> Iterator[Kit]:
    config = resolve(world.config(**sections))
    with setup.open_kit(config, setup.prepare(config)) as kit:
        yield kit


def with_answers(world: World, answers: dict[str, str]) -> None:
    for split, text in answers.items():
        path = world.root / "data" / split / "items.json"
        items = json.loads(path.read_text(encoding="utf-8"))
        items[0]["answer"] = text
        path.write_text(json.dumps(items), encoding="utf-8")


def kinds(kit: Kit, text: str) -> list[str]:
    return [leak.kind for leak in find_leaks(kit, Skill.parse(text), CURRENT)]


def test_it_knows_ids_answers_and_secrets_of_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = "what a training item says too"
    with_answers(world, {"train": f"Well, {shared}", "val": shared, "test": "four words or more"})
    key = "not-a-shape-anyone-knows"
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", key)
    with kit_of(world) as kit:
        assert kinds(kit, "- As train-5 shows.") == ["item_id"]
        assert kinds(kit, "- Four words, or more!") == ["answer"]
        assert kinds(kit, f"- {shared}") == []
        assert kinds(kit, f"- Use {key}.") == ["secret"]
        assert kinds(kit, "- Rule amber: say its secret.") == []
        assert find_leaks(kit, Skill.parse("- train-5"), Skill.parse("# train-5")) == ()


def test_a_pattern_of_the_scorer_is_refused_and_a_text_that_it_looks_for_is_told(world: World) -> None:  # C088, C089
    with_answers(world, {"val": r"(?i)^SKILL:\s*billing$"})
    with kit_of(world, env={"scorer": "regex"}) as kit:
        assert kinds(kit, r"- Write SKILL:\s*billing") == ["pattern"]
        assert kinds(kit, "- Write SKILL: billing") == []
    with_answers(world, {"val": "TOTAL:"})
    with kit_of(world, env={"scorer": "contains", "out_root": str(world.root / "other")}) as kit:
        assert kinds(kit, "- Always print TOTAL: first") == []
        assert '"possible_leak"' in kit.folder.events.read_text(encoding="utf-8")


def test_switched_off_it_refuses_nothing(world: World) -> None:
    with kit_of(world, optimizer={"leak_guard": False}) as kit:
        assert kinds(kit, "- train-5") == []


def test_a_refusal_is_in_the_report_and_told_to_the_optimizer_without_the_answer(world: World) -> None:
    with_answers(world, {"val": "a secret of four words"})
    update = update_skill(CURRENT, Patch((Edit("append", "- Say: a secret of four words (val-0)."),)))
    with kit_of(world) as kit:
        report = kit.folder.step(1) / "edit_apply_report.json"
        atomic_write_json(report, [row.to_dict() for row in update.outcome.rows])
        leaks = refuse_leaks(kit, CURRENT, update.skill, 1)
        rows = json.loads(report.read_text(encoding="utf-8"))
        assert '"leak_refused"' in kit.folder.events.read_text(encoding="utf-8")
    reasons = ["names the val item 'val-0'", "holds the answer of the val item 'val-0' word for word"]
    assert leak_record(leaks) == {"leak_reasons": reasons}
    assert [row["status"] for row in rows] == [update.outcome.rows[0].status, "reject_leak"]
    assert rows[1]["detail"] == "; ".join(reasons)
    entry = StepEntry.of_step(
        step=1, action="reject_leak", results=(), outcome=update.outcome, refused=leak_advice(leaks)
    )
    assert StepEntry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry
    told = render([entry])
    assert "REJECT_LEAK" in told
    assert "it copied the answer of a single task" in told
    assert "four words" not in told
    assert "val-0" not in told
    assert "four words" not in json.dumps(entry.to_dict())


def test_a_clean_candidate_leaves_no_trace(world: World) -> None:
    with kit_of(world) as kit:
        assert refuse_leaks(kit, CURRENT, Skill.parse("# Skill\n- A rule.\n"), 1) == ()
        assert not kit.folder.step(1).exists()
    assert leak_record(()) == {}


@pytest.mark.parametrize("times", [3])
def test_the_tables_are_built_once(world: World, times: int) -> None:
    with kit_of(world) as kit:
        built = {id(kit.guard.held_out(kit.adapter, kit.config.roles)) for _ in range(times)}
    assert len(built) == 1
