"""The crontab as a scheduler: read, changed by one block, written with `crontab -`, read back.

A table that could not be read is never written. The one before the last change is kept.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.locks import FileLock
from skillopt_sleep.schedule import table
from skillopt_sleep.schedule.job import Job, known_job, shell_command, written
from skillopt_sleep.schedule.program import ScheduleFailed, ask, on_path, reason
from skillopt_sleep.show import plain_line

PROGRAM = "crontab"
LONGEST_COMMAND = 990
"""Bytes of a command; some crons refuse or cut longer ones."""

LOCK_SECONDS = 10.0
_BACKUPS = 20
_NONE = re.compile(r"no crontab for|can't open '[^']*': no such file", re.IGNORECASE)
_Change = Callable[[str], tuple[str, list[str]]]


def available() -> bool:
    """Whether there is a `crontab` program."""
    return on_path(PROGRAM)


def entry_of(job: Job) -> str:
    """The line of a job. Raises UsageProblem when cron could misread it."""
    command = f"{shell_command(job)}  {table.mark_of(job.project)}"
    if re.search(r"\\[\\%]", command):
        raise UsageProblem("A path with a backslash before a backslash or a % cannot be written into a crontab safely.")
    escaped = command.replace("%", r"\%")
    if len(escaped.encode("utf-8", "surrogatepass")) > LONGEST_COMMAND:
        raise UsageProblem(
            f"The command is longer than the {LONGEST_COMMAND} bytes that every cron takes; move the project or the "
            "Python environment to a shorter path, or schedule with systemd."
        )
    return f"{job.minute} {job.hour} * * *  {escaped}"


def install(job: Job) -> list[str]:
    """Put the job's line into the crontab; lines that say what was done. Raises UsageProblem and ScheduleFailed."""
    entry = entry_of(job)
    before = known_job(job.project)
    mark = table.mark_of(job.project)
    with written(replace(job, entry=entry)):
        replaced, backup, text = _changed(lambda text: table.with_entry(text, mark, entry))
    said = [f"{'Replaced' if replaced else 'Added'} one line of the crontab."]
    if before is not None and before.entry:
        edited = [line for line in replaced if line != before.entry]
        said += [f"The line had been edited by hand; it was: {plain_line(line)}" for line in edited]
    others = table.parse(text).others
    if others:
        said.append(f"Other lines in the block were kept: {plain_line('; '.join(others))[:200]}")
    if backup is not None:
        said.append(f"The crontab before this: {backup}")
    return said


def remove(project: str | Path | None) -> list[str]:
    """Take out the line of a project, or all lines for None; lines that say what was done, [] when there was none."""
    mark = None if project is None else table.mark_of(project)
    removed, backup, text = _changed(lambda text: table.without_entries(text, mark))
    if not removed:
        return []
    said = [f"Removed {len(removed)} line{'s' if len(removed) > 1 else ''} of the crontab."]
    others = table.parse(text).others
    if others:
        said.append(f"Other lines in the block were kept: {plain_line('; '.join(others))[:200]}")
    return [*said, f"The crontab before this: {backup}"]


def entries() -> list[str]:
    """This program's lines of the crontab. Raises UsageProblem and ScheduleFailed."""
    return table.parse(_read()).entries


def _changed(change: _Change) -> tuple[list[str], Path | None, str]:
    """(lines that went, the copy of the crontab before, the new text)."""
    with FileLock(paths.sleep_home() / "locks" / "crontab.lock", "the crontab", wait=LOCK_SECONDS):
        before = _read()
        after, lines = change(before)
        if after == before:
            return lines, None, after
        backup = _keep(before) if before else None
        _write(before, after, backup)
        return lines, backup, after


def _read() -> str:
    """The crontab; "" when there is none. Raises ScheduleFailed when it cannot be read."""
    result = ask(PROGRAM, "-l")
    if result.code == 0 and not result.truncated:
        if "\ufffd" in result.stdout:
            raise ScheduleFailed("The crontab holds bytes that are no UTF-8, so it is left alone; edit it by hand.")
        return result.stdout
    if not result.truncated and result.code is not None and not result.stdout and _NONE.search(result.stderr):
        return ""
    why = "it is too long" if result.truncated else reason(result)
    raise ScheduleFailed(f"The crontab cannot be read ({why}), so nothing was changed; `crontab -l` has to work.")


def _write(before: str, after: str, backup: Path | None) -> None:
    result = ask(PROGRAM, "-", stdin=after)
    if result.code == 0 and _same(_read(), after):
        return
    why = reason(result) if result.code != 0 else "what was read back differs from what was written"
    if not _same(_read(), before):
        ask(PROGRAM, "-", stdin=before)
    kept = f" The crontab as it was: {backup}." if backup is not None else ""
    if not _same(_read(), before):
        raise ScheduleFailed(f"The crontab was not written as asked ({why}) and may be wrong now; look at it.{kept}")
    raise ScheduleFailed(f"The crontab was not written as asked ({why}); it is as it was before.{kept}")


def _same(found: str, wanted: str) -> bool:
    """Whether they are equal but for comments that some crontab programs put on top."""
    head = found[: len(found) - len(wanted)]
    return found.endswith(wanted) and all(line.startswith("#") for line in head.splitlines())


def _keep(text: str) -> Path:
    folder = paths.sleep_home() / "backups"
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + f"-{time.time_ns() % 10**9:09d}"
    path = folder / f"crontab-{stamp}.txt"
    paths.write_private(path, text)
    for old in sorted(folder.glob("crontab-*.txt"))[:-_BACKUPS]:
        old.unlink(missing_ok=True)
    return path
