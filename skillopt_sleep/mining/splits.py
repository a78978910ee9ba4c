"""Which tasks train, which decide, which only report: for good, by group, and never by luck of wording.

A group of tasks (see `identity`) goes to one split. Where it goes follows from the hash of its first task's id and the
seed. What was assigned once stays; new tasks join the group that they belong to. Dream tasks always train.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillopt_sleep.config import DEFAULTS
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.mining.identity import closest, group_keys
from skillopt_sleep.nearest import suggestion
from skillopt_sleep.types import TaskRecord

SPLITS = ("train", "val", "test")
_LEGACY = {"replay": "train", "holdout": "val", "": "train"}


def normalize_legacy_split(split: str) -> str:
    """The name in use now: `replay` and a blank name are train, `holdout` is val; others stay."""
    return _LEGACY.get(split, split)


def checked_split(split: str, where: str) -> str:
    """The split's name in use now. Raises UsageProblem for an unknown one."""
    name = normalize_legacy_split(split)
    if name not in SPLITS:
        raise UsageProblem(f"{where}: unknown split {split!r}{suggestion(split, SPLITS)}; expected train, val or test.")
    return name


def split_fractions(
    val_fraction: float | None = None, test_fraction: float | None = None, holdout_fraction: float | None = None
) -> tuple[float, float]:
    """(validation, test) shares; `val_fraction` counts before its older name `holdout_fraction`, then the defaults.

    Raises UsageProblem (a ValueError) unless each lies in 0..1 and some tasks are left to train on.
    """
    given = holdout_fraction if val_fraction is None else val_fraction
    val = DEFAULTS["val_fraction"] if given is None else given
    test = DEFAULTS["test_fraction"] if test_fraction is None else test_fraction
    for name, value in (("val_fraction", val), ("test_fraction", test)):
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not number or not 0 <= value <= 1:
            raise UsageProblem(f"{name} is {value!r}; expected a number from 0 to 1.")
    if val + test >= 1:
        raise UsageProblem(f"val_fraction {val:g} and test_fraction {test:g} leave nothing to train on; lower one.")
    return float(val), float(test)


def assign_splits(
    tasks: list[TaskRecord],
    *,
    val_fraction: float | None = None,
    test_fraction: float | None = None,
    holdout_fraction: float | None = None,
    seed: int = 42,
    assigned: Mapping[str, str] | None = None,
    known: Sequence[TaskRecord] = (),
) -> list[TaskRecord]:
    """Set the split of every task and return the tasks.

    `assigned`: splits given earlier, by task id; they stay. `known`: earlier tasks with their splits, so that a new
    wording of one of them goes where it went. With two groups or more there is something to train on and, where the
    hash gives none, something to check with; tasks that were assigned earlier and test tasks are not moved for that.
    Raises UsageProblem (a ValueError) for impossible fractions.
    """
    val, test = split_fractions(val_fraction, test_fraction, holdout_fraction)
    fixed = {task.id: normalize_legacy_split(task.split) for task in known if task.origin != "dream"}
    fixed.update({name: normalize_legacy_split(split) for name, split in (assigned or {}).items()})
    real = [task for task in tasks if task.origin != "dream"]
    rows = [task for task in known if task.origin != "dream"] + real
    keys = group_keys(rows)
    members: dict[str, list[TaskRecord]] = {}
    for task in rows:
        members.setdefault(keys[task.id], []).append(task)
    free = {
        key: _by_hash(seed, key, val, test)
        for key in dict.fromkeys(keys[task.id] for task in real)
        if not any(task.id in fixed for task in members[key])
    }
    held = {task.id: _held(task, members[keys[task.id]], fixed) for task in real if keys[task.id] not in free}
    _top_up(free, set(held.values()), seed, n_real=len({task.id for task in real}))
    for task in tasks:
        task.split = "train" if task.origin == "dream" else held.get(task.id) or free[keys[task.id]]
    return tasks


class SplitMemory:
    """What a project's state knows of splits: assignments by task id, and the archived tasks that carry them."""

    def __init__(self, state: Any, project: str) -> None:
        self._state = state
        self._project = project

    @property
    def assigned(self) -> dict[str, str]:
        """The split of each known task, by id."""
        return dict(self._state.splits_for(self._project))

    @property
    def known(self) -> list[TaskRecord]:
        """The archived tasks of the project with the splits that hold now, oldest first; what is none is left out."""
        assigned = self.assigned
        found = [task for row in self._state.task_archive(self._project) if (task := _record(row)) is not None]
        for task in found:
            task.split = normalize_legacy_split(assigned.get(task.id, task.split))
        return found

    def remember(self, tasks: Iterable[TaskRecord]) -> None:
        """Keep the splits of real tasks; they are on disk after the state is saved."""
        real = {task.id: task.split for task in tasks if task.origin != "dream" and not task.derived_from}
        self._state.set_splits(self._project, real)


def _record(row: Any) -> TaskRecord | None:
    try:
        return TaskRecord.from_dict(row)
    except ValueError:
        return None


def hash_number(seed: int, name: str) -> int:
    """A number that stands for a name, another one for each seed; it decides where nothing else does."""
    return int(hashlib.sha256(f"{seed}{name}".encode("utf-8", "replace")).hexdigest(), 16)


def _by_hash(seed: int, name: str, val: float, test: float) -> str:
    bucket = hash_number(seed, name) % 100
    if bucket < round(100 * val):
        return "val"
    return "test" if bucket < round(100 * val) + round(100 * test) else "train"


def _held(task: TaskRecord, group: Sequence[TaskRecord], fixed: Mapping[str, str]) -> str:
    """Where a task of a group with earlier assignments goes: its own, else that of the request most like it."""
    if task.id in fixed:
        return fixed[task.id]
    return fixed[closest(task, [other for other in group if other.id in fixed]).id]


def _top_up(free: dict[str, str], held: set[str], seed: int, *, n_real: int) -> None:
    if n_real < 2:
        return
    for wanted, source in (("val", "train"), ("train", "val")):
        if wanted not in held and wanted not in free.values():
            movable = [key for key, split in free.items() if split == source]
            if movable:
                free[min(movable, key=lambda key: hash_number(seed, key))] = wanted
