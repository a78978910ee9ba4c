"""A folder that appears as a whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from skillopt.datasets.generated import MANIFEST
from skillopt.errors import DataError, RunLockedError, SkillOptError


@contextlib.contextmanager
def new_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """An empty folder to write into, which takes the place of `target` at the end of the block.

    When the block raises, or the process is killed inside it, `target` is as it was; what a killed process left
    behind is cleared away by the next one. Raises DataError when `target` cannot be replaced (see `refuse_existing`) or
    written, RunLockedError when another process is writing it.
    """
    try:
        with _locked(target):
            yield from _replacing(target, replace=replace)
    except SkillOptError:
        raise
    except OSError as error:
        place = error.filename or target
        raise DataError(f"{place}: cannot be read or written ({error.strerror or error}).") from error


def _replacing(target: Path, *, replace: bool) -> Iterator[Path]:
    partial, old = _beside(target, "partial"), _beside(target, "old")
    _clear(partial)
    if old.exists() and not target.exists():
        old.rename(target)
    refuse_existing(target, replace=replace)
    partial.mkdir(parents=True)
    try:
        yield partial
        _clear(old)
        if target.exists():
            target.rename(old)
        partial.rename(target)
    except BaseException:
        _clear(partial)
        raise
    _clear(old)


def refuse_existing(target: Path, *, replace: bool) -> None:
    """Raise DataError when `target` holds something, unless it is a folder of our making that is to be replaced."""
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError(f"{target}: is a file; expected the name of a folder to make.")
    if not any(target.iterdir()):
        return
    if not (target / MANIFEST).is_file():
        raise DataError(f"{target}: holds files that are not from here (no {MANIFEST}); choose another folder.")
    if not replace:
        raise DataError(f"{target}: exists already; give --force to replace it, or choose another folder.")


def _beside(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name}.{what}")


def _clear(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    target.parent.mkdir(parents=True, exist_ok=True)
    lock = _beside(target, "lock")
    try:
        with FileLock(str(lock), timeout=0):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    lock.unlink()
    except Timeout:
        raise RunLockedError(f"{target}: another process is making this folder; wait for it.") from None
