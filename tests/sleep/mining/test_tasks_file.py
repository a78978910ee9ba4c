"""Task files: written private and redacted, read strictly."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.tasks_file import is_reviewed, load_tasks_file, make_tasks_payload, write_tasks_file
from skillopt_sleep.types import TaskRecord


def write(folder: Path, value: Any) -> Path:
    path = folder / "tasks.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def row(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "project": "/p", "intent": f"the request {name}", **fields}


def rule(name: str, judge: Any) -> dict[str, Any]:
    return row(name, reference_kind="rule", judge=judge)


def test_round_trip(tmp_path: Path) -> None:
    tasks = [TaskRecord("a", "/p", "résumé …", split="train"), TaskRecord("b", "/p", "another thing", split="val")]
    payload = make_tasks_payload(
        tasks, project="/p", transcript_source="claude", n_sessions=3, target_skill_path="s.md"
    )
    assert list(payload) == [
        "format",
        "project",
        "transcript_source",
        "n_sessions",
        "target_skill_path",
        "reviewed",
        "tasks",
    ]
    path = write_tasks_file(tmp_path / "sub" / "tasks.json", payload)
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("}\n")
    assert '\n  "format": "skillopt_sleep.tasks.v1"' in text
    assert "résumé" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded, meta = load_tasks_file(path)
    assert loaded == tasks
    assert (meta["n_sessions"], meta["reviewed"], meta["warnings"]) == (3, False, [])
    assert not is_reviewed(meta)


def test_secrets_do_not_reach_the_file(tmp_path: Path) -> None:
    payload = make_tasks_payload([TaskRecord("a", "/p", "use sk-abcdefghijklmnop1234 please")])
    assert "sk-abc" not in write_tasks_file(tmp_path / "t.json", payload).read_text("utf-8")
    payload["tasks"][0]["intent"] = "password=hunter2hunter2"
    assert "hunter2" not in write_tasks_file(tmp_path / "t.json", payload).read_text("utf-8")


@pytest.mark.parametrize(("value", "reviewed"), [(True, True), ("true", False), (1, False), (None, False)])
def test_only_true_is_reviewed(value: object, reviewed: bool, tmp_path: Path) -> None:
    _, meta = load_tasks_file(write(tmp_path, {"reviewed": value, "tasks": []}))
    assert is_reviewed(meta) is reviewed
    _, meta = load_tasks_file(write(tmp_path, []))
    assert not is_reviewed(meta)


def test_splits_are_assigned_when_none_is_given(tmp_path: Path) -> None:
    path = write(tmp_path, [row(f"persona_wrap-answer_{i}", intent=str(i)) for i in range(12)])
    tasks, _ = load_tasks_file(path)
    assert {i for i, task in enumerate(tasks) if task.split == "val"} == {0, 1, 2, 4, 6, 7}
    tasks, _ = load_tasks_file(path, val_fraction=0.1, test_fraction=0.5)
    assert "test" in {task.split for task in tasks}
    tasks, _ = load_tasks_file(
        write(tmp_path, [row("a", split="replay"), row("b", split="holdout"), row("c", split="")])
    )
    assert [task.split for task in tasks] == ["train", "val", "train"]


def test_a_dream_trains_whatever_the_file_says(tmp_path: Path) -> None:
    tasks, _ = load_tasks_file(write(tmp_path, [row("a"), row("b"), row("d", origin="dream", split="val")]))
    assert tasks[2].split == "train"
    assert {task.split for task in tasks[:2]} == {"train", "val"}


@pytest.mark.parametrize(
    "judge", [[], "", 0, {"checks": []}, {"checks": [{"op": "wat"}]}, {"checks": [{"op": "contains", "arg": " "}]}]
)
def test_judges_that_cannot_score_are_refused_with_the_task(judge: object, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tasks\.json: task") as caught:
        load_tasks_file(write(tmp_path, [rule("bad-one", judge)]))
    assert isinstance(caught.value, UsageProblem)


def test_all_wrong_tasks_are_listed_with_reasons(tmp_path: Path) -> None:
    bad = {"checks": [{"op": "regex", "arg": "(?i)foo|(?i)bar"}]}
    with pytest.raises(UsageProblem) as caught:
        load_tasks_file(write(tmp_path, [rule("one", bad), rule("two", {"checks": [{"op": "max_chars", "arg": -5}]})]))
    assert "task one" in str(caught.value)
    assert "task two" in str(caught.value)
    assert "negative" in str(caught.value)


def test_a_weak_judge_is_a_warning(tmp_path: Path) -> None:
    _, meta = load_tasks_file(write(tmp_path, [rule("one", {"checks": [{"op": "max_chars", "arg": 5}]})]))
    assert meta["warnings"] == [
        "task one: all checks test the shape of the answer; an answer can pass with wrong content"
    ]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "3",
        "{}",
        {"tasks": {}},
        {"tasks": [3]},
        {"tasks": [{"id": "a"}]},
        {"tasks": [row("a", split="dev")]},
        {"tasks": [row("a", reference_kind="magic")]},
        {"tasks": [row("a", origin="nightmare")]},
        {"tasks": [row("a", tags="x")]},
        {"tasks": [row("a"), row("a")]},
        {"format": "skillopt_sleep.tasks.v9", "tasks": []},
        {"tasks": [row("a", reference_kind="exact", reference="x", judge={"compare": "fuzzy"})]},
    ],
)
def test_wrong_files_are_refused_naming_the_file(content: object, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"tasks\.json"):
        load_tasks_file(write(tmp_path, content))


def test_a_missing_file_and_a_byte_order_mark(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="cannot be read"):
        load_tasks_file(tmp_path / "none.json")
    tasks, _ = load_tasks_file(write(tmp_path, "\ufeff" + json.dumps([row("a", unknown_field=1)])))
    assert [task.id for task in tasks] == ["a"]
