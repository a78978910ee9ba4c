# A copy of skillopt/utils/sandbox_keeper.py, made by scripts/vendor.py: change the original, then run that.
"""Starts one program under limits, keeps an eye on it and everything that comes from it, and leaves none of that.

Run by `skillopt.utils.sandbox` as `python -I -S sandbox_keeper.py ORDER`, outside a room or as the first process of
one; it imports the standard library only. `ORDER` is JSON: `argv`, `folder`, `env` (all of the program's environment),
`alone` (this is the first process of a room: whatever else lives here is the program's), `spaces` (temporary file
systems that count as disk) and the limits `cpu_seconds`, `memory_bytes`, `address_bytes` (0: `memory_bytes`),
`file_bytes`, `disk_bytes`, `processes`, `open_files`.

It ends with the program's exit code, 128 + N when signal N ended it, 137 when a limit did (standard error says
which), 126 or 127 when the program cannot be started.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_EVERY_SECONDS = 0.05
_REST = 4  # looking at files takes at most one part in five of a processor, however many there are
_ROUNDS, _ROUND_SECONDS = 400, 0.005
_ENDED_BY_LIMIT = 128 + 9
_SMALLEST = 4096  # what an empty file counts
_LONGEST_PATH = 3500  # bytes; the system looks up no more than 4,096, and one name may have 255
_PROCESSORS = 4  # numeric libraries start a thread for each one, and every thread takes of the memory
_PROC = Path("/proc")
_SET_NOT_READABLE, _SET_NO_NEW_RIGHTS, _SET_ADOPTS = 4, 38, 36


class Keeper:
    """The program that runs, what its folder held before, and the limits."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.pid = 0
        self._folder = Path(order["folder"])
        self._before = {path: (found.st_ino, found.st_blocks) for path, found in _files(self._folder)}
        self._bytes_before = sum(max(_SMALLEST, blocks * 512) for _, blocks in self._before.values())
        self._unseen: set[int] = set()
        self._due = 0.0

    def start(self) -> None:
        """Start the program in a group of its own."""
        self.pid = os.fork()
        if self.pid:
            return
        try:
            os.setsid()
            for number in {signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ}:
                signal.signal(number, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            set_limits(self.order)
            os.chdir(self._folder)
            os.execvpe(self.order["argv"][0], self.order["argv"], self.order["env"])
        except OSError as error:
            _say(f"{self.order['argv'][0]}: {error.strerror}")
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)
        finally:
            os._exit(126)

    def ended(self) -> int | None:
        """The exit code once the program has ended, None before; reaps whatever else has ended."""
        code = None
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self.pid:
                    code = os.waitstatus_to_exitcode(found[1])
        return code if code is None or code >= 0 else 128 - code

    def due(self) -> bool:
        """True when the files should be looked at again."""
        return time.monotonic() >= self._due

    def broken(self, *, files: bool = True) -> str:
        """The limit that is exceeded, in words, or "". `files`: also those on files."""
        family = self.family()
        if len(family) > self.order["processes"]:
            return f"more than {self.order['processes']} processes"
        if self._memory(family) > self.order["memory_bytes"]:
            return f"more than {self.order['memory_bytes']:,} bytes of memory"
        unseen = {pid for pid in family if not _readable(pid)}
        if unseen & self._unseen:
            return "a process that hides its open files"
        self._unseen = unseen
        return self._broken_on_disk(family) if files else ""

    def _broken_on_disk(self, family: list[int]) -> str:
        start = time.monotonic()
        files = list(_files(self._folder))
        if any(len(os.fsencode(path)) > _LONGEST_PATH for path, _ in files):
            return "folders nested deeper than can be looked into"
        if self._disk(family, files) > self.order["disk_bytes"]:
            return f"more than {self.order['disk_bytes']:,} bytes in files"
        end = time.monotonic()
        self._due = end + _REST * (end - start)
        return ""

    def family(self) -> list[int]:
        """Ids of the program and all that came from it, as far as the system tells."""
        if not _PROC.is_dir():
            return []
        if self.order["alone"]:
            numbers = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
            return [pid for pid in numbers if pid != os.getpid()]
        found: list[int] = []
        waiting = [os.getpid()]
        while waiting:
            children = _children(waiting.pop())
            found += children
            waiting += children
        return found

    def end_all(self) -> None:
        """End everything that came from the program, and wait for it."""
        for _ in range(_ROUNDS):
            self._kill()
            if not self.family():
                return
            self.ended()
            select.select([], [], [], _ROUND_SECONDS)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-1 if self.order["alone"] else -self.pid, signal.SIGKILL)
        if self.order["alone"]:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in self.family():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def tidy(self, *, full: bool) -> None:
        """Remove the files that reached the limit of one file; when `full`, all that were not there before."""
        for path, found in list(_files(self._folder)):
            kept = self._before.get(path) == (found.st_ino, found.st_blocks)
            if not kept and (full or found.st_size >= self.order["file_bytes"]):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _memory(self, family: list[int]) -> int:
        """Bytes of memory that the family holds; where that comes near the limit, what several share counts once."""
        if sum(_memory_of(pid, "status", (b"RssAnon:", b"RssShmem:")) for pid in family) <= self.order["memory_bytes"]:
            return 0
        return sum(_memory_of(pid, "smaps_rollup", (b"Pss:",)) for pid in family)

    def _disk(self, family: list[int], files: list[tuple[Path, os.stat_result]]) -> int:
        """Bytes of files that were added, with those that are open and have no name."""
        used = {(found.st_dev, found.st_ino): max(_SMALLEST, found.st_blocks * 512) for _, found in files}
        for pid in family:
            for found in _open_files(pid):
                if found.st_nlink == 0:
                    used[found.st_dev, found.st_ino] = found.st_blocks * 512
        spaces = 0
        for space in self.order["spaces"]:
            with contextlib.suppress(OSError):
                about = os.statvfs(space)
                spaces += (about.f_blocks - about.f_bfree) * about.f_frsize
        return sum(used.values()) + spaces - self._bytes_before


