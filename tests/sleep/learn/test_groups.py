"""One consolidation for each named skill, none of which takes the others down."""

from __future__ import annotations

from typing import Any

import pytest
from sleep.learn.learn_world import FakeBackend, holds, proposing, task, tasks

from skillopt_sleep.errors import BudgetSpent, CallFailed, PendingCalls
from skillopt_sleep.learn import (
    accepted_group_skills,
    consolidate,
    consolidate_groups,
    dream_consolidate,
    history_of,
    skill_group_reports,
    split_by_skill,
)
from skillopt_sleep.types import ConsolidationResult, SkillGroup, TaskRecord

RULE = "Name the file."


def backend() -> FakeBackend:
    return FakeBackend(holds(RULE), proposing([RULE], [RULE]))


def test_the_managed_skill_gets_only_what_no_skill_claims() -> None:  # V15
    items = [task("a", skill_hint="x"), task("b"), task("c", skill_hint="y"), task("a"), task("d", skill_hint=" x ")]
    managed, groups = split_by_skill(items, "managed")
    assert [one.id for one in managed] == ["a", "b", "a"]
    assert {name: [one.id for one in rows] for name, rows in groups.items()} == {"y": ["c"], "x": ["d"]}
    managed[0].tags.append("changed")
    assert items[0].tags == []
    assert split_by_skill([task("a", skill_hint="managed")], "managed")[1] == {}


def test_each_group_learns_into_its_own_skill_and_never_into_the_memory() -> None:
    groups = [SkillGroup("x", "# X\n", tasks()), SkillGroup("y", "# Y\n", tasks())]
    done = consolidate_groups(backend(), groups, "memory", consolidate_fn=consolidate, evolve_memory=True)
    assert [(one.skill_name, one.status, one.accepted, one.n_tasks) for one in done] == [
        ("x", "consolidated", True, 9),
        ("y", "consolidated", True, 9),
    ]
    skills = accepted_group_skills(done)
    assert list(skills) == ["x", "y"]
    assert skills["x"].startswith("# X\n")
    assert all(one.result is not None and one.result.new_memory == "memory" for one in done)
    rows = skill_group_reports(done)
    assert (rows[0].gate_action, rows[0].candidate_score, rows[0].n_applied_edits) == ("accept_new_best", 1.0, 1)


def test_what_one_skill_refused_is_not_held_against_another() -> None:
    fake = FakeBackend(holds("unsaid"), proposing([RULE]))
    done = consolidate_groups(fake, [SkillGroup("x", "", tasks())], consolidate_fn=consolidate)
    assert done[0].result is not None
    assert [edit.content for edit in done[0].result.rejected_edits] == [RULE]
    assert list(fake.rejected_edits) == []


def test_what_cannot_be_consolidated_is_told_and_a_repeated_name_counts_once() -> None:
    groups = [
        SkillGroup(" ", "s", tasks(1, 1)),
        SkillGroup("empty", "s", []),
        SkillGroup("x", "first", tasks()),
        SkillGroup("x", "second", tasks()),
        SkillGroup("broken", "<!-- SKILLOPT-SLEEP:LEARNED START -->\n", tasks()),
        SkillGroup("thin", "s", tasks(1, 0)),
    ]
    done = consolidate_groups(backend(), groups, consolidate_fn=consolidate)
    rows = {one.skill_name: one for one in done}
    assert [one.skill_name for one in done] == ["", "empty", "x", "broken", "thin"]
    assert (rows[""].status, rows[""].n_tasks, rows["empty"].status) == ("skipped", 2, "skipped")
    assert rows["broken"].status == "failed"
    assert rows["broken"].reason.startswith("MalformedBlock: the skill: line 1 starts a learned block")
    assert rows["thin"].result is not None
    assert rows["thin"].result.gate_action == "reject_unverified"
    assert list(accepted_group_skills(done)) == ["x"]


def test_failures_are_cut_and_redacted() -> None:
    def fails(*_: Any, **__: Any) -> ConsolidationResult:
        raise RuntimeError("key sk-abcdefghijklmnop1234 " + "x" * 500)

    one = consolidate_groups(backend(), [SkillGroup("x", "", tasks())], consolidate_fn=fails)[0]
    assert len(one.reason) == 300
    assert one.reason.startswith("RuntimeError: key [REDACTED_OPENAI_KEY]")
    assert skill_group_reports([one])[0].status == "failed"


def test_what_ends_a_night_is_not_a_failed_group() -> None:
    def raising(error: Exception) -> Any:
        def run(*_: Any, **__: Any) -> ConsolidationResult:
            raise error

        return run

    group = [SkillGroup("x", "", tasks())]
    for error in (BudgetSpent("over"), CallFailed("no key", kind="auth")):
        with pytest.raises(type(error)):
            consolidate_groups(backend(), group, consolidate_fn=raising(error))
    failed = consolidate_groups(backend(), group, consolidate_fn=raising(CallFailed("busy")))
    assert failed[0].status == "failed"


def test_waiting_calls_of_all_groups_are_collected() -> None:
    def run(_: Any, items: list[TaskRecord], skill: str, *__: Any, **___: Any) -> ConsolidationResult:
        raise PendingCalls({skill: {}})

    groups = [SkillGroup("x", "sx", tasks()), SkillGroup("y", "sy", tasks())]
    with pytest.raises(PendingCalls) as caught:
        consolidate_groups(backend(), groups, consolidate_fn=run)
    assert sorted(caught.value.pending) == ["sx", "sy"]


def test_each_group_recalls_only_what_carries_its_name() -> None:  # 13.32
    history: list[Any] = [
        task("h1", skill_hint="x", intent="do work"),
        {"id": "h2", "project": "/p", "intent": "do work"},
    ]
    assert history_of("x", history) == history[:1]
    assert history_of("", history) == history[1:]
    seen: dict[str, Any] = {}

    def run(*_: Any, **options: Any) -> ConsolidationResult:
        seen.update(options)
        return dream_consolidate(*_, **options)

    consolidate_groups(
        backend(),
        [SkillGroup("x", "", tasks())],
        consolidate_fn=run,
        group_kwargs_fn=lambda group: {"history_tasks": history_of(group.skill_name, history)},
        recall_k=3,
        gate_min_val=2,
    )
    assert (seen["history_tasks"], seen["recall_k"], seen["gate_min_val"]) == (history[:1], 3, 2)
    assert seen["evolve_memory"] is False
