"""Who decides tonight, who helps, and what is said before anything is paid for when that is not enough."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from skillopt_sleep.learn import split_by_skill
from skillopt_sleep.learn.partition import partition
from skillopt_sleep.mining import (
    Holdout,
    HoldoutRecord,
    can_be_judged,
    normalize_legacy_split,
    session_skill_hint,
)
from skillopt_sleep.phases.coding import known_tonight, tell_gone
from skillopt_sleep.phases.context import Night
from skillopt_sleep.show import counted, terminal_line
from skillopt_sleep.types import TaskRecord

_HELP = "More sessions help, a longer lookback_hours, or a lower gate_min_val."
_HELP_FILE = "More tasks in the file help, or a lower gate_min_val."
_HELP_TRAINING, _HELP_TRAINING_FILE = "More sessions help.", "Tasks with the split `train` help."


def by_skill(night: Night, tasks: Sequence[TaskRecord]) -> dict[str, Sequence[TaskRecord]]:
    """The tasks of each consolidation: those of the managed skill under "", those of a named skill under its name."""
    if not night.config.fanout or not night.evolve_skill:
        return {"": tasks}
    own, named = split_by_skill(tasks, str(night.config.get("managed_skill_name")))
    return {"": own, **named}


def arrange_holdout(night: Night) -> None:
    """Let validation tasks of earlier nights help, then those that have decided for long change places.

    Not where splits were written by a person, nor where nothing is decided.
    """
    if not night.config.gate_on or (night.seed is not None and not night.assigned):
        return
    known, gone = known_tonight(night)
    if night.config.get("holdout_recall"):
        helping = _holdout(night, known).helpers()
        night.helpers = [task.id for task in helping]
        night.tasks = [*night.tasks, *helping]
        tell_gone(night, len(gone.intersection(night.helpers)))
    night.moved = _holdout(night, known).exchange()
    for task in night.tasks:
        if task.origin != "dream":
            task.split = night.moved.get(task.id, task.split)


def tell_holdout(night: Night) -> None:
    """Say who changed places, who helps, and where the validation tasks are too few to decide by."""
    tell_changes(night)
    if night.moved or night.helpers:
        night.record("mine", "holdout", moved=night.moved, helpers=night.helpers)
    _warn(night)


def tell_changes(night: Night) -> None:
    """Say who changed places and who helps."""
    splits = {task.id: task.split for task in night.tasks if task.origin != "dream"}
    moved = sum(split == "train" for name, split in night.moved.items() if name in splits)
    helping = sum(splits.get(name) == "val" for name in night.helpers)
    if moved:
        partner = "training tasks" if moved > 1 else "a training task"
        nights = int(night.config.get("holdout_nights"))
        noun = "nights" if nights > 1 else "night"
        night.note(f"{_count(moved)} changed places with {partner}, after {nights} {noun} of deciding.")
    if helping:
        night.note(f"{_count(helping)} of earlier nights {'help' if helping > 1 else 'helps'} to decide.")


def stops(night: Night) -> bool:
    """Whether a part in which nothing can be accepted is not even tried: not where a person gave the tasks."""
    return night.seed is None and not night.practise_anyway


def undecidable(night: Night) -> dict[str, str]:
    """The parts of the night, by skill, in which nothing can be accepted, and why."""
    if not night.config.gate_on:
        return {}
    least = int(night.config.get("gate_min_val"))
    found: dict[str, str] = {}
    for name, tasks in by_skill(night, night.tasks).items():
        n_val = len(_val_ids(tasks))
        if n_val and partition(tasks).leaked:
            found[name] = "there is no training task apart from the validation tasks"
        elif tasks and n_val < least:
            found[name] = f"{_count(n_val)} cannot decide (gate_min_val is {least})"
    return found


def practised(night: Night) -> list[TaskRecord]:
    """The tasks that this night tries: without those of parts in which nothing can be accepted."""
    if not stops(night):
        return night.tasks
    without = undecidable(night)
    return [task for name, tasks in by_skill(night, night.tasks).items() if name not in without for task in tasks]


def helpers_at_most(night: Night) -> int:
    """How many archived tasks can help at most, whatever the model finds in the sessions."""
    config = night.config
    if not config.gate_on or not config.get("holdout_recall"):
        return 0
    known, _ = known_tonight(night)
    available = sum(task.split == "val" and can_be_judged(task) for task in known)
    parts = 1 + len({session_skill_hint(digest) for digest in night.digests} - {""}) if config.fanout else 1
    return min(available, parts * int(config.get("gate_min_val")))


def holdout_record(night: Night) -> dict[str, Any]:
    """What the state has to remember: who decided, who changed sides, and whose split a person wrote."""
    written = night.seed is not None and not night.assigned
    return {
        "decided": sorted(_decided(night)),
        "moved": night.moved,
        "written": [task.id for task in night.tasks if written and task.origin != "dream"],
    }


def _warn(night: Night) -> None:
    """Say on stderr and in the report where nothing can be accepted, before the first attempt is paid for."""
    then = "nothing is tried, and nothing more is paid for" if stops(night) else "nothing can be accepted"
    for name, why in undecidable(night).items():
        place = "As it looks now, " if night.practise_anyway else ""
        skill = f" for the skill {name}" if name else ""
        few = (_HELP, _HELP_FILE) if "gate_min_val" in why else (_HELP_TRAINING, _HELP_TRAINING_FILE)
        text = f"{place}{why}{skill}, so {then}. {few[night.seed is not None]}"
        text = text[:1].upper() + text[1:]
        night.report.notes.append(text)
        sys.stderr.write(f"[sleep] {terminal_line(text)}\n")


def _decided(night: Night) -> set[str]:
    """The validation tasks that a gate really compared something by."""
    results = [night.result, *(one.result for one in night.groups)]
    trials = [row for result in results if result is not None for row in result.gate_trials]
    compared: Iterable[dict[str, Any]] = (
        delta for row in trials if row.get("verdict") in ("accept", "reject") for delta in row.get("task_deltas") or ()
    )
    return _val_ids(night.tasks) & {str(delta["task_id"]) for delta in compared}


def _holdout(night: Night, known: Sequence[TaskRecord]) -> Holdout:
    config = night.config
    kept = night.state.holdout(night.project)
    nights = config.get("holdout_nights")
    return Holdout(
        by_skill(night, night.tasks),
        by_skill(night, known),
        HoldoutRecord(kept["decided"], kept["moved"], frozenset(kept["written"])),
        nights=None if nights is None else int(nights),
        least=int(config.get("gate_min_val")),
        seed=int(config.get("seed")),
    )


def _val_ids(tasks: Iterable[TaskRecord]) -> set[str]:
    return {task.id for task in tasks if task.origin != "dream" and normalize_legacy_split(task.split) == "val"}


def _count(number: int) -> str:
    return counted(number, "validation task")
