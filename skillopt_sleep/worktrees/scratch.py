"""The private folder that a workshop works in. What a killed one left is removed by the next."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.errors import NightBusy
from skillopt_sleep.locks import FileLock
from skillopt_sleep.vendored.utils.removal import remove_tree


class Scratch:
    """A new folder below `place`, locked while it is in use."""

    def __init__(self, place: Path) -> None:
        paths.private_folder(place)
        name = secrets.token_hex(8)
        self._place = place.resolve()
        self._lock = FileLock(self._place / f"{name}.lock", "a workshop")
        self._lock.acquire()
        self.folder = paths.private_folder(self._place / name)
        self._numbers = itertools.count(1)
        self._remove_stale()

    def new(self, kind: str) -> Path:
        """A new, empty folder in it."""
        folder = self.folder / f"{kind}-{next(self._numbers)}"
        folder.mkdir()
        return folder

    def close(self) -> None:
        """Remove everything, and give the lock back."""
        empty(self.folder)
        self._lock.path.unlink(missing_ok=True)
        self._lock.release()

    def _remove_stale(self) -> None:
        for path in list(self._place.iterdir()):
            if path.suffix == ".lock" or path == self.folder or path.is_symlink():
                continue
            with contextlib.suppress(NightBusy), FileLock(self._place / f"{path.name}.lock", "tidying") as lock:
                empty(path)
                lock.path.unlink(missing_ok=True)


def empty(folder: Path) -> None:
    """Remove a folder with all that is in it, as well as it can be."""
    with contextlib.suppress(OSError):
        for inner in list(folder.iterdir()):
            with contextlib.suppress(OSError):
                remove_tree(inner) if inner.is_dir() and not inner.is_symlink() else inner.unlink()
        folder.rmdir()
