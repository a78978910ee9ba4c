# A copy of skillopt/utils/process.py, made by scripts/vendor.py: change the original, then run that.
"""The one way to start another program: in its own group, with a deadline, bounded output and nothing left behind.

    result = run_process(["tool", "-p"], cwd=folder, env=child_environment("TOOL_KEY"), stdin=prompt, timeout=60)

Never a shell. Text goes both ways as UTF-8; bytes that are not UTF-8 become replacement characters.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skillopt_sleep.vendored.utils.cancel import CancelToken
from skillopt_sleep.vendored.utils.process_family import MARK, Family, group_options, new_mark
from skillopt_sleep.vendored.utils.process_watch import watch

OUTPUT_LIMIT = 8 * 1024 * 1024
_CHUNK = 65536
_LEFT_BEHIND = 1024 * 1024  # what a pipe can hold: read at most this much after the program has ended
_JOIN_SECONDS = 2.0
_WINDOWS = sys.platform == "win32"
_READABLE, _WRITABLE = (0, 0) if _WINDOWS else (select.POLLIN, select.POLLOUT)

_HANDED_DOWN = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|TERM|LC_\w+|XDG_\w+"
    r"|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(HTTP|HTTPS|ALL|NO)_PROXY"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|USERNAME|HOMEDRIVE|HOMEPATH|(LOCAL)?APPDATA"
    r"|PROGRAMDATA|PROGRAMFILES(\(X86\))?|PROGRAMW6432",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended.

    `code`: its exit status (negative: ended by that signal), None when it was ended here. `truncated`: some output was
    left out of the middle of `stdout` or `stderr`.
    """

    code: int | None
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: str = "",
    timeout: float,
    cancel: CancelToken | None = None,
    output_limit: int = OUTPUT_LIMIT,
) -> ProcessResult:
    """Run a program to its end, or to `timeout` seconds (or the deadline of `cancel`), whichever comes first.

    However it ends, its whole family is gone afterwards: members that run on are asked to end and then killed, also
    when this interpreter exits, and on Linux even when it is killed. `env` is the whole environment (see
    `child_environment`). At most `output_limit` bytes of each output are kept, the beginning and the end; after a
    timeout, what was written until then.

    Raises OSError when the program is not there or cannot be started, InterruptedRunError when `cancel` was cancelled.
    """
    token = CancelToken(timeout, parent=cancel)
    if token.interrupted:
        token.raise_if_cancelled()
    if token.remaining() == 0.0:
        return ProcessResult(None, "", "", timed_out=True)
    guard, mark = watch(), new_mark()
    with guard.over(mark):
        child = subprocess.Popen(
            [_program(argv[0], env), *argv[1:]],
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **cast("Any", group_options()),
        )
        return _attend(child, Family(child.pid, mark), stdin, token, output_limit)


def child_environment(*names: str, **extra: str) -> dict[str, str]:
    """The environment for a child: what every program needs, the variables called `names`, and `extra`.

    Nothing else is handed down, so no key of another provider.
    """
    kept = {name: value for name, value in os.environ.items() if name in names or _HANDED_DOWN.fullmatch(name)}
    return {**kept, **extra}


def _program(name: str, env: Mapping[str, str]) -> str:
    """On Windows the file that a bare name means (`claude` is `claude.cmd`); elsewhere the name."""
    if not _WINDOWS:
        return name
    return shutil.which(name, path=env.get("PATH")) or name


def _attend(
    child: subprocess.Popen[bytes], family: Family, stdin: str, token: CancelToken, limit: int
) -> ProcessResult:
    """Feed and read `child` until it ends or its time is over, and end its family."""
    out, err = _Kept(limit), _Kept(limit)
    atexit.register(family.end)
    try:
        with _Pumps(child, stdin.encode("utf-8", "replace"), out, err):
            in_time = _wait(child, token)
            family.end()
    except BaseException:  # a signal, or no thread to be had: nothing may run on
        family.end()
        _reap(child, family)
        raise
    code = _reap(child, family)
    if not in_time and token.interrupted:
        token.raise_if_cancelled()
    return ProcessResult(code if in_time else None, out.text(), err.text(), not in_time, out.cut or err.cut)


