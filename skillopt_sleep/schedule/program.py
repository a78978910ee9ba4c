"""The one way to ask a scheduler's program something."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from skillopt_sleep.errors import SleepError
from skillopt_sleep.show import plain_line
from skillopt_sleep.vendored.utils.process import ProcessResult, child_environment, run_process

_SECONDS = 60.0


class ScheduleFailed(SleepError):
    """The scheduler of the system did not do what it was asked to."""

    code = "schedule_failed"


def on_path(name: str) -> bool:
    """Whether there is such a program."""
    return shutil.which(name) is not None


def ask(name: str, *arguments: str, stdin: str = "", keep: Sequence[str] = ()) -> ProcessResult:
    """Run the program with untranslated messages. `keep`: variables that it needs. Raises ScheduleFailed."""
    program = shutil.which(name)
    if program is None:
        raise ScheduleFailed(f"There is no `{name}` program on PATH; install it, or choose another scheduler.")
    env = child_environment(*keep, LC_ALL="C")
    try:
        folder = Path(tempfile.gettempdir())
        return run_process([program, *arguments], cwd=folder, env=env, stdin=stdin, timeout=_SECONDS)
    except OSError as error:
        raise ScheduleFailed(f"{program} cannot be started ({error.strerror}).") from None


def done(name: str, *arguments: str, keep: Sequence[str] = ()) -> ProcessResult:
    """As `ask`, for what has to end well. Raises ScheduleFailed."""
    result = ask(name, *arguments, keep=keep)
    if result.code != 0:
        raise ScheduleFailed(f"`{name} {' '.join(arguments[:3])}` failed ({reason(result)}).")
    return result


def reason(result: ProcessResult) -> str:
    """Why a program failed, on one line."""
    ended = "it took too long" if result.timed_out else f"exit {result.code}"
    return plain_line(result.stderr)[:300] or ended
