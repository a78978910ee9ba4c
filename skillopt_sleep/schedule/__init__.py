"""The nightly job of a project at the scheduler of the system: cron, systemd timers of the person, Windows tasks.

`schedule` and `unschedule` answer (ok, message): what was done exactly, or why nothing was. The night itself is
started by `skillopt_sleep.scheduled` from a job file, so that it works with the settings and the environment of when it
was scheduled (see `job`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.errors import SleepError, UsageProblem
from skillopt_sleep.schedule import cron, systemd, windows
from skillopt_sleep.schedule.job import Job, check_line, forget_job, job_folder, make_job
from skillopt_sleep.schedule.last import LastNight as LastNight
from skillopt_sleep.schedule.last import last_night as last_night
from skillopt_sleep.schedule.program import ScheduleFailed as ScheduleFailed
from skillopt_sleep.show import plain_line

Via = Literal["auto", "cron", "systemd", "windows"]
_SCHEDULERS: dict[str, Any] = {"cron": cron, "systemd": systemd, "windows": windows}


def schedule(  # noqa: PLR0913 - the published signature, with what it lacked
    project: str | Path,
    *,
    backend: str = "mock",
    hour: int = 3,
    minute: int = 17,
    extra: str = "",
    python: str | None = None,
    config: SleepConfig | None = None,
    via: Via = "auto",
) -> tuple[bool, str]:
    """Run a night of `project` every day at `hour`:`minute`, in place of what was scheduled for it before.

    `config`: the settings of the night, kept in the job file; its backend and project count when they are set. Without
    it they are read as on a night with `backend`. `extra`: further arguments of `run`, quoted as for a shell. `python`:
    the interpreter, by default this one. `via`: which scheduler; `auto` is Windows tasks on Windows, else cron, else
    systemd.
    """
    try:
        chosen = _settings(project, backend, config)
        backends = " and ".join(chosen.backends)  # raises when none is chosen
        name = _scheduler(via)
        log = str(windows.log_file(chosen.project)) if name == "windows" else ""
        job = make_job(chosen, time=(hour, minute), extra=extra, python=python, log=log)
        said = _SCHEDULERS[name].install(job)
    except (SleepError, OSError) as error:
        return False, f"Not scheduled: {error}"
    head = _headline(job, chosen, backends)
    return True, "\n".join([head, *said, *_elsewhere(job.project, name), *_details(job, backends)])


def unschedule(project: str | Path | None = None, *, all_projects: bool = False) -> tuple[bool, str]:
    """Take the job of `project` (or, with `all_projects`, every job of this program) from every scheduler."""
    if project is None and not all_projects:
        return False, "Name the project whose nights shall end, or ask for all of them."
    place = None if all_projects or project is None else paths.expand(project)
    said: list[str] = []
    failed: list[str] = []
    for scheduler in _present():
        try:
            said += scheduler.remove(place)
        except (SleepError, OSError) as error:
            failed.append(str(error))
    if failed:
        return False, "\n".join([*said, *failed])
    for folder in [job_folder(place)] if place is not None else sorted((paths.sleep_home() / "jobs").glob("*")):
        forget_job(folder)
    whose = "any project" if place is None else str(place)
    return True, "\n".join(said) if said else f"Nothing was scheduled for {plain_line(whose)}; nothing was changed."


def list_scheduled() -> list[str]:
    """A line for each job of this program, of every scheduler. Raises SleepError when a scheduler cannot be asked."""
    return [line for scheduler in _present() for line in scheduler.entries()]


def _settings(project: str | Path, backend: str, config: SleepConfig | None) -> SleepConfig:
    """The settings of the night. Raises UsageProblem."""
    place = str(paths.expand(check_line(str(project))))
    if config is None:
        return load_config(invoked_project=place, projects="invoked", backend=backend)
    return config.replace(invoked_project=place, backend=None if config.get("backend") else backend)


def _scheduler(via: str) -> str:
    if via != "auto":
        if via not in _SCHEDULERS:
            raise UsageProblem(f"There is no scheduler {via!r}; choose cron, systemd or windows.")
        return via
    if os.name == "nt":
        return "windows"
    if cron.available():
        return "cron"
    if systemd.available():
        return "systemd"
    raise UsageProblem("there is no `crontab` and no `systemctl` on PATH. Install cron, then run this again.")


def _present() -> Sequence[Any]:
    """The schedulers that can be asked here; units of systemd are files and can be listed without it."""
    return [one for one in (cron, windows) if one.available()] + [systemd]


def _elsewhere(project: Path, name: str) -> list[str]:
    """Removes the job from the schedulers that it shall not be at any more."""
    said = []
    for scheduler in _present():
        if scheduler is not _SCHEDULERS[name]:
            try:
                said += scheduler.remove(project)
            except (SleepError, OSError) as error:
                said.append(f"Another scheduler could not be asked for an older job of this project: {error}")
    return said


def _headline(job: Job, config: SleepConfig, backends: str) -> str:
    model = f", model {plain_line(config.get('model'))}" if config.get("model") else ""
    used = f"backend {backends}{model}, sessions of {config.get('transcript_source')}"
    used += ", coding tasks in checkouts" if config.get("replay_mode") == "worktree" else ""
    return f"Scheduled: every day at {job.time} a night of {plain_line(job.project)}, {used}."


def _details(job: Job, backends: str) -> list[str]:
    said = [
        "Accepted changes of the managed skill and memory are adopted without asking."
        if job.adopts
        else "Changes are only staged; `skillopt-sleep adopt` puts them live.",
        f"The settings of now are kept in {job.config_file}; schedule again after changing them.",
        f"Output: {paths.project_folder(job.project) / 'cron.log'}",
    ]
    if backends == "mock":
        said.append("The backend mock calls no model and learns nothing from sessions; choose another with --backend.")
    if job.pass_through:
        said.append(
            f"Not stored, because they are secrets: {', '.join(job.pass_through)}. A night takes them from its "
            f"environment or from {paths.sleep_home() / 'env'} (lines NAME=value, readable by you alone)."
        )
    return [*said, f"Command: {shlex.join(job.argv)}"]
