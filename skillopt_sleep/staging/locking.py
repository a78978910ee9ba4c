"""The locks of an adoption: one of the night and one of each live file, all of the operating system.

Older versions took a lock by making a file `pid=<number>` and never looked whether that process lives. Such a file is
respected while its process does, and taken over afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillopt_sleep import locks
from skillopt_sleep.errors import NightBusy, StagingError
from skillopt_sleep.staging import disk
from skillopt_sleep.staging.names import fold
from skillopt_sleep.staging.problems import AdoptionRefused

NIGHT_LOCK = ".adopt-skills.lock"
_OLD_CONTENT = re.compile(rb"\s*pid=(\d+)\s*\Z")


@contextlib.contextmanager
def night_held(night: Path) -> Iterator[None]:
    """Hold a night. Raises NightBusy when a living process holds it, AdoptionRefused when the lock is no file."""
    path = night / NIGHT_LOCK
    try:
        disk.look(path)
    except StagingError as error:
        raise AdoptionRefused(f"{error} It is no lock; remove it.") from None
    _respect_older(path)
    with locks.FileLock(path, f"adopting from {night}"):
        yield


@contextlib.contextmanager
def targets_held(state_dir: Path, targets: Sequence[Path]) -> Iterator[None]:
    """Hold live files, so that two nights never write the same one at once. Raises NightBusy."""
    for target in targets:
        _respect_older(_older_lock(target))
    with locks.held([locks.target_lock(state_dir, target) for target in targets]):
        yield


def _respect_older(path: Path) -> None:
    pid = _older_pid(path)
    if pid is not None and pid != os.getpid() and _alive(pid):
        raise NightBusy(f"{path}: process {pid} of an older version adopts this night; wait until it is done.")


def _older_pid(path: Path) -> int | None:
    try:
        seen = disk.look(path)
    except StagingError:
        return None
    mine = seen is not None and (not hasattr(os, "getuid") or path.stat().st_uid == os.getuid())
    match = _OLD_CONTENT.match(seen.data) if seen is not None and mine else None
    return int(match[1]) if match else None


def _older_lock(target: Path) -> Path:
    owner = str(os.getuid()) if hasattr(os, "getuid") else hashlib.sha256(str(Path.home()).encode()).hexdigest()[:16]
    name = hashlib.sha256(fold(str(target)).encode("utf-8", "surrogatepass")).hexdigest()
    return Path(tempfile.gettempdir()) / f"skillopt-sleep-adopt-{owner}" / f"{name}.lock"


def _alive(pid: int) -> bool:
    """True while the process lives and, where that can be seen, is one of ours and not a later one of that number."""
    if pid <= 0 or pid > 2**31:
        return False
    process = Path(f"/proc/{pid}")
    if Path("/proc/self/cmdline").exists():
        try:
            command = (process / "cmdline").read_bytes()
            ended = b") Z " in (process / "stat").read_bytes()
        except OSError:
            return False
        return not ended and (not command or any(word in command for word in (b"skillopt", b"python")))
    if os.name != "posix":
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _alive_on_windows(pid: int) -> bool:  # pragma: no cover - os.kill would end the process there
    import ctypes

    query_limited, still_active = 0x1000, 259
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(query_limited, False, pid)
    if not handle:
        return False
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == still_active
