"""Several observations of a task, and the skill that it belongs to."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.mining import dedup_tasks, group_tasks_by_skill_hint
from skillopt_sleep.mining.merge import PARTIAL_HINT
from skillopt_sleep.types import TaskRecord


def seen(name: str, hint: str = "", **fields: Any) -> TaskRecord:
    return TaskRecord(name, "/p", f"intent of {name}", skill_hint=hint, **fields)


def test_observations_of_one_task_become_one() -> None:
    tasks = [
        seen("a", outcome="unknown", source_sessions=["s1", "s2"], tags=["x"]),
        seen("b"),
        seen("a", outcome="fail", source_sessions=["s2", "s3"], tags=["y", "x"]),
        seen("a", outcome="mixed"),
    ]
    first, second = dedup_tasks(tasks)
    assert (first.id, first.outcome, first.source_sessions) == ("a", "fail", ["s1", "s2", "s3"])
    assert first.tags == ["x", "y"]
    assert second.id == "b"
    assert tasks[0].outcome == "unknown"


@pytest.mark.parametrize(
    ("hints", "hint", "group"),
    [
        (("k", "k"), "k", "k"),
        (("k", ""), "k", "managed"),
        (("k", "other"), "", "managed"),
        (("k", "other", "k"), "", "managed"),
        (("", ""), "", "managed"),
        ((" k ", "k"), "k", "k"),
    ],
)
def test_hints_whatever_the_order_and_whether_merged_before(hints: tuple[str, ...], hint: str, group: str) -> None:
    for order in itertools.permutations(hints):
        tasks = [seen("a", name) for name in order]
        merged = dedup_tasks(tasks)
        assert merged[0].skill_hint == hint
        assert list(group_tasks_by_skill_hint(tasks, "managed")) == [group]
        assert list(group_tasks_by_skill_hint(merged, "managed")) == [group]


def test_groups_come_in_order_as_copies() -> None:
    tasks = [seen("a", "two"), seen("b"), seen("c", "one"), seen("d", "two")]
    before = copy.deepcopy(tasks)
    groups = group_tasks_by_skill_hint(tasks, "managed")
    assert {name: [task.id for task in rows] for name, rows in groups.items()} == {
        "two": ["a", "d"],
        "managed": ["b"],
        "one": ["c"],
    }
    groups["two"][0].tags.append("changed")
    assert tasks == before


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "k", "m"])), max_size=8))
def test_merging_first_never_changes_the_grouping(rows: list[tuple[str, str]]) -> None:
    tasks = [seen(name, hint) for name, hint in rows]
    before = copy.deepcopy(tasks)
    direct = group_tasks_by_skill_hint(tasks, "managed")
    merged = dedup_tasks(tasks)
    assert dedup_tasks(merged) == merged
    after = group_tasks_by_skill_hint(merged, "managed")
    assert {task.id: name for name, group in direct.items() for task in group} == {
        task.id: name for name, group in after.items() for task in group
    }
    assert tasks == before
    assert all((PARTIAL_HINT in task.tags) <= bool(task.skill_hint) for task in merged)