def set_limits(order: dict[str, Any]) -> None:
    """Bound this process, and what it becomes, by what the system itself enforces."""
    import resource

    cpu, size, files = order["cpu_seconds"], order["file_bytes"], order["open_files"]
    memory = order["address_bytes"] or order["memory_bytes"]
    wanted: list[tuple[str, int, int]] = [("CORE", 0, 0), ("CPU", cpu, cpu + 1), ("AS", memory, memory)]
    wanted += [("FSIZE", size, size), ("NOFILE", files, files)]
    if order["alone"] and _counts_by_room():
        wanted.append(("NPROC", order["processes"], order["processes"]))
    for name, soft, hard in wanted:
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            with contextlib.suppress(ValueError, OSError):  # macOS knows some limits and refuses to set them
                ceiling = resource.getrlimit(number)[1]
                top = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
                resource.setrlimit(number, (min(soft, top), top))
    if sys.platform == "linux":
        own = sorted(os.sched_getaffinity(0))
        first = int.from_bytes(os.urandom(2), "big")
        os.sched_setaffinity(0, [own[(first + step) % len(own)] for step in range(min(_PROCESSORS, len(own)))])


def _counts_by_room() -> bool:
    """True when the kernel counts the processes of a user for each room, not for the whole machine (Linux 5.14)."""
    try:
        first, second = (int(part) for part in os.uname().release.split(".")[:2])
    except ValueError:
        return False
    return (first, second) >= (5, 14)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every file and folder below `folder`, no link followed. What is closed to its owner is opened."""
    waiting, opened = [folder], set()
    while waiting:
        here = waiting.pop()
        try:
            entries = list(os.scandir(here))
        except OSError:
            if here not in opened:
                opened.add(here)
                waiting.append(here)
                with contextlib.suppress(OSError):
                    here.chmod(0o700)
            continue
        for entry in entries:
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(Path(entry.path))
                yield Path(entry.path), found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            found += [int(child) for child in (task / "children").read_bytes().split()]
    return found


def _memory_of(pid: int, table: str, names: tuple[bytes, ...]) -> int:
    """Bytes that the rows `names` of a table of /proc say together."""
    try:
        lines = (_PROC / str(pid) / table).read_bytes().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))


def _readable(pid: int) -> bool:
    """True when it can be seen which files the process has open, or it has ended."""
    try:
        for link in (_PROC / str(pid) / "fd").iterdir():
            link.stat()
    except OSError as error:
        return not isinstance(error, PermissionError)
    return True


def _open_files(pid: int) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for link in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield link.stat()


def _say(text: str) -> None:
    sys.stderr.write(f"sandbox: {text}\n")
    sys.stderr.flush()


def _process_control(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main(order: dict[str, Any]) -> int:
    """Carry out `order`; the exit code."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    _process_control(_SET_NO_NEW_RIGHTS, 1)
    _process_control(_SET_ADOPTS, 1)
    keeper = Keeper(order)
    keeper.start()
    if order["alone"]:
        _process_control(_SET_NOT_READABLE, 0)
    code, broken = None, ""
    while code is None and not broken and not asked:
        if woken in select.select([woken], [], [], _EVERY_SECONDS)[0]:
            os.read(woken, 4096)
        code = keeper.ended()
        broken = keeper.broken(files=keeper.due()) if code is None else ""
    keeper.end_all()
    broken = broken or keeper.broken()
    keeper.tidy(full=bool(broken))
    if broken:
        _say(f"ended: {broken}")
    return _ENDED_BY_LIMIT if broken or code is None else code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
