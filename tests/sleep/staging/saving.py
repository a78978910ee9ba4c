"""A person who saves a file at the worst moments: a process of its own, as an editor is.

`saving.py FILE HOW` reads lines "ROUND DELAY TIMES" (microseconds), saves FILE so often, and tells when it is done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

WAYS = ("rename", "truncate", "open first", "append")


def text(number: int, time_: int) -> str:
    """What a save holds: no two are alike."""
    return f"round {number} save {time_} " + "x" * 200 + "\n"


class Person:
    """The process, for the tests that use it."""

    def __init__(self, file: Path, how: str) -> None:
        command = [sys.executable, str(Path(__file__)), str(file), how]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._answer()

    def start(self, number: int, delay: int, times: int) -> None:
        """Begin to save, `delay` microseconds from now."""
        assert self.process.stdin
        self.process.stdin.write(f"{number} {delay} {times}\n".encode())

    def _answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().decode().strip()

    def wait(self) -> None:
        """Until all was saved."""
        assert self._answer() == "done"

    def __enter__(self) -> Person:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.process.communicate()


def save(file: str, how: str, data: bytes) -> None:
    """Save once, as an editor of this kind does."""
    if how == "rename":
        Path(f"{file}~").write_bytes(data)
        Path(f"{file}~").rename(file)
        return
    flags = {"truncate": os.O_TRUNC, "append": os.O_APPEND}.get(how, 0)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    spin(20 if how == "open first" else 0)
    os.write(handle, data)
    if how == "open first":
        os.ftruncate(handle, len(data))
    os.close(handle)


def spin(microseconds: float) -> None:
    """Wait precisely."""
    until = time.perf_counter() + microseconds / 1e6
    while time.perf_counter() < until:
        pass


def main() -> None:
    """Save as told until there is nothing more to do."""
    file, how = sys.argv[1:]
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        number, delay, times = map(int, line.split())
        spin(delay)
        for time_ in range(times):
            save(file, how, text(number, time_).encode())
        os.write(1, b"done\n")


if __name__ == "__main__":
    main()
