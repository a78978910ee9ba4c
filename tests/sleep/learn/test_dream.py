"""Dreams and recall: more to learn from, nothing more to decide by."""

from __future__ import annotations

from typing import Any

from sleep.learn.learn_world import FakeBackend, holds, proposing, task, tasks

from skillopt_sleep.learn import consolidate, dream_augment, dream_consolidate, dream_tasks, recall_similar
from skillopt_sleep.types import TaskRecord

RULE = "Name the file."


def commit(name: str, split: str = "train", **fields: Any) -> TaskRecord:
    return task(name, split, intent=fields.pop("intent", f"Write the commit subject for {name}"), **fields)


def ids(found: list[TaskRecord]) -> list[str]:
    return [one.id for one in found]


def test_dreams_are_training_tasks_with_the_same_judge() -> None:
    real = task("a", "val", judge={"checks": []}, tags=["x"], skill_hint="hint", system="sys")
    dreams = dream_augment([real], factor=4)
    assert ids(dreams) == [f"a_dream{n}" for n in range(4)]
    assert len({one.intent for one in dreams}) == 3
    for one in dreams:
        assert (one.split, one.origin, one.derived_from, one.tags) == ("train", "dream", "a", ["x", "dream"])
        assert (one.judge, one.reference, one.system, one.skill_hint) == ({"checks": []}, real.reference, "sys", "hint")
        assert "do the work a" in one.intent
        assert one.judge is not real.judge
    assert dream_augment([real], factor=0) == []
    braces = dream_augment([task("b", intent="use {curly} braces")])[0]
    assert "use {curly} braces" in braces.intent


def test_recall_takes_the_most_similar_training_tasks_of_the_same_project() -> None:  # V10, 13.24
    new = [commit("one", intent="Write the commit subject for the parser change")]
    near = commit("near", intent="Write the commit subject for the lexer change")
    history: list[Any] = [
        near,
        commit("less", intent="Write a poem"),
        commit("none", intent="unrelated things entirely"),
        commit("held", "val"),
        commit("old-held", "holdout"),
        commit("old-train", "replay"),
        commit("tested", "test"),
        commit("other", project="/elsewhere"),
        commit("dream", origin="dream"),
        commit("one"),
        commit("blocked"),
        commit("made", derived_from="blocked"),
        {"id": "row", "project": "/p", "intent": "commit subject", "skill_hint": "h"},
        {"broken": True},
    ]
    found = recall_similar(new, history, 10, exclude_ids={"blocked"})
    assert ids(found) == ["recall:near", "recall:old-train", "recall:row", "recall:less"]
    assert {(one.split, one.origin) for one in found} == {("train", "real")}
    assert found[0].derived_from == "near"
    assert found[0].tags == ["recall"]
    assert found[2].skill_hint == "h"
    assert "recall:other" in ids(recall_similar(new, history, 10, all_projects=True))
    assert ids(recall_similar(new, history, 1)) == ["recall:near"]
    assert recall_similar(new, history, 0) == recall_similar([], history, 5) == []
    assert near.tags == []


def test_recall_works_in_any_script() -> None:  # C209
    new = [commit("one", intent="提交 信息 用 中文")]
    assert ids(recall_similar(new, [commit("two", intent="提交 说明")], 3)) == ["recall:two"]


def test_nothing_like_a_held_out_task_is_recalled_and_held_out_tasks_are_not_dreamt() -> None:
    tonight = [commit("t"), commit("v", "val", intent="Write the commit subject for V"), commit("x", "test")]
    history = [commit("v"), commit("again", intent="write the  commit subject for v"), commit("fine")]
    extra = dream_tasks(tonight, history_tasks=history, recall_k=5, dream_factor=1)
    assert ids(extra) == ["recall:fine", "t_dream0", "recall:fine_dream0"]
    assert {one.split for one in extra} == {"train"}


def test_with_the_defaults_it_is_consolidate() -> None:
    items = tasks()
    plain = consolidate(FakeBackend(holds(RULE), proposing([RULE])), items, "", "")
    assert dream_consolidate(FakeBackend(holds(RULE), proposing([RULE])), items, "", "") == plain


def test_dreams_are_replayed_in_training_only() -> None:
    backend = FakeBackend(holds(RULE), proposing([RULE]))
    history = [task("old", intent="do the work again")]
    options: dict[str, Any] = {"history_tasks": history, "recall_k": 1, "dream_factor": 1, "evolve_memory": False}
    result = dream_consolidate(backend, tasks(1, 5), "", "", **options)
    assert result.accepted
    by_phase = {phase: {name for name, at, _ in backend.attempts if at == phase} for phase in backend.phases()}
    assert by_phase["train"] == {"t0", "recall:old", "t0_dream0", "recall:old_dream0"}
    assert by_phase["gate_trial:skill"] == by_phase["final_val"] == {f"v{n}" for n in range(5)}
