"""Coding tasks of a night: the workshop that makes checkouts, the tasks that are done in one, what is checked first.

A night in replay mode `worktree` opens a workshop before anything is spent, and closes it whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges import conditions_of
from skillopt_sleep.judges.work import condition_problem
from skillopt_sleep.mining import SplitMemory
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
        night.backend.workshop = night.backend.say = None
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
    if commands:
        workshop.preflight(workshop.resolve("HEAD"), commands)
    tried = set(commands)
    for task in seed or ():
        if task.workspace:
            rows = [str(row["arg"]) for row in conditions_of(task.judge) if row["op"] == "command"]
            own = [command for command in rows if command not in tried]
            tried.update(own)
            workshop.preflight(task.workspace["commit"], own, source=f"Task {task.id}")


def place_tasks(night: Night) -> None:
    """Give tonight's tasks that changed files of this project their workspaces, and bring older ones up to date."""
    night.tasks = _refreshed(night, night.tasks)
    if night.workshop is not None:
        night.tasks = _attached(night.config, night.tasks, night.digests, night.workshop)
        if night.tasks and not any(task.workspace for task in night.tasks):
            night.note(
                "None of tonight's tasks is done in a checkout: none comes from a session that changed files of "
                f"{night.workshop.repository} and began after its first commit."
            )


def placed_tasks(config: SleepConfig, tasks: list[TaskRecord], digests: Sequence[SessionDigest]) -> list[TaskRecord]:
    """Tasks that were found outside of a night, as a night places them. Raises UsageProblem."""
    with workshop_of(config) as workshop:
        return _attached(config, tasks, digests, workshop) if workshop is not None else tasks


def workshop_of(config: SleepConfig) -> AbstractContextManager[Any]:
    """A workshop outside of a night, until the context ends; None in replay mode `mock`. Raises UsageProblem."""
    if not wants_checkouts(config):
        return nullcontext()
    from skillopt_sleep.worktrees import open_workshop

    return open_workshop(config)


def known_tonight(night: Night) -> tuple[list[TaskRecord], set[str]]:
    """(the project's archived tasks as tonight does them, the ids of those whose commit is gone)."""
    known = SplitMemory(night.state, night.project).known
    fresh, _ = refresh_workspaces(known, night.workshop, _commands(night))
    gone = {old.id for old, new in zip(known, fresh, strict=True) if old.workspace and not new.workspace}
    return fresh, gone


def tell_gone(night: Night, count: int) -> None:
    """Say how many coding tasks have lost the commit that they start from."""
    if count and night.workshop is not None:
        tell = "1 task is" if count == 1 else f"{count} tasks are"
        night.note(f"{tell} answered in text, because the commit to start from is not in this repository (any more).")


def placed_history(night: Night, rows: Sequence[Row]) -> list[Row]:
    """Archived tasks as tonight does them: in a checkout of their commit, or in text."""
    tasks = {number: task for number, row in enumerate(rows) if (task := _coding_task(row)) is not None}
    fresh = _refreshed(night, list(tasks.values()))
    changed = {number: task.to_dict() for number, task in zip(tasks, fresh, strict=True)}
    return [changed.get(number, row) for number, row in enumerate(rows)]


def modes_of(night: Night, tasks: Sequence[TaskRecord]) -> dict[str, int]:
    """How many of the tasks are done in checkouts and how many in text; {} on a night without a workshop."""
    if night.workshop is None:
        return {}
    done = sum(bool(task.workspace) for task in tasks)
    return {"tasks_in_checkouts": done, "tasks_in_text": len(tasks) - done}


def _refreshed(night: Night, tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    fresh, lost = refresh_workspaces(tasks, night.workshop, _commands(night))
    tell_gone(night, lost)
    return fresh


def _commands(night: Night) -> list[str]:
    return commands_of(night.config) if night.workshop is not None else []


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
    folder = task.workspace.get("folder", "")
    if not workshop.has_folder(commit, folder):
        raise UsageProblem(f"Task {task.id}: commit {commit[:12]} has no folder {folder!r} (workspace.folder).")
    return replace(task, workspace={"commit": commit, "folder": folder})
