# A copy of skillopt/utils/process_watch.py, made by scripts/vendor.py: change the original, then run that.
"""A small process that ends the families of this interpreter when it dies without having done so itself.

It costs one start for an interpreter that runs other programs, and holds for `kill -9` too. It finds the families by
their marks, so it is there only where /proc shows them.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from skillopt_sleep.vendored.utils import process_family
from skillopt_sleep.vendored.utils.process_family import MARK, marks_show


class Watch:
    """The watching process of one interpreter. It ends when the interpreter does: then its input is at its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if marks_show() and sys.executable:
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(Path(process_family.__file__).resolve())],
                    cwd="/",
                    env={MARK: os.environ.get(MARK, "")},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,
                )
                atexit.register(self._close)

    @contextlib.contextmanager
    def over(self, mark: str) -> Iterator[None]:
        """While inside, the family with this mark is ended should this interpreter die."""
        self._say(f"+{mark}")
        try:
            yield
        finally:
            self._say(f"-{mark}")

    def _say(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):  # it is gone, or the interpreter is ending
                self._process.stdin.write(f"{line}\n".encode())

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)


def watch() -> Watch:
    """The watch of this interpreter, started on first use; a forked interpreter has its own."""
    return _watch_of(os.getpid())


@functools.cache
def _watch_of(pid: int) -> Watch:  # noqa: ARG001 - the key
    return Watch()
