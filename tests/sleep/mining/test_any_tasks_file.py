"""Whatever a tasks file holds, it gives tasks that can be replayed or one refusal that names the file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges import validate_checks
from skillopt_sleep.tasks_file import is_reviewed, load_tasks_file, make_tasks_payload, write_tasks_file
from skillopt_sleep.types import TaskRecord

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["op", "arg", "checks", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["id", "project", "intent", "split", "reference_kind", "reference", "judge", "tags", "origin", "system", "extra"]
)
GOOD: dict[str, Any] = {"id": "a", "project": "/p", "intent": "do the work"}
ROWS = st.one_of(
    VALUES,
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.dictionaries(NAMES.filter(lambda name: name not in GOOD), VALUES, max_size=3).map(lambda row: {**row, **GOOD}),
)
CONTENTS = st.one_of(
    VALUES,
    st.lists(ROWS, max_size=3),
    st.fixed_dictionaries({"tasks": st.one_of(VALUES, st.lists(ROWS, max_size=3)), "reviewed": VALUES}),
)


@given(CONTENTS)
def test_any_content_is_tasks_or_one_refusal(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "tasks.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        tasks, meta = load_tasks_file(path)
    except UsageProblem as problem:
        assert "tasks.json" in str(problem)
        return
    assert len({task.id for task in tasks}) == len(tasks)
    assert {task.split for task in tasks} <= {"train", "val", "test"}
    for task in tasks:
        assert task.reference_kind != "rule" or validate_checks(task.judge, strict=True)[0] == []
    assert is_reviewed(meta) is (isinstance(content, dict) and content.get("reviewed") is True)


TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=20)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=4, unique_by=lambda row: row[0]))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    tasks = [TaskRecord(f"t{n}", "/p", intent, split="train" if n else "val") for n, (intent, _) in enumerate(rows)]
    path = write_tasks_file(tmp_path_factory.mktemp("t") / "tasks.json", make_tasks_payload(tasks, project="/p"))
    again, _ = load_tasks_file(path)
    assert [task.id for task in again] == [task.id for task in tasks]
    assert write_tasks_file(path, make_tasks_payload(again, project="/p")).read_text("utf-8") == path.read_text("utf-8")
