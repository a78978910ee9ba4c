"""Makes one task of several observations of it, and groups tasks by the skill that their sessions used.

Evidence about the skill is never thrown away: a task that was seen both with a skill and without keeps the skill's
name, and the tag `hint:partial` says that it is not certain. Grouping takes only certain names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from skillopt_sleep.types import TaskRecord

PARTIAL_HINT = "hint:partial"
_RANK = {"success": 3, "fail": 2, "mixed": 1}


def dedup_tasks(tasks: Iterable[TaskRecord]) -> list[TaskRecord]:
    """One task for each id, in the order in which the ids come; the inputs stay as they are.

    Sessions are united in order. The outcome is the one that says most (success, fail, mixed, unknown). The hint is the
    only distinct one, whatever the order, and empty when there are several.
    """
    seen: dict[str, list[TaskRecord]] = {}
    for task in tasks:
        seen.setdefault(task.id, []).append(task)
    return [_merged(observations) for observations in seen.values()]


def group_tasks_by_skill_hint(tasks: Iterable[TaskRecord], managed: str) -> dict[str, list[TaskRecord]]:
    """Copies of the tasks by skill name, groups and tasks in the order in which they come.

    A task belongs to the skill that every observation of its id names; otherwise to `managed`.
    """
    rows = list(tasks)
    hints: dict[str, set[str]] = {}
    for task in rows:
        hints.setdefault(task.id, set()).update(_evidence(task))
    groups: dict[str, list[TaskRecord]] = {}
    for task in rows:
        found = hints[task.id]
        certain = next(iter(found)) if len(found) == 1 else ""
        groups.setdefault(certain or managed, []).append(_copy(task))
    return groups


def _merged(observations: list[TaskRecord]) -> TaskRecord:
    evidence = {hint for task in observations for hint in _evidence(task)}
    names = evidence - {""}
    tags = [tag for tag in dict.fromkeys(tag for task in observations for tag in task.tags) if tag != PARTIAL_HINT]
    if len(names) == 1 and "" in evidence:
        tags.append(PARTIAL_HINT)
    return replace(
        observations[0],
        judge=dict(observations[0].judge),
        tags=tags,
        source_sessions=list(dict.fromkeys(session for task in observations for session in task.source_sessions)),
        outcome=max((task.outcome for task in observations), key=lambda outcome: _RANK.get(outcome, 0)),
        skill_hint=names.pop() if len(names) == 1 else "",
    )


def _evidence(task: TaskRecord) -> set[str]:
    hint = task.skill_hint.strip()
    return {hint, ""} if PARTIAL_HINT in task.tags else {hint}


def _copy(task: TaskRecord) -> TaskRecord:
    return TaskRecord.from_dict(task.to_dict())
