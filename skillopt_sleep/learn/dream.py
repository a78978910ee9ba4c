"""More to learn from than tonight's tasks: variations of them, and similar tasks of earlier nights.

Neither ever decides: dreams and recalled tasks are training tasks, and nothing that is like a validation or test task
of tonight is recalled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.learn.consolidate import consolidate
from skillopt_sleep.learn.edits import norm
from skillopt_sleep.mining import normalize_legacy_split
from skillopt_sleep.types import ConsolidationResult, TaskRecord

_PHRASINGS = (
    "Same kind of request, worded differently: {intent}",
    "The person is in a hurry and asks: {intent}",
    "As part of a longer piece of work, this comes up: {intent}",
)
_WORD = re.compile(r"[^\W_]+")
_RECALL = "recall"
_DREAM = "dream"


def dream_augment(tasks: Iterable[TaskRecord], *, factor: int = 1) -> list[TaskRecord]:
    """`factor` variations of each task, as training tasks with the same judge and reference."""
    return [_dreamt(task, number) for task in tasks for number in range(max(0, factor))]


def recall_similar(
    new: Sequence[TaskRecord],
    history: Iterable[TaskRecord | Mapping[str, Any]],
    k: int,
    *,
    exclude_ids: Collection[str] | None = None,
    all_projects: bool = False,
) -> list[TaskRecord]:
    """At most `k` archived tasks that share most words with a task of `new`, most similar first, as training tasks.

    Only tasks of the projects of `new`, unless `all_projects`. Left out are tasks of tonight, those in `exclude_ids`,
    what was validation or test, dreams, and tasks without a word in common. Similarity is the Jaccard index of the
    words of the intents (longer than two letters).
    """
    if k < 1 or not new:
        return []
    blocked = {*(exclude_ids or ()), *(task.id for task in new), *(task.derived_from for task in new)} - {""}
    projects = {_project(task.project) for task in new}
    wanted = [words_of(task.intent) for task in new]
    scored: dict[str, tuple[float, TaskRecord]] = {}
    for task in map(_task, history):
        if task is None or task.id in blocked or task.derived_from in blocked or not _teaches(task):
            continue
        if not all_projects and _project(task.project) not in projects:
            continue
        own = words_of(task.intent)
        similarity = max((_jaccard(own, words) for words in wanted), default=0.0)
        if similarity > 0:
            scored[task.id] = (similarity, task)
    ranked = sorted(scored.values(), key=lambda row: (-row[0], row[1].id))
    return [_recalled(task) for _, task in ranked[:k]]


def dream_consolidate(  # noqa: PLR0913 - the published signature
    backend: Any,
    tasks: Sequence[TaskRecord],
    skill: str,
    memory: str,
    *,
    history_tasks: Iterable[TaskRecord | Mapping[str, Any]] | None = None,
    recall_k: int = 0,
    recall_all_projects: bool = False,
    dream_rollouts: int = 1,
    dream_factor: int = 0,
    **options: Any,
) -> ConsolidationResult:
    """`consolidate` with more training tasks; with the defaults it is the same. `options` are `consolidate`'s."""
    extra = dream_tasks(
        tasks,
        history_tasks=history_tasks,
        recall_k=recall_k,
        recall_all_projects=recall_all_projects,
        dream_factor=dream_factor,
    )
    return consolidate(backend, [*tasks, *extra], skill, memory, rollouts_k=dream_rollouts, **options)


def dream_tasks(
    tasks: Sequence[TaskRecord],
    *,
    history_tasks: Iterable[TaskRecord | Mapping[str, Any]] | None = None,
    recall_k: int = 0,
    recall_all_projects: bool = False,
    dream_factor: int = 0,
) -> list[TaskRecord]:
    """The training tasks that `dream_consolidate` adds: recalled ones, then dreams of all real training tasks."""
    split_of = {task.id: normalize_legacy_split(task.split) for task in tasks if task.origin != _DREAM}
    held_out = [task for task in tasks if split_of.get(task.id) in ("val", "test")]
    train = [task for task in tasks if task.origin != _DREAM and split_of[task.id] == "train"]
    exclude = {task.id for task in held_out} | {task.derived_from for task in tasks if task.derived_from}
    exclude |= {task.id for task in tasks}
    held_intents = {norm(task.intent) for task in held_out}
    history = [task for task in map(_task, history_tasks or ()) if task is not None]
    free = [task for task in history if norm(task.intent) not in held_intents]
    recalled = recall_similar(train, free, recall_k, exclude_ids=exclude, all_projects=recall_all_projects)
    return [*recalled, *dream_augment([*train, *recalled], factor=dream_factor)]


def words_of(text: str) -> frozenset[str]:
    """The words of a text that similarity counts: lower case, more than two letters, in any script."""
    return frozenset(word for word in _WORD.findall(text.lower()) if len(word) > 2 or not word.isascii())


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    union = left | right
    return len(left & right) / len(union) if union else 0.0


def _teaches(task: TaskRecord) -> bool:
    return task.origin != _DREAM and normalize_legacy_split(task.split) == "train"


def _dreamt(task: TaskRecord, number: int) -> TaskRecord:
    return replace(
        task,
        id=f"{task.id}_dream{number}",
        intent=_PHRASINGS[number % len(_PHRASINGS)].format(intent=task.intent),
        judge=dict(task.judge),
        tags=[*task.tags, _DREAM],
        source_sessions=list(task.source_sessions),
        split="train",
        origin=_DREAM,
        derived_from=task.id,
    )


def _recalled(task: TaskRecord) -> TaskRecord:
    base = task.id.removeprefix(f"{_RECALL}:")
    return replace(
        task,
        id=f"{_RECALL}:{base}",
        judge=dict(task.judge),
        tags=[*(tag for tag in task.tags if tag != _RECALL), _RECALL],
        source_sessions=list(task.source_sessions),
        split="train",
        origin="real",
        derived_from=base,
    )


def _task(row: TaskRecord | Mapping[str, Any]) -> TaskRecord | None:
    if isinstance(row, TaskRecord):
        return row
    try:
        return TaskRecord.from_dict(row)
    except ValueError:
        return None


def _project(project: str) -> str:
    return str(paths.expand(project)) if project else ""
