# A copy of skillopt/utils/process_family.py, made by scripts/vendor.py: change the original, then run that.
"""A started program with everything that came from it, and how all of that is ended.

Members are found by their process group, by their parents, and (where /proc shows it) by a mark in their environment
that they inherited: a daemon that left its group and lost its parents still carries the mark. Who was found once stays
a member, also when its parents end first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MARK = "SKILLOPT_PROCESS_MARK"
GRACE_SECONDS = 0.5
_KILL_ROUNDS = 100
_ROUND_SECONDS = 0.01
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class _Seen:
    """One living process of this machine. `start`: when it started, in ticks; 0 when that is not known."""

    pid: int
    parent: int
    group: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Family:
    """A program started as the leader of its own process group, and all its descendants.

    `pid`: the program; 0 when it is not known. `mark`: what the environment variable `MARK` of the family holds.
    """

    pid: int
    mark: str

    def end(self, grace: float = GRACE_SECONDS) -> None:
        """Ask every member to end, and after `grace` seconds kill those that are left."""
        if sys.platform == "win32":
            _end_tree(self.pid)
            return
        until = time.monotonic() + grace
        known: dict[int, int] = {}
        while (alive := self._members(known)) and time.monotonic() < until:
            self._send(alive.keys() - known.keys(), signal.SIGTERM)
            known |= alive
            time.sleep(_ROUND_SECONDS)
        for _ in range(_KILL_ROUNDS):
            if not alive:
                return
            known |= alive
            self._send(alive.keys(), signal.SIGKILL)
            time.sleep(_ROUND_SECONDS)
            alive = self._members(known)

    def _members(self, known: Mapping[int, int]) -> dict[int, int]:
        """When each living member started, by its id (ended ones that nobody has waited for are none).

        Those of `known` that live on are members, whatever they left.
        """
        seen = {process.pid: process for process in _processes() if process.pid != os.getpid()}
        inside = {pid for pid, process in seen.items() if self.pid and self.pid in (pid, process.group)}
        inside |= {pid for pid, process in seen.items() if known.get(pid) == process.start}
        inside |= {pid for pid in seen if pid not in inside and _is_marked(pid, self.mark)}
        roots = inside | ({self.pid} if self.pid else set())
        while more := {pid for pid, process in seen.items() if process.parent in roots and pid not in inside}:
            inside |= more
            roots |= more
        return {pid: seen[pid].start for pid in inside}

    def _send(self, members: Iterable[int], number: int) -> None:
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def new_mark() -> str:
    """A mark for one family; it holds the marks of the families that this process itself belongs to."""
    return f"{os.environ.get(MARK, '')} {uuid.uuid4().hex}".strip()


def marks_show() -> bool:
    """Whether the mark of a process can be read here."""
    return (_PROC / "self" / "environ").exists()


def group_options() -> Mapping[str, object]:
    """What `subprocess.Popen` needs so that the program leads its own group."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


def _processes() -> Iterator[_Seen]:
    if not (_PROC / "self" / "stat").exists():
        yield from _listed_processes()
        return
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # "pid (name) state ppid pgrp …"; the name may hold blanks and brackets
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    yield _Seen(int(entry.name), int(fields[1]), int(fields[2]), int(fields[19]))


def _listed_processes() -> Iterator[_Seen]:
    """The same by `ps`, for systems without /proc."""
    try:
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, check=False, timeout=5
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in listed.splitlines():
        with contextlib.suppress(ValueError):
            pid, parent, group, state = line.split()
            if not state.startswith(b"Z"):
                yield _Seen(int(pid), int(parent), int(group))


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False


def _end_tree(pid: int) -> None:
    """Windows: end a process and its descendants."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False, timeout=10)


def end_what_is_left(lines: Iterable[bytes]) -> None:
    """Read `+mark` and `-mark` for families that began and ended, to the end; then end those that are left."""
    left: dict[str, None] = {}
    for line in lines:
        sign, mark = line[:1], line[1:].strip().decode()
        if sign == b"+":
            left[mark] = None
        else:
            left.pop(mark, None)
    for mark in left:
        Family(0, mark).end()


if __name__ == "__main__":
    end_what_is_left(sys.stdin.buffer)
