"""What a scheduler starts: `python -m skillopt_sleep.scheduled JOB run ...` runs a night as its job file says.

A scheduler starts programs with hardly any environment. So the variables that the job kept are set (PATH joined with
the one there is), secrets are read from `<home>/env`, and how the night ended is written beside the job.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.config import CONFIG_VARIABLE
from skillopt_sleep.errors import SleepError, UsageProblem
from skillopt_sleep.schedule.job import Job, read_job
from skillopt_sleep.schedule.last import LastNight, record_night

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_TAIL = 4000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the night of the job file `argv[0]` with the arguments after it; the exit code of the command line."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) < 2:
        sys.stderr.write("Usage: python -m skillopt_sleep.scheduled JOB run [flags]\n")
        return UsageProblem.exit_code
    try:
        job = read_job(Path(words[0]))
    except SleepError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    with _output(job.log), _heard() as heard:
        return _night(job, words[1:], heard)


def apply_environment(job: Job) -> None:
    """Set what the job kept, then what `<home>/env` holds; what is set already stays, PATH is joined.

    Raises UsageProblem when the file of secrets can be read by others or is not understood.
    """
    for name, value in job.environment.items():
        os.environ.setdefault(name, value)
    kept = [*job.environment.get("PATH", "").split(os.pathsep), *os.environ.get("PATH", "").split(os.pathsep)]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(filter(None, kept)))
    home = job.environment.get(paths.HOME_VARIABLE) or str(paths.sleep_home())
    os.environ[paths.HOME_VARIABLE] = home
    os.environ[CONFIG_VARIABLE] = str(job.config_file)
    for name, value in read_env(Path(home) / "env").items():
        os.environ.setdefault(name, value)


def read_env(file: Path) -> dict[str, str]:
    """The variables of a file of `NAME=value` lines; {} when there is none.

    Raises UsageProblem, never showing a value, when others than its owner can read it or a line is not understood.
    """
    try:
        if os.name == "posix" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageProblem(f"{file}: others can read it; run `chmod 600` on it, as it holds secrets.")
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageProblem(f"{file}: it cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise UsageProblem(f"{file}: it is not UTF-8.") from None
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise UsageProblem(f"{file}:{number}: expected NAME=value.")
        found[match[1]] = _unquoted(match[2])
    return found


def _night(job: Job, words: list[str], heard: _Tail) -> int:
    began = time.time()
    record_night(job.folder, LastNight(began))
    stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(began))
    sys.stdout.write(f"--- {stamp} scheduled night of {job.project}\n")
    sys.stdout.flush()
    code: int | None = None
    try:
        apply_environment(job)
        from skillopt_sleep.cli import main as command_line

        os.chdir(job.project)
        code = command_line(words)
    except SleepError as error:
        sys.stderr.write(f"{error}\n")
        code = error.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        code = 1
        raise
    finally:
        record_night(job.folder, LastNight(began, time.time(), code, heard.tail))
    return code


class _Tail(io.TextIOBase):
    """Passes text on to a stream and remembers the end of it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.tail = ""

    def write(self, text: str) -> int:
        self.tail = (self.tail + text)[-_TAIL:]
        return int(self._stream.write(text))

    def flush(self) -> None:
        self._stream.flush()

    def writable(self) -> bool:
        return True


@contextmanager
def _heard() -> Iterator[_Tail]:
    stream = sys.stderr
    heard = _Tail(stream)
    sys.stderr = heard
    try:
        yield heard
    finally:
        sys.stderr = stream


@contextmanager
def _output(log: str) -> Iterator[None]:
    """Everything that is printed goes to the end of `log`, when that is not blank."""
    if not log:
        yield
        return
    paths.append_private(Path(log), "")
    streams = sys.stdout, sys.stderr
    with Path(log).open("a", encoding="utf-8", errors="backslashreplace") as stream:
        sys.stdout = sys.stderr = stream
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


if __name__ == "__main__":
    sys.exit(main())
