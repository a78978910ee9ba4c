"""The Windows Task Scheduler as a scheduler: a daily task that starts a generated `run.ps1` in the project."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.schedule.job import LOG_NAME, Job, package_root, written
from skillopt_sleep.schedule.program import done, on_path
from skillopt_sleep.show import plain_line

PROGRAM = "schtasks"
PREFIX = "SkillOpt-Sleep-"
LONGEST_COMMAND = 261
"""Characters that `schtasks /tr` takes."""

_QUOTES = re.compile("(['\u2018\u2019\u201a\u201b])")  # PowerShell takes each of them for a single quote


def available() -> bool:
    """Whether there is a `schtasks` program."""
    return on_path(PROGRAM)


def task_name(project: str | Path) -> str:
    """The name of a project's task."""
    return PREFIX + paths.project_key(project)


def helper_file(project: str | Path) -> Path:
    """The script that the task starts."""
    return paths.project_folder(project) / "run.ps1"


def log_file(project: str | Path) -> Path:
    """The file that collects the output of the nights."""
    return paths.project_folder(project) / LOG_NAME


def helper_text(job: Job) -> str:
    """The script. The night writes its output to the log itself, because PowerShell would change its encoding."""
    argv = " ".join(literal(word) for word in job.argv)
    return (
        "# Made by `skillopt-sleep schedule`, which writes it again.\n"
        "$ErrorActionPreference = 'Stop'\n"
        f"Set-Location -LiteralPath {literal(str(job.project))}\n"
        f"Set-Location -LiteralPath {literal(str(package_root()))}\n"
        "$ErrorActionPreference = 'Continue'\n"
        f"& {argv}\n"
        "exit $LASTEXITCODE\n"
    )


def literal(text: str) -> str:
    """`text` in single quotes, as PowerShell reads it."""
    return "'" + _QUOTES.sub(r"\1\1", text) + "'"


def command_of(job: Job) -> str:
    """What the task starts. Raises UsageProblem for a path that cannot stand in it."""
    helper = str(helper_file(job.project))
    if any('"' in word for word in (helper, *job.argv)):
        raise UsageProblem(f"{helper}: a path or an argument with a double quote cannot stand in a Windows task.")
    command = f'powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{helper}"'
    if len(command) > LONGEST_COMMAND:
        raise UsageProblem(
            f"{helper}: the path is too long; a Windows task takes {LONGEST_COMMAND} characters. Move the project."
        )
    return command


def install(job: Job) -> list[str]:
    """Write the script and make the task; lines that say what was done. Raises UsageProblem and ScheduleFailed."""
    command = command_of(job)
    helper = helper_file(job.project)
    name = task_name(job.project)
    with written(replace(job, entry=command)):
        paths.write_private(helper, b"\xef\xbb\xbf" + helper_text(job).replace("\n", "\r\n").encode("utf-8"))
        done(PROGRAM, "/create", "/tn", name, "/tr", command, "/sc", "daily", "/st", job.time, "/f")
    return [f"Made the task {name}, which starts {helper}."]


def remove(project: str | Path | None) -> list[str]:
    """Delete the task of a project, or all of this program's; [] when there were none."""
    there = entries()
    names = [task_name(project)] if project is not None else [line.split()[0] for line in there]
    said = []
    for name in names:
        if any(line.split()[0] == name for line in there):
            done(PROGRAM, "/delete", "/tn", name, "/f")
            said.append(f"Deleted the task {name}.")
    if project is not None:
        helper_file(project).unlink(missing_ok=True)
    return said


def entries() -> list[str]:
    """A line for each task of this program: its name and when it runs next. Raises ScheduleFailed."""
    rows = csv.reader(done(PROGRAM, "/query", "/fo", "csv", "/nh").stdout.splitlines())
    found = {}
    for row in rows:
        name = row[0].lstrip("\\") if row else ""
        if name.startswith(PREFIX):
            found[name] = plain_line(" ".join([name, *row[1:]]))
    return list(found.values())
