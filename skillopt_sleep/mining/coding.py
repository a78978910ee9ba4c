"""Which tasks change files, and the state of the repository that each of them starts from.

A task becomes a coding task when a session that it comes from changed files of the project's repository. It starts
from the newest commit that was there when that session began, and it is judged by what it changed too: something has
to be changed, and the person's own commands have to succeed. Commands come from the person alone, so nothing that a
session or a model wrote is ever run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import PurePosixPath
from typing import Any, Protocol

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges import WORK_OPS, conditions_of, required_tools
from skillopt_sleep.judges.work import ANY_FILE, condition_problem
from skillopt_sleep.show import clip
from skillopt_sleep.types import SessionDigest, TaskRecord

Check = dict[str, Any]
_REVISION = re.compile(r"[A-Za-z0-9@_][^\s\x00-\x1f\x7f]{0,199}")


class Repository(Protocol):
    """What of a workshop is needed to place tasks."""

    def commit_at(self, when_epoch: float, branch: str = "") -> str:
        """The newest commit that is not younger; "" when there is none."""

    def resolve(self, rev: str) -> str:
        """The full name of a commit. Raises UsageProblem when there is none."""

    def inside(self, path: str, cwd: str) -> str | None:
        """Where in the repository a file lies; None for one outside of it."""


def attach_workspaces(
    tasks: Sequence[TaskRecord], digests: Iterable[SessionDigest], shop: Repository, commands: Sequence[str]
) -> list[TaskRecord]:
    """The tasks in order, those that changed files with a workspace and its conditions; the others as they are.

    A task that is judged by the call of a stand-in tool stays a text task, as does one whose session began before the
    first commit or at an unknown time.
    """
    sessions = {digest.session_id: digest for digest in digests}
    return [task if task.workspace else _placed(task, sessions, shop, commands) for task in tasks]


def refresh_workspaces(
    tasks: Sequence[TaskRecord], shop: Repository | None, commands: Sequence[str]
) -> tuple[list[TaskRecord], int]:
    """(the tasks, how many of them lost their workspace) for tasks of earlier nights.

    Their commands become those of tonight. Without a workshop, and where the commit is gone, what is left is a text
    task.
    """
    known: dict[str, bool] = {}
    fresh = [_refreshed(task, shop, commands, known) if task.workspace else task for task in tasks]
    return fresh, sum(bool(old.workspace) and not new.workspace for old, new in zip(tasks, fresh, strict=True))


def workspace_problem(task: TaskRecord) -> str:
    """What is wrong with a task's workspace or with its conditions on files, in a few words; empty when nothing is."""
    conditions = conditions_of(task.judge)
    place = task.workspace
    if not place:
        asked = ", ".join(dict.fromkeys(str(row["op"]) for row in conditions))
        return f"{asked}: only a task with a workspace can be judged by its changes" if asked else ""
    if required_tools(task.judge):
        return "tool_called cannot be told of an agent that works in a checkout"
    wrong = (condition_problem(row["op"], row.get("arg")) for row in conditions)
    return _place_problem(place) or next((problem for problem in wrong if problem), "")


def as_text_task(task: TaskRecord) -> TaskRecord:
    """The task without its workspace and its conditions on the work; one that had no other checks is judged without."""
    judge = _with_checks(task.judge, [row for row in _checks(task) if not _is_condition(row)])
    kind = task.reference_kind
    if kind == "rule" and not judge.get("checks"):
        kind, judge = ("rubric" if task.reference.strip() else "none"), {}
    return replace(task, workspace={}, judge=judge, reference_kind=kind)


def with_conditions(task: TaskRecord, commands: Sequence[str]) -> TaskRecord:
    """The task with the conditions that every coding task has, each once: something changes, the commands succeed."""
    wanted = [{"op": "file_changed", "arg": ANY_FILE}, *({"op": "command", "arg": command} for command in commands)]
    have = _checks(task)
    checks = [*have, *(check for check in wanted if check not in have)]
    return replace(task, judge=_with_checks(task.judge, checks))


def _place_problem(place: Mapping[str, Any]) -> str:
    unknown = ", ".join(sorted(repr(name) for name in set(place) - {"commit", "folder"}))
    if unknown:
        return f"workspace has {clip(unknown, 80)}; expected commit and folder"
    commit, folder = place.get("commit"), place.get("folder", "")
    if not isinstance(commit, str) or not _REVISION.fullmatch(commit):
        return f"workspace.commit is {clip(repr(commit), 80)}; expected the name of a commit"
    inner = folder.replace("\\", "/") if isinstance(folder, str) else "/"
    if inner.startswith(("/", "~")) or ".." in inner.split("/") or "\0" in inner:
        return f"workspace.folder is {clip(repr(folder), 80)}; expected a folder in the repository, such as `src`"
    return ""


def _placed(
    task: TaskRecord, sessions: dict[str, SessionDigest], shop: Repository, commands: Sequence[str]
) -> TaskRecord:
    if task.origin == "dream" or required_tools(task.judge):
        return task
    for name in task.source_sessions:
        digest = sessions.get(name)
        workspace = _workspace(digest, shop) if digest is not None else {}
        if workspace:
            return replace(with_conditions(task, commands), workspace=workspace)
    return task


def _workspace(digest: SessionDigest, shop: Repository) -> dict[str, Any]:
    """Where a session worked and on what; {} when it changed nothing here, or there was no commit yet."""
    file_there = shop.inside("file", digest.project)
    when = _epoch(digest.started_at)
    touched = any(shop.inside(file, digest.project) is not None for file in digest.files_touched)
    if file_there is None or when is None or not touched:
        return {}
    commit = shop.commit_at(when, digest.git_branch)
    folder = PurePosixPath(file_there).parent
    return {"commit": commit, "folder": "" if folder == PurePosixPath() else str(folder)} if commit else {}


def _epoch(text: str) -> float | None:
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=timezone.utc)).timestamp()


def _refreshed(
    task: TaskRecord, shop: Repository | None, commands: Sequence[str], known: dict[str, bool]
) -> TaskRecord:
    commit = task.workspace.get("commit")
    if shop is None or not isinstance(commit, str):
        return as_text_task(task)
    if commit not in known:
        known[commit] = _exists(shop.resolve, commit)
    if not known[commit]:
        return as_text_task(task)
    kept = [row for row in _checks(task) if row.get("op") != "command"]
    return with_conditions(replace(task, judge=_with_checks(task.judge, kept)), commands)


def _exists(resolve: Callable[[str], str], commit: str) -> bool:
    try:
        return bool(resolve(commit))
    except UsageProblem:
        return False


def _checks(task: TaskRecord) -> list[Check]:
    checks = task.judge.get("checks") if isinstance(task.judge, dict) else None
    return [row for row in checks if isinstance(row, dict)] if isinstance(checks, list) else []


def _with_checks(judge: Any, checks: list[Check]) -> Check:
    rest = {key: value for key, value in judge.items() if key != "checks"} if isinstance(judge, dict) else {}
    return {**rest, "checks": checks} if checks else rest


def _is_condition(check: Check) -> bool:
    return check.get("op") in WORK_OPS
