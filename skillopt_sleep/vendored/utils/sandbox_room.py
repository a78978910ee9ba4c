# A copy of skillopt/utils/sandbox_room.py, made by scripts/vendor.py: change the original, then run that.
"""Makes a room of its own for a program: no network, no other process, only the files it was given.

Run by `skillopt.utils.sandbox` as `python -I -S sandbox_room.py PLAN PROGRAM ARGUMENT…`, on Linux, where a user may
make namespaces; it imports the standard library only. `PLAN` is JSON: `shown`, paths that can be read; `links`, a list
of [path, where it leads from there]; `folder`, the one place that can be written; `processes`. `PROGRAM` becomes the
first process of the room; when it ends, the kernel ends everything in the room. Ends with the program's exit code, or
with 125 when this system does not let a room be made.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

REFUSED = 125
_NEW_MOUNTS, _NEW_NAMES, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_SET_MOUNT, _HERE, _BELOW = 442, -100, 0x8000
_DETACH = 2
_DIES_WITH_PARENT, _DROP_RIGHT, _NO_NEW_RIGHTS = 1, 24, 38
_RIGHTS_VERSION = 0x20080522
_ID_ROOM = 300  # process ids that the kernel does not give a second time
_DEVICES = ("null", "zero", "full", "random", "urandom")
_STANDARD = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}

_libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace")]


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    arguments = (source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(_libc.mount(*arguments), f"mount {target}")


def _protect(target: Path) -> None:
    """Make a mount and those below it read-only."""
    wanted = _Attributes(set=_READ_ONLY | _NO_SUID | _NO_DEVICES)
    arguments = (ctypes.c_int(_HERE), os.fsencode(target), ctypes.c_uint(_BELOW), ctypes.byref(wanted))
    _check(_libc.syscall(ctypes.c_long(_SET_MOUNT), *arguments, ctypes.c_size_t(32)), f"protect {target}")


def separate() -> None:
    """Leave the network, the processes, the mounts and the users of the machine."""
    user, group = os.getuid(), os.getgid()
    kinds = _NEW_USER | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC | _NEW_NAMES
    _check(_libc.unshare(kinds), "unshare")
    own = Path("/proc/self")
    with contextlib.suppress(FileNotFoundError):
        (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")


def furnish(plan: dict[str, Any]) -> None:
    """Change to a file system that holds what `plan` names and nothing else."""
    base = Path("/tmp")
    _mount("none", Path("/"), "", _RECURSIVE | _PRIVATE)
    _mount("tmpfs", base, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=0755,size=4m")
    os.chdir(base)
    for name in ("old", "new"):
        Path(name).mkdir()
    _check(_libc.pivot_root(b".", b"old"), "pivot_root")
    os.chdir("/")
    old, new = Path("/old"), Path("/new")
    _mount("/new", new, "", _BIND)
    _devices(old, new / "dev")
    for name in ("proc", "tmp"):
        (new / name).mkdir(exist_ok=True)
    _mount("tmpfs", new / "tmp", "tmpfs", _NO_SUID | _NO_DEVICES, "size=64m")
    for path, leads in plan["links"]:
        _at(new, path).parent.mkdir(parents=True, exist_ok=True)
        _at(new, path).symlink_to(leads)
    for path in plan["shown"]:
        _show(_at(old, path), _at(new, path))
        _protect(_at(new, path))
    _show(_at(old, plan["folder"]), _at(new, plan["folder"]))
    _processes(new / "proc", plan["processes"])
    os.chdir(new)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")  # the old one lies on top now
    _check(_libc.umount2(b".", _DETACH), "umount")
    os.chdir("/")
    _mount("none", Path("/"), "", _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)


def _at(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _show(outside: Path, inside: Path) -> None:
    """Let `inside` show what `outside` holds."""
    if outside.is_dir():
        inside.mkdir(parents=True, exist_ok=True)
    elif not inside.exists():
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.touch()
    _mount(str(outside), inside, "", _BIND | _RECURSIVE)


def _devices(old: Path, devices: Path) -> None:
    devices.mkdir()
    for name in _DEVICES:
        _show(old / "dev" / name, devices / name)
    for name, leads in _STANDARD.items():
        (devices / name).symlink_to(leads)
    (devices / "shm").mkdir()
    _mount("tmpfs", devices / "shm", "tmpfs", _NO_SUID | _NO_DEVICES, "size=256m")


def _processes(folder: Path, processes: int) -> None:
    """Show the processes of the room, bound their number, and let none of the machine's settings be written."""
    _mount("proc", folder, "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
    with contextlib.suppress(OSError):  # Linux 6.14; the keeper counts too
        (folder / "sys/kernel/pid_max").write_text(str(_ID_ROOM + 4 * processes))
    with contextlib.suppress(OSError):
        (folder / "sys/user/max_user_namespaces").write_text("0")
    _protect(folder)


def give_up_rights() -> None:
    """Keep no right of the room's owner, and let no program bring one back."""
    _check(_libc.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0), "prctl")
    for right in range(64):
        _libc.prctl(_DROP_RIGHT, right, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_RIGHTS_VERSION, 0)
    _check(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "capset")


def main(plan: dict[str, Any], argv: list[str]) -> int:
    """Make the room and run `argv` in it; the exit code."""
    try:
        separate()
    except OSError as error:
        sys.stderr.write(f"sandbox: {error.strerror}\n")
        return REFUSED
    first = os.fork()
    if first:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
        return code if code >= 0 else 128 - code
    try:
        _libc.prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        furnish(plan)
        give_up_rights()
        os.execv(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"sandbox: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(REFUSED)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
