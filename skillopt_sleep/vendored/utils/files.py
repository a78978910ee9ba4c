# A copy of skillopt/utils/files.py, made by scripts/vendor.py: change the original, then run that.
"""The one way to write a file, to read one exactly, to name one after an item, and to lock a folder.

Every file is written to a temporary name in its own folder, flushed to disk and renamed, so that a reader (or a
resumed run) sees the old content or the new one, never half of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skillopt_sleep.vendored.errors import DataError, RunLockedError
from skillopt_sleep.vendored.types.canonical import content_hash

_RESERVED = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_MAX_NAME = 120


def atomic_write_text(path: Path, text: str) -> None:
    """Write `text` to `path` exactly as given (UTF-8, line ends untouched), all or nothing.

    Missing parent folders are made. Raises OSError when the folder cannot be written or the disk is full; the old
    file is then still whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not a tempfile, which would be private: a run folder is as readable as the person's umask says.
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def atomic_write_json(path: Path, value: object) -> None:
    """Write `value` as indented JSON with a final newline. Raises ValueError for NaN and infinities."""
    atomic_write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def append_jsonl(path: Path, value: object) -> None:
    """Append one JSON line in a single write, so that a kill leaves at most one unfinished last line.

    An unfinished line that is there already is ended first, so that it does not take this one with it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    with path.open("a+b") as stream:
        unfinished = False
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            unfinished = stream.read(1) != b"\n"
        stream.write(b"\n" * unfinished + line.encode("utf-8", "replace"))


def read_text(path: Path) -> str:
    """Text of a UTF-8 file with its line ends and its byte order mark kept.

    Raises DataError when the file is missing, is a folder, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None


def read_json(path: Path) -> Any:
    """Value of a JSON file. Raises DataError naming file and line."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not valid JSON ({error.msg}).") from None


def safe_name(item_id: str) -> str:
    """A file name for an item id: equal to simple ids, percent-encoded otherwise, unique for every id.

    Empty and over-long ids, names that some system reserves, and names with a dot at either end get a hash after a
    `+`, a character that the encoding itself never leaves in a name.
    """
    name = quote(item_id, safe="-_.", errors="surrogatepass")
    if name and len(name) <= _MAX_NAME and not _RESERVED.match(name) and "." not in (name[0], name[-1]):
        return name
    return f"{name[: _MAX_NAME - 20].strip('.') or 'item'}+{content_hash(item_id)[:16]}"


class RunLock:
    """Holds a folder for one process: `with RunLock(folder): ...`.

    The lock is the operating system's, so a killed process never leaves one behind; the file beside it says who
    holds it. Raises RunLockedError, naming process and host, when another live process holds the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".lock"
        self._owner = folder / ".lock.json"
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> RunLock:
        from filelock import FileLock, Timeout

        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(self._path), timeout=0)
        try:
            self._stack.enter_context(lock)
        except Timeout:
            raise RunLockedError(
                f"{self._path.parent}: another run works in this folder ({self._holder()}); "
                "wait for it, stop it, or choose another --out_root."
            ) from None
        atomic_write_json(self._owner, {"pid": os.getpid(), "host": socket.gethostname()})
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._owner.unlink()
        self._stack.close()

    def _holder(self) -> str:
        try:
            owner = json.loads(self._owner.read_text(encoding="utf-8"))
            return f"process {owner['pid']} on {owner['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "process unknown"
