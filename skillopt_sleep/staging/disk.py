"""Looking at a file without following links, and changing one so that a kill leaves it whole.

Every temporary file has a name that the caller chose before, so that whoever comes after a kill knows what to clean.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt_sleep.errors import StagingError
from skillopt_sleep.paths import sync_folder
from skillopt_sleep.staging import exchange

_REPARSE_POINT = 0x400


@dataclass(frozen=True, slots=True)
class Seen:
    """A regular file as it was found: bytes, permission bits, identity (device, inode), number of names, owner."""

    data: bytes
    mode: int
    file_id: tuple[int, int]
    links: int
    owner: tuple[int, int]

    @property
    def sha256(self) -> str:
        """Hash of the bytes."""
        return digest(self.data)


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def hash_of(seen: Seen | None) -> str:
    """Hash of a file that was looked at; "" for one that is absent."""
    return seen.sha256 if seen else ""


def is_link(path: Path) -> bool:
    """True for a symbolic link, and for a junction on Windows."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_file_attributes", 0) & _REPARSE_POINT)


def real(path: Path | str) -> Path:
    """The path with every link on the way resolved; the file need not exist."""
    return Path(os.path.realpath(path))


def inside(path: Path, folder: Path) -> bool:
    """True when `path` lies in `folder` (both already resolved)."""
    return path != folder and path.is_relative_to(folder)


def look(path: Path) -> Seen | None:
    """The regular file at `path`, or None when nothing is there.

    Raises StagingError when the path is a link, a folder or anything else, or cannot be read.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StagingError(f"{path} cannot be looked at ({error.strerror}).") from error
    if is_link(path):
        raise StagingError(f"{path} is a link; name the file that it leads to.")
    if not stat.S_ISREG(found.st_mode):
        raise StagingError(f"{path} is not a regular file.")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
            opened = os.fstat(stream.fileno())
            data = stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StagingError(f"{path} cannot be read ({error.strerror}).") from error
    if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
        raise StagingError(f"{path} was replaced while it was read; try again.")
    identity, owner = (opened.st_dev, opened.st_ino), (opened.st_uid, opened.st_gid)
    return Seen(data, stat.S_IMODE(opened.st_mode), identity, opened.st_nlink, owner)


def parse_json(data: bytes) -> Any:
    """The value of a JSON file that anybody may have written.

    Raises ValueError for what is no JSON, for numbers that are not finite, for nesting without end, and for texts that
    can be in no path: with a NUL, or with half a character.
    """
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
        _check_texts(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def number(value: object) -> float:
    """A finite number of a JSON file. Raises TypeError for everything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value):
        return float(value)
    raise TypeError("expected a finite number")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_texts(value: object) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("a text holds a NUL")
        value.encode("utf-8")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _check_texts(name)
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)


def folder_id(path: Path) -> tuple[int, int]:
    """Identity (device, inode) of a folder. Raises OSError when there is none."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(path))
    return found.st_dev, found.st_ino


def write_temporary(temporary: Path, data: bytes, mode: int | None) -> None:
    """Write a new file and flush it to disk. `mode` None: as the person's umask says."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(
        temporary, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), 0o666 if mode is None else 0o600
    )
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        if mode is not None and os.name == "posix":
            os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    if mode is not None and os.name != "posix":
        temporary.chmod(mode)


def create(path: Path, data: bytes, *, temporary: Path, mode: int | None = None) -> None:
    """Make a new file, all or nothing, and never over one that appeared meanwhile (FileExistsError then).

    Where a file system can neither rename so nor make hard links, an empty file holds the place until the rename.
    """
    write_temporary(temporary, data, mode)
    try:
        exchange.move_new(temporary, path)
    except OSError as error:
        try:
            if error.errno not in exchange.NO_HARD_LINKS:
                raise
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        temporary.replace(path)
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file of ours that may be gone already."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync_folder(path.parent)


def remove_folder_if_ours(path: Path, identity: tuple[int, int]) -> None:
    """Remove an empty folder when it is the very one that was made; anything else stays."""
    with contextlib.suppress(OSError):  # gone, not empty, or somebody else's: nothing to do
        if folder_id(path) == identity:
            path.rmdir()
            sync_folder(path.parent)
