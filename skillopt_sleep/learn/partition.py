"""Which tasks teach and which decide. The two never share a task, unless there is no other way, and then it is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillopt_sleep.learn.edits import norm
from skillopt_sleep.mining.splits import checked_split
from skillopt_sleep.types import TaskRecord


@dataclass(frozen=True, slots=True)
class Partition:
    """`train` teaches, `val` decides. `leaked`: they share tasks, so nothing can be accepted by `val`.

    `dropped`: ids of training tasks that were left out because they were made from a validation or test task, or ask
    for the very same.
    """

    train: tuple[TaskRecord, ...]
    val: tuple[TaskRecord, ...]
    leaked: bool = False
    dropped: tuple[str, ...] = ()


def partition(tasks: Sequence[TaskRecord]) -> Partition:
    """The partition of a night's tasks.

    Test tasks are in neither part. Dreams only teach. Without validation tasks the real training tasks decide, without
    training tasks the validation tasks teach; both are a leak, and so is an id in both. Raises UsageProblem for an
    unknown split.
    """
    by_split: dict[str, list[TaskRecord]] = {"train": [], "val": [], "test": []}
    for task in tasks:
        by_split["train" if task.origin == "dream" else checked_split(task.split, f"task {task.id}")].append(task)
    val = _unique(by_split["val"])
    val_ids = {task.id for task in val}
    test_ids = {task.id for task in by_split["test"]}
    asked = {_request(task) for task in (*val, *by_split["test"]) if task.intent.strip()}
    train: list[TaskRecord] = []
    dropped: list[TaskRecord] = []
    for task in by_split["train"]:
        apart = task.id not in test_ids and (not task.derived_from or task.derived_from not in val_ids | test_ids)
        apart = apart and (_request(task) not in asked or task.id in val_ids)
        (train if apart else dropped).append(task)
    left_out = tuple(task.id for task in dropped)
    if not val:
        val = _unique(task for task in train if task.origin != "dream" and not task.derived_from)
        return Partition(tuple(train), tuple(val), bool(val), left_out)
    if not train:
        return Partition(tuple(val), tuple(val), True, left_out)
    shared = val_ids & {task.id for task in train}
    return Partition(tuple(train), tuple(val), bool(shared), left_out)


def _request(task: TaskRecord) -> tuple[str, str]:
    """What a task asks for, whatever it is called."""
    return norm(task.intent), norm(task.context_excerpt)


def _unique(tasks: Iterable[TaskRecord]) -> list[TaskRecord]:
    """The first task of each id, in order."""
    found: dict[str, TaskRecord] = {}
    for task in tasks:
        found.setdefault(task.id, task)
    return list(found.values())
