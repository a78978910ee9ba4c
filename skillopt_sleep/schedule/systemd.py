"""Timers of the person's own systemd as a scheduler: a night that was missed is made up for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.schedule.job import Job, shell_command, written
from skillopt_sleep.schedule.program import ScheduleFailed, done, on_path
from skillopt_sleep.show import plain_line
from skillopt_sleep.vendored.utils.files import atomic_write_text

PROGRAM = "systemctl"
PREFIX = "skillopt-sleep-"
_BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_ABOUT = "# Made by `skillopt-sleep schedule`, which writes it again; `skillopt-sleep unschedule` removes it."


def available() -> bool:
    """Whether there is a `systemctl` program."""
    return on_path(PROGRAM)


def unit_folder() -> Path:
    """Where a person's own units lie."""
    base = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return paths.expand(base or "~/.config") / "systemd" / "user"


def unit_name(project: str | Path) -> str:
    """The name of a project's units without its ending."""
    return PREFIX + paths.project_key(project)


def units(job: Job) -> dict[str, str]:
    """The texts of the service and of the timer, by file name."""
    name = unit_name(job.project)
    command = shell_command(job)
    service = (
        f"{_ABOUT}\n[Unit]\nDescription=SkillOpt-Sleep night of {_specifiers(str(job.project))}\n\n"
        f"[Service]\nType=oneshot\nExecStart=/bin/sh -c {_quoted(command)}\n"
    )
    timer = (
        f"{_ABOUT}\n[Unit]\nDescription=SkillOpt-Sleep, every night at {job.time}\n\n"
        f"[Timer]\nOnCalendar=*-*-* {job.time}:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    return {f"{name}.service": service, f"{name}.timer": timer}


def install(job: Job) -> list[str]:
    """Write the units and start the timer; lines that say what was done. Raises ScheduleFailed."""
    name = unit_name(job.project)
    folder = unit_folder()
    texts = units(job)
    before = {file: _text(folder / file) for file in texts}
    with written(replace(job, entry=texts[f"{name}.service"])):
        _start(name, folder, texts, before)
    edited = [file for file, old in before.items() if old is not None and old != texts[file]]
    said = [f"{'Replaced' if any(before.values()) else 'Added'} the timer {folder / f'{name}.timer'} and started it."]
    said += [f"{file} was different; its text before this: {_kept(file, before[file])}" for file in edited]
    return [*said, "It runs while you are signed in; `loginctl enable-linger` lets it run at all times."]


def remove(project: str | Path | None) -> list[str]:
    """Stop and remove the units of a project, or all of this program's; [] when there were none."""
    folder = unit_folder()
    names = [unit_name(project)] if project is not None else _names(folder)
    there = [name for name in names if (folder / f"{name}.timer").exists() or (folder / f"{name}.service").exists()]
    if not there:
        return []
    said = []
    for name in there:
        if available():
            _systemctl("disable", "--now", f"{name}.timer")
        for ending in ("timer", "service"):
            (folder / f"{name}.{ending}").unlink(missing_ok=True)
        said.append(f"Removed the timer {folder / f'{name}.timer'}.")
    if available():
        _systemctl("daemon-reload")
    return said


def entries() -> list[str]:
    """A line for each timer: when, and what its service runs."""
    folder = unit_folder()
    found = []
    for name in _names(folder):
        when = _value(folder / f"{name}.timer", "OnCalendar=")
        about = _value(folder / f"{name}.service", "Description=")
        found.append(plain_line(f"{name}.timer {when} {about}"))
    return found


def _start(name: str, folder: Path, texts: Mapping[str, str], before: Mapping[str, str | None]) -> None:
    try:
        for file, text in texts.items():
            atomic_write_text(folder / file, text)
        _systemctl("daemon-reload")
        _systemctl("enable", "--now", f"{name}.timer")
    except (ScheduleFailed, OSError) as error:
        for file, old in before.items():
            _restore(folder / file, old)
        if isinstance(error, OSError):
            raise ScheduleFailed(f"{folder}: the units cannot be written ({error.strerror}).") from None
        raise


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"{PREFIX}*.timer"))


def _value(path: Path, key: str) -> str:
    lines = (_text(path) or "").splitlines()
    return next((line[len(key) :] for line in lines if line.startswith(key)), "")


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None


def _restore(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    else:
        atomic_write_text(path, text)


def _kept(file: str, text: str | None) -> Path:
    """A copy of a unit's text before the last change."""
    copy = paths.sleep_home() / "backups" / f"{file}.before"
    paths.write_private(copy, text or "")
    return copy


def _quoted(command: str) -> str:
    """One argument as systemd reads it: quotes, backslashes, specifiers and variables escaped."""
    escaped = command.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{_specifiers(escaped)}"'


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _systemctl(*arguments: str) -> None:
    done(PROGRAM, "--user", *arguments, keep=_BUS)
