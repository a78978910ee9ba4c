"""Task files: what `harvest --output` writes, a person reviews, and `run --tasks-file` replays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges.exact import comparison_of
from skillopt_sleep.judges.validate import errors_of
from skillopt_sleep.judges.work import WORK_OPS
from skillopt_sleep.mining.coding import workspace_problem
from skillopt_sleep.mining.splits import SplitMemory, assign_splits, checked_split
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.types import TaskRecord

FORMAT = "skillopt_sleep.tasks.v1"
_KINDS = ("exact", "rubric", "rule", "answer", "none")
_ORIGINS = ("real", "dream")


def make_tasks_payload(
    tasks: Iterable[TaskRecord],
    *,
    project: str = "",
    transcript_source: str = "",
    n_sessions: int = 0,
    target_skill_path: str = "",
) -> dict[str, Any]:
    """The content of a task file, redacted and not reviewed."""
    payload = {
        "format": FORMAT,
        "project": project,
        "transcript_source": transcript_source,
        "n_sessions": n_sessions,
        "target_skill_path": target_skill_path,
        "reviewed": False,
        "tasks": [task.to_dict() for task in tasks],
    }
    redacted: dict[str, Any] = redact_secrets(payload)
    return redacted


def write_tasks_file(path: Path | str, payload: Mapping[str, Any]) -> Path:
    """Write a payload, redacted, all or nothing and readable only by its owner; returns the absolute path."""
    place = paths.expand(path)
    paths.write_private_json(place, redact_secrets(dict(payload)))
    return place


def is_reviewed(meta: Mapping[str, Any]) -> bool:
    """True when a person has set `reviewed` to true, and to nothing else."""
    return meta.get("reviewed") is True


def load_tasks_file(
    path: Path | str,
    *,
    holdout_fraction: float | None = None,
    seed: int = 42,
    val_fraction: float | None = None,
    test_fraction: float | None = None,
    memory: SplitMemory | None = None,
) -> tuple[list[TaskRecord], dict[str, Any]]:
    """(tasks, metadata) of a task file; a bare array of tasks has no metadata, so it is never reviewed.

    With two tasks or more and none for validation or test, splits are assigned as they are on a night; `assigned` in
    the metadata says so. Dream tasks train whatever the file says. `warnings` holds a line for each judge that is sound
    but weak.

    Raises UsageProblem (a ValueError) naming the file and every task that is wrong.
    """
    place = paths.expand(path)
    rows, meta = _content(place)
    tasks = [_task(row, f"{place}: task {number}") for number, row in enumerate(rows, start=1)]
    meta["warnings"] = _check(tasks, place)
    real = [task for task in tasks if task.origin == "real"]
    meta["assigned"] = len(real) >= 2 and all(task.split == "train" for task in real)
    if meta["assigned"]:
        assign_splits(
            tasks,
            val_fraction=val_fraction,
            test_fraction=test_fraction,
            holdout_fraction=holdout_fraction,
            seed=seed,
            assigned=memory.assigned if memory is not None else None,
            known=memory.known if memory is not None else (),
        )
    return tasks, meta


def _content(place: Path) -> tuple[list[Any], dict[str, Any]]:
    try:
        value = json.loads(place.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageProblem(f"{place}: the task file cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{place}: the task file is no valid JSON in UTF-8 ({error}).") from None
    if isinstance(value, list):
        return value, {}
    if not isinstance(value, dict) or not isinstance(value.get("tasks"), list):
        raise UsageProblem(f"{place}: expected an object with a list `tasks`, or a list of tasks.")
    if value.get("format", FORMAT) != FORMAT:
        raise UsageProblem(f"{place}: the format is {value['format']!r}; this version reads {FORMAT}.")
    return value["tasks"], {key: item for key, item in value.items() if key != "tasks"}


def _task(row: Any, where: str) -> TaskRecord:
    try:
        task = TaskRecord.from_dict(row)
    except ValueError as error:
        raise UsageProblem(f"{where}: {error}") from None
    for name, allowed in (("reference_kind", _KINDS), ("origin", _ORIGINS)):
        if getattr(task, name) not in allowed:
            raise UsageProblem(f"{where}: {name} is {getattr(task, name)!r}; expected {', '.join(allowed)}.")
    task.split = "train" if task.origin == "dream" else checked_split(task.split, where)
    return task


def _check(tasks: list[TaskRecord], place: Path) -> list[str]:
    twice = [name for name, count in Counter(task.id for task in tasks).items() if count > 1]
    errors = [f"task {name}: the id stands more than once" for name in twice]
    wrong, warnings = errors_of((task.id, task.judge) for task in tasks if task.reference_kind == "rule")
    errors += wrong
    for task in tasks:
        if task.reference_kind == "exact":
            try:
                comparison_of(task)
            except ValueError as error:
                errors.append(str(error))
        problem = workspace_problem(task)
        if problem and not any(problem in error for error in errors):
            errors.append(f"task {task.id}: {problem}")
        elif task.workspace and task.reference_kind != "rule":
            wrong, odd = _of_work(task)
            errors += wrong
            warnings += odd
    if errors:
        raise UsageProblem(f"{place}: " + "; ".join(errors) + ".")
    return warnings


def _of_work(task: TaskRecord) -> tuple[list[str], list[str]]:
    """(errors, warnings) of what stands among the conditions of a coding task that is not judged by rules."""
    checks = task.judge.get("checks")
    if not checks:
        return [], []
    wrong, _ = errors_of([(task.id, task.judge)])
    unused = {} if wrong else dict.fromkeys(str(row["op"]) for row in checks if row["op"] not in WORK_OPS)
    why = "only a task of reference_kind rule is judged by it"
    return wrong, [f"task {task.id}: {op} is not used; {why}" for op in unused]
