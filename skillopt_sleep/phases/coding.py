"""Coding tasks of a night: the workshop that makes checkouts, the tasks that are done in one, what is checked first.

A night in replay mode `worktree` opens a workshop before anything is spent, and closes it whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges import conditions_of
from skillopt_sleep.judges.work import condition_problem
from skillopt_sleep.mining.coding import attach_workspaces, refresh_workspaces, workspace_problem
from skillopt_sleep.phases.context import Night, within
from skillopt_sleep.types import SessionDigest, TaskRecord

Row = dict[str, Any]


def wants_checkouts(config: SleepConfig) -> bool:
    """Whether coding tasks are done in checkouts."""
    return str(config.get("replay_mode")) == "worktree"


def commands_of(config: SleepConfig) -> list[str]:
    """The commands that have to succeed after every coding task, each once. Raises UsageProblem for a blank one."""
    commands = list(dict.fromkeys(config.get("replay_checks")))
    for command in commands:
        problem = condition_problem("command", command)
        if problem:
            raise UsageProblem(f"replay_checks: {problem}.")
    return commands


def open_workshop_for(config: SleepConfig, backend: Any) -> Any:
    """The workshop of a night that is begun with `backend`; None in replay mode `mock`. Raises UsageProblem."""
    if not wants_checkouts(config):
        return None
    target = getattr(backend, "target", backend)
    if not getattr(target, "works_in_files", False):
        raise UsageProblem(
            f"replay_mode is worktree, and the backend {getattr(target, 'name', '') or 'of this night'} cannot work in "
            "files; let claude or codex attempt the tasks (backend or target_backend), or set replay_mode to mock."
        )
    commands_of(config)
    from skillopt_sleep.worktrees import open_workshop

    return open_workshop(config)


def close_workshop(night: Night) -> None:
    """Take the workshop from the backend and remove everything it has made."""
    workshop, night.workshop = night.workshop, None
    if workshop is not None:
        night.backend.workshop = None
        workshop.close()


def placed_seed(workshop: Any, seed: list[TaskRecord] | None) -> list[TaskRecord] | None:
    """Given tasks with the full names of their commits. Raises UsageProblem naming a task that cannot be placed."""
    if seed is None:
        return None
    return [_placed(workshop, task) if task.workspace else task for task in seed]


def preflight(workshop: Any, config: SleepConfig, seed: Iterable[TaskRecord] | None) -> None:
    """Run each command once on an untouched checkout, so that none is found out not to start after calls were paid for.

    The commands of the settings run on the newest commit, those of given tasks on the commit of the first task that has
    them. Raises UsageProblem for one that cannot be started or does not end in time; one that only fails is fine.
    """
    commands = commands_of(config)
    commits: dict[str, str] = dict.fromkeys(commands, workshop.resolve("HEAD") if commands else "")
    for task in seed or ():
        if task.workspace:
            rows = (row for row in conditions_of(task.judge) if row["op"] == "command")
            commits.update({row["arg"]: task.workspace["commit"] for row in rows if row["arg"] not in commits})
    for commit in dict.fromkeys(commits.values()):
        workshop.preflight(commit, [command for command, where in commits.items() if where == commit])


def place_tasks(night: Night) -> None:
    """Give tonight's tasks that changed files of this project their workspaces, and bring older ones up to date."""
    night.tasks = _refreshed(night, night.tasks)
    if night.workshop is not None:
        night.tasks = _attached(night.config, night.tasks, night.digests, night.workshop)


def placed_tasks(config: SleepConfig, tasks: list[TaskRecord], digests: Sequence[SessionDigest]) -> list[TaskRecord]:
    """Tasks that were found outside of a night, as a night places them. Raises UsageProblem."""
    if not wants_checkouts(config):
        return tasks
    from skillopt_sleep.worktrees import open_workshop

    with open_workshop(config) as workshop:
        return _attached(config, tasks, digests, workshop)


def placed_history(night: Night, rows: Sequence[Row]) -> list[Row]:
    """Archived tasks as tonight does them: in a checkout of their commit, or in text."""
    tasks = {number: task for number, row in enumerate(rows) if (task := _coding_task(row)) is not None}
    fresh = _refreshed(night, list(tasks.values()))
    changed = {number: task.to_dict() for number, task in zip(tasks, fresh, strict=True)}
    return [changed.get(number, row) for number, row in enumerate(rows)]


def modes_of(night: Night) -> dict[str, int]:
    """How many of tonight's tasks are done in checkouts and how many in text; {} on a night without a workshop."""
    if night.workshop is None:
        return {}
    done = sum(bool(task.workspace) for task in night.tasks)
    return {"tasks_in_checkouts": done, "tasks_in_text": len(night.tasks) - done}


def _refreshed(night: Night, tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    commands = commands_of(night.config) if night.workshop is not None else []
    fresh, lost = refresh_workspaces(tasks, night.workshop, commands)
    if lost and night.workshop is not None:
        tell = "1 task is" if lost == 1 else f"{lost} tasks are"
        night.note(f"{tell} answered in text, because the commit to start from is not in this repository (any more).")
    return fresh


def _attached(
    config: SleepConfig, tasks: Sequence[TaskRecord], digests: Sequence[SessionDigest], workshop: Any
) -> list[TaskRecord]:
    here = [task for task in tasks if within(config, task)]
    placed = {task.id: task for task in attach_workspaces(here, digests, workshop, commands_of(config))}
    return [placed.get(task.id, task) for task in tasks]


def _coding_task(row: Row) -> TaskRecord | None:
    if not row.get("workspace"):
        return None
    try:
        return TaskRecord.from_dict(row)
    except ValueError:
        return None


def _placed(workshop: Any, task: TaskRecord) -> TaskRecord:
    if workshop is None:
        raise UsageProblem(
            f"Task {task.id} is to be done in a checkout: run with --replay-mode worktree, or take its workspace and "
            "the conditions on files out of the tasks file."
        )
    problem = workspace_problem(task)
    if problem:
        raise UsageProblem(f"Task {task.id}: {problem}.")
    try:
        commit = workshop.resolve(task.workspace["commit"])
    except UsageProblem as error:
        raise UsageProblem(f"Task {task.id}: {error}") from None
    return replace(task, workspace={"commit": commit, "folder": task.workspace.get("folder", "")})
