"""Renames that never bury a file: two names exchanged, or a name given only where none is.

Linux has renameat2 for both and macOS renamex_np; where the system or the file system has neither, callers are told so.
"""

from __future__ import annotations

import errno
import os
import platform
import signal
import sys
from pathlib import Path

_HERE = -100  # AT_FDCWD
_LINUX_NEW, _LINUX_SWAP = 1, 2
_MAC_SWAP, _MAC_NEW = 2, 4
_SYSTEM_CALLS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "loongarch64": 276, "ppc64le": 357, "s390x": 347}
# EPERM: some sandboxes answer so to a call that they do not know; where it is meant, the plain rename says it again.
_LACKING = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV, errno.EMLINK, errno.EACCES}


def swap(one: Path, other: Path) -> bool:
    """Exchange what two names of one folder stand for, in one step; False when it cannot be done here.

    Raises OSError for every other failure, FileNotFoundError when one of them is not there.
    """
    return _renamed(one, other, linux=_LINUX_SWAP, mac=_MAC_SWAP)


def move_new(source: Path, target: Path) -> None:
    """Rename a file to a name that nothing has.

    Raises FileExistsError when something has it, and OSError with one of NO_HARD_LINKS when it cannot be done here.
    """
    if _renamed(source, target, linux=_LINUX_NEW, mac=_MAC_NEW):
        return
    if os.name == "nt":
        source.rename(target)  # which refuses a name that is taken
        return
    os.link(source, target)
    source.unlink()


def being_written(path: Path) -> bool:
    """True when a process has the file open for writing. Only Linux tells, and only of files of one's own.

    It gives no lease on such a file. A lease that was given is returned at once; should somebody open the file in that
    moment, the signal that tells of it is one that is ignored, not the usual one, which would end the process.
    """
    try:
        import fcntl

        lease, choose = fcntl.F_SETLEASE, fcntl.F_SETSIG  # type: ignore[attr-defined,unused-ignore]
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (ImportError, AttributeError, OSError):
        return False
    try:
        fcntl.fcntl(handle, choose, signal.SIGURG)
        fcntl.fcntl(handle, lease, fcntl.F_RDLCK)
        fcntl.fcntl(handle, lease, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(handle)
    return False


def _renamed(source: Path, target: Path, *, linux: int, mac: int) -> bool:
    call = {"Linux": _linux, "Darwin": _mac}.get(platform.system())
    if call is None:
        return False
    sys.audit("os.rename", str(source), str(target), -1, -1)
    code = call(os.fsencode(source), os.fsencode(target), linux, mac)
    if code in _LACKING:
        return False
    if code:
        raise OSError(code, os.strerror(code), str(target))
    return True


def _linux(source: bytes, target: bytes, flags: int, _: int) -> int:
    """0 or the error number."""
    try:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return errno.ENOSYS
    names = (_HERE, ctypes.c_char_p(source), _HERE, ctypes.c_char_p(target), ctypes.c_uint(flags))
    if hasattr(library, "renameat2"):
        failed = library.renameat2(*names)
    elif platform.machine() in _SYSTEM_CALLS:
        failed = library.syscall(ctypes.c_long(_SYSTEM_CALLS[platform.machine()]), *names)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0


def _mac(source: bytes, target: bytes, _: int, flags: int) -> int:
    """0 or the error number."""
    try:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).renamex_np
    except (ImportError, OSError, AttributeError):
        return errno.ENOSYS
    failed = call(ctypes.c_char_p(source), ctypes.c_char_p(target), ctypes.c_uint(flags))
    return ctypes.get_errno() if failed else 0
