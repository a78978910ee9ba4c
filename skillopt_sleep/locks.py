"""Locks of the operating system: they die with the process that holds them, however it ends."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import NightBusy

_POLL_SECONDS = 0.02


class FileLock:
    """One exclusive lock on `path`, a file that stays there and tells who holds it.

    `with FileLock(path, purpose): ...`. Raises NightBusy, naming process and time, when another process (or another
    lock object of this one) holds it for longer than `wait` seconds.
    """

    def __init__(self, path: Path, purpose: str, *, wait: float = 0.0) -> None:
        self.path = path
        self.purpose = purpose
        self._wait = wait
        self._handle: int | None = None

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock or raise NightBusy."""
        paths.private_folder(self.path.parent)
        deadline = time.monotonic() + self._wait
        handle = self._taken(deadline)
        while handle is None:
            handle = self._taken(deadline)
        self._handle = handle

    def _taken(self, deadline: float) -> int | None:
        """The open and locked file; None when it was removed meanwhile, so that the lock would keep nobody out."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self.path, flags, 0o600)
        try:
            while not _try_lock(handle):
                if time.monotonic() >= deadline:
                    raise NightBusy(self._busy())
                time.sleep(_POLL_SECONDS)
            if not _is_at(handle, self.path):
                os.close(handle)
                return None
            self._sign(handle)
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(handle)
            raise
        return handle

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                _unlock(handle)
            os.close(handle)

    def _sign(self, handle: int) -> None:
        owner = {"pid": os.getpid(), "since": time.time(), "purpose": self.purpose}
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, json.dumps(owner).encode("utf-8"))

    def _busy(self) -> str:
        owner = holder(self.path)
        who = "another process"
        if owner is not None:
            since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(owner["since"]))
            who = f"process {owner['pid']} (since {since})"
        return f"{self.path}: {who} holds the lock for {self.purpose}; wait until it is done, then run this again."


def _is_at(handle: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), there)


def holder(path: Path) -> dict[str, Any] | None:
    """`{pid, since, purpose}` as the last holder of a lock file wrote it; None when that cannot be read."""
    try:
        owner = json.loads(path.read_bytes())
        return {"pid": int(owner["pid"]), "since": float(owner["since"]), "purpose": str(owner["purpose"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def night_lock(state_dir: Path, *, wait: float = 0.0) -> FileLock:
    """The lock of a state folder: only one night at a time works with it."""
    return FileLock(paths.locks_folder(state_dir) / "night.lock", "a night", wait=wait)


def state_lock(state_dir: Path) -> FileLock:
    """The short lock around reading, merging and writing state.json."""
    return FileLock(paths.locks_folder(state_dir) / "state.lock", "the state file", wait=10.0)


def target_lock(state_dir: Path, live_path: str | Path) -> FileLock:
    """The lock of one adoption target; spellings that differ in case or Unicode form share it."""
    folded = unicodedata.normalize("NFC", str(paths.expand(live_path))).casefold()
    name = hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()
    return FileLock(paths.locks_folder(state_dir) / f"{name}.lock", f"adopting {live_path}")


@contextlib.contextmanager
def held(locks: Sequence[FileLock]) -> Iterator[None]:
    """Hold several locks, taken in the order of their paths (so that two holders never wait for each other).

    All are given back when one cannot be taken.
    """
    with contextlib.ExitStack() as stack:
        for _, lock in sorted({str(lock.path): lock for lock in locks}.items()):
            stack.enter_context(lock)
        yield


if os.name == "posix":
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

else:  # pragma: no cover - Windows
    import msvcrt

    _FAR = 1 << 30  # a byte that no owner text reaches, so that others can read who holds the lock

    def _try_lock(handle: int) -> bool:
        os.lseek(handle, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

    def _unlock(handle: int) -> None:
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
