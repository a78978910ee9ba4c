"""Notes of a step: what they change, what that costs, and that nothing becomes current without a score."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from worlds import World, answer, text_of

from skillopt.config.resolve import resolve
from skillopt.engine import setup
from skillopt.engine.gating import gate_score
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.metering import MeteredSession
from skillopt.engine.notes import Flushed, flush_notes, notes_folder, skill_aware
from skillopt.engine.state import Progress, Standing
from skillopt.optimizer.appendix import notes_of, with_notes
from skillopt.skill.document import Skill
from skillopt.types import Patch, RawPatch

AMBER = "Rule amber: say its secret."


@contextlib.contextmanager
def kit_of(world: World, skill: Skill | None = None, **optimizer: Any) -> Iterator[tuple[Kit, Progress]]:
    config = resolve(world.config(optimizer={"use_skill_aware_reflection": True, **optimizer}))
    adapter = setup.prepare(config)
    with setup.open_kit(config, adapter) as kit:
        skill = skill or with_notes(Skill.parse(""), ())
        scores = kit.evaluate(skill, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
        score = gate_score(kit, (scores.hard, scores.soft), skill)
        standing = Standing(skill, score, "initial_skill", "skills/skill_v0000.md", scores)
        yield kit, Progress(0, standing, standing, 0, (scores.hard, scores.soft))


def patches(*notes: str) -> list[RawPatch]:
    return [RawPatch(Patch(), appendix_notes=notes)]


def flush(kit: Kit, progress: Progress, given: Sequence[RawPatch], step: int = 1) -> Flushed:
    return flush_notes(kit, progress, given, step, MeteredSession(kit.session))


def on_disk(kit: Kit, step: int = 1) -> Any:
    return json.loads((kit.folder.step(step) / "appendix_notes.json").read_text(encoding="utf-8"))


def test_what_notes_make_current_has_a_score_of_its_own(world: World) -> None:
    with kit_of(world) as (kit, before):
        after = flush(kit, before, patches(AMBER, AMBER.lower()))
    assert notes_of(after.progress.current.skill) == (AMBER,)
    assert before.current.score == 0.0
    assert after.progress.current.score == pytest.approx(2 / 12)  # the notes hold a rule that helps two of 12 items
    scores = after.progress.current.scores
    assert scores is not None
    assert scores.skill_hash == after.progress.current.skill.hash
    assert after.progress.best == before.best
    assert after.progress.current.origin == "initial_skill"
    assert after.usage.calls == 12
    assert after.fields == {
        "n_execution_lapse_notes": 2,
        "n_appendix_notes_added": 1,
        "n_appendix_notes_total": 1,
        "notes_hard": pytest.approx(2 / 12, abs=1e-6),
        "notes_soft": pytest.approx(2 / 12, abs=1e-6),
        "notes_gate_score": pytest.approx(2 / 12, abs=1e-6),
    }
    assert on_disk(kit) == {"step_notes": [AMBER, AMBER.lower()], "appendix_after": [AMBER]}
    assert (kit.folder.step(1) / "notes_eval" / "results.jsonl").exists()


def test_nothing_new_costs_nothing(world: World) -> None:
    with kit_of(world) as (kit, before):
        first = flush(kit, before, patches(AMBER)).progress
        calls = len(world.server.requests)
        again = flush(kit, first, patches(AMBER.upper()), step=2)
        none = flush(kit, first, [], step=3)
    assert again.progress == none.progress == first
    assert again.fields["n_appendix_notes_added"] == none.fields["n_execution_lapse_notes"] == 0
    assert again.fields["n_appendix_notes_total"] == 1
    assert len(world.server.requests) == calls
    assert on_disk(kit, 3) == {"step_notes": [], "appendix_after": [AMBER]}


def test_done_again_it_pays_nothing_and_ends_the_same(world: World) -> None:
    with kit_of(world) as (kit, before):
        first = flush(kit, before, patches(AMBER))
        calls = len(world.server.requests)
        second = flush(kit, before, patches(AMBER))
    assert second.progress == first.progress
    assert second.fields == first.fields
    assert second.usage == first.usage
    assert len(world.server.requests) == calls


@pytest.mark.parametrize("mode", ["patch", "full_rewrite_minibatch"])
def test_switched_off_nothing_is_done(world: World, mode: str) -> None:
    off = {"use_skill_aware_reflection": mode != "patch", "skill_update_mode": mode}
    with kit_of(world, **off) as (kit, before):
        assert skill_aware(kit.config, before.current.skill) is None
        after = flush(kit, before, patches(AMBER))
    assert after == Flushed(before)
    assert not kit.folder.step(1).exists()


def test_settings_reach_reflection(world: World) -> None:
    with kit_of(world, skill_aware_appendix_source="failure_only") as (kit, before):
        aware = skill_aware(kit.config, flush(kit, before, patches(AMBER)).progress.current.skill)
    assert aware is not None
    assert (aware.success_notes, aware.notes) == (False, (AMBER,))


def test_the_best_skill_keeps_the_text_that_the_gate_saw(world: World) -> None:
    with kit_of(world) as (kit, start):
        accepted = Skill.parse(f"- {AMBER}\n" + start.current.skill.text)
        standing = replace(start.current, skill=accepted, path=kit.folder.relative(kit.folder.skill(1)))
        after = flush(kit, replace(start, current=standing, best=standing, best_step=1), patches("Mind it."))
        best = kit.folder.root / after.progress.best.path
        assert after.progress.best.skill == accepted
        assert best.read_text(encoding="utf-8") == accepted.text
        assert after.progress.best.path != after.progress.current.path


def reply_with(notes: Any) -> Callable[[Mapping[str, Any]], str]:
    def reply(request: Mapping[str, Any]) -> str:
        if "fewer notes than you were given" in text_of(request, "system"):
            return json.dumps({"appendix_notes": notes})
        return answer(request)

    return reply


@pytest.mark.parametrize(
    ("threshold", "reply", "after"),
    [
        (0, ["x"], ("one", "two", "three")),
        (3, ["x"], ("one", "two", "three")),
        (2, ["All of it."], ("All of it.",)),
        (2, ["a", "b", "c"], ("one", "two", "three")),
        (2, [], ("one", "two", "three")),
        (2, ["see val-3"], ("one", "two", "three")),
    ],
)
def test_too_many_notes_are_made_fewer(
    make_world: Callable[..., World], threshold: int, reply: list[str], after: tuple[str, ...]
) -> None:
    world = make_world(reply_with(reply))
    with kit_of(world, skill_aware_consolidate_threshold=threshold) as (kit, before):
        done = flush(kit, before, patches("one", "two", "three"))
    assert notes_of(done.progress.current.skill) == after
    assert on_disk(kit)["appendix_after"] == list(after)
    assert done.fields["n_appendix_notes_added"] == 3
    assert done.fields.get("n_appendix_notes_consolidated") == (2 if len(after) == 1 else None)
    asked = [body for body in world.requests("optimizer-model")]
    assert len(asked) == (1 if threshold == 2 else 0)
    assert all(body.get("max_completion_tokens", body.get("max_tokens")) == 4096 for body in asked)


def test_notes_that_hold_answers_or_ids_are_left_out(world: World) -> None:
    with kit_of(world) as (kit, before):
        done = flush(kit, before, patches("As in test-4, look.", "Look twice.", "token x-api-key: abcd1234abcd"))
        events = kit.folder.events.read_text(encoding="utf-8")
    assert notes_of(done.progress.current.skill) == ("Look twice.",)
    assert done.fields["n_appendix_notes_refused"] == 2
    assert events.count("leak_refused") == 2


def test_where_the_current_skill_was_scored(world: World) -> None:
    with kit_of(world) as (kit, _):
        assert notes_folder(kit, []) is None
        noted = {"step": 2, "action": "accept", "notes_hard": 0.5}
        assert notes_folder(kit, [{"step": 1, "action": "reject"}]) is None
        assert notes_folder(kit, [noted, {"step": 3, "action": "reject"}]) == kit.folder.step(2) / "notes_eval"
        assert notes_folder(kit, [noted, {"step": 3, "action": "accept"}]) is None
        of_first, of_second = {**noted, "epoch": 1}, {**noted, "step": 4, "epoch": 2}
        assert notes_folder(kit, [of_first], "slow_update_epoch_01") is None
        assert notes_folder(kit, [of_first], "step_0002") == kit.folder.step(2) / "notes_eval"
        later = notes_folder(kit, [of_first, of_second], "slow_update_epoch_01")
        assert later == kit.folder.step(4) / "notes_eval"