def _wait(child: subprocess.Popen[bytes], token: CancelToken) -> bool:
    """Wait for the end of the program or of its time; True when the program was first."""
    exited, woken = threading.Event(), threading.Event()
    _thread(_await_exit, child, exited, woken)
    with token.on_cancel(woken.set):
        woken.wait()
    return exited.is_set()


def _reap(child: subprocess.Popen[bytes], family: Family) -> int | None:
    """Take the exit code of a program that has ended; None for one that could not even be killed."""
    try:
        return child.wait(_JOIN_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        atexit.unregister(family.end)


def _await_exit(child: subprocess.Popen[bytes], exited: threading.Event, woken: threading.Event) -> None:
    """Say when the program has ended, leaving its id taken until its family is ended."""
    try:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        else:
            child.wait()
    except ChildProcessError:  # somebody else has waited for it
        pass
    exited.set()
    woken.set()


class _Kept:
    """The beginning and the end of an output, at most `limit` bytes together."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head, self._tail = bytearray(), bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[: max(0, room)]
        self._tail += data[max(0, room) :]
        if len(self._tail) > 2 * self._half:
            self._trim()

    @property
    def cut(self) -> bool:
        self._trim()
        return self._dropped > 0

    def text(self) -> str:
        if not self.cut:
            return (self._head + self._tail).decode("utf-8", "replace")
        gap = f"\n[{self._dropped} bytes left out]\n"
        return self._head.decode("utf-8", "replace") + gap + self._tail.decode("utf-8", "replace")

    def _trim(self) -> None:
        excess = max(0, len(self._tail) - self._half)
        del self._tail[:excess]
        self._dropped += excess


class _Pumps:
    """Threads that write a program's input and read its outputs; leaving the block stops them, whoever holds a pipe."""

    def __init__(self, child: subprocess.Popen[bytes], data: bytes, out: _Kept, err: _Kept) -> None:
        self._streams = [child.stdin, child.stdout, child.stderr]
        self._stop = _Stop()
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._threads = [
            _thread(self._write, child.stdin, data),
            _thread(self._read, child.stdout.fileno(), out),
            _thread(self._read, child.stderr.fileno(), err),
        ]

    def __enter__(self) -> _Pumps:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        if any(thread.is_alive() for thread in self._threads):
            return  # on Windows a pipe that a stranger holds cannot be left; its threads are daemons
        for stream in self._streams:
            with contextlib.suppress(OSError):
                cast("Any", stream).close()
        self._stop.close()

    def _write(self, stream: Any, data: bytes) -> None:
        step = _CHUNK if _WINDOWS else select.PIPE_BUF  # that much never blocks once the pipe is ready
        view = memoryview(data)
        with contextlib.suppress(OSError):  # a program need not read its input
            while view and not self._stop.is_set() and self._stop.wait(stream.fileno(), _WRITABLE):
                view = view[stream.write(view[:step]) :]
        with contextlib.suppress(OSError):
            stream.close()

    def _read(self, number: int, kept: _Kept) -> None:
        late = 0
        while late <= _LEFT_BEHIND and self._stop.wait(number, _READABLE):
            data = os.read(number, _CHUNK)
            if not data:
                return
            kept.add(data)
            late += len(data) if self._stop.is_set() else 0


class _Stop:
    """A flag that also ends the waiting for a pipe."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._ends = None if _WINDOWS else os.pipe()

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()
        if self._ends:
            os.write(self._ends[1], b"x")

    def wait(self, number: int, kind: int) -> bool:
        """Wait until the pipe `number` is ready; False when the flag is set and it is not."""
        if self._ends is None:
            return True
        poll = select.poll()
        poll.register(number, kind)
        poll.register(self._ends[0], _READABLE)
        return any(ready == number for ready, _ in poll.poll())

    def close(self) -> None:
        for end in self._ends or ():
            os.close(end)


def _thread(target: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread
