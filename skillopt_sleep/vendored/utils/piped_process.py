# A copy of skillopt/utils/piped_process.py, made by scripts/vendor.py: change the original, then run that.
"""A program that stays: it is asked line by line, and ended with everything that came from it.

    with PipedProcess([sys.executable, "worker.py"], cwd=folder, env=child_environment()) as child:
        answer = child.ask('{"do": "it"}', timeout=10, cancel=token)

For programs that run once and end, see `skillopt.utils.process`; both end the whole family in the same way, also when
this interpreter exits or is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from skillopt_sleep.vendored.utils.cancel import CancelToken
from skillopt_sleep.vendored.utils.process_family import MARK, Family, group_options, new_mark
from skillopt_sleep.vendored.utils.process_watch import watch

LINE_IN = 32 * 1024
"""Bytes of one question at most: what a pipe takes although nobody reads it yet."""

LINE_OUT = 8 * 1024 * 1024
"""Bytes of one answer at most."""

_TAIL = 2000
_JOIN_SECONDS = 2.0
_END, _STOP = object(), object()


class PipedProcess:
    """A running program that answers each line on its input with one line on its output. Text is UTF-8.

    `argv[0]` is a path; no shell. `env` is the whole environment (see `process.child_environment`). Whatever goes
    wrong in `ask` ends the program. Raises OSError when it cannot be started.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        guard, mark = watch(), new_mark()
        self._child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env={**env, MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **cast("Any", group_options()),
        )
        self._family = Family(self._child.pid, mark)
        self._watched = contextlib.ExitStack()
        self._watched.enter_context(guard.over(mark))
        atexit.register(self._family.end)
        self._asking, self._closing = threading.Lock(), threading.Lock()
        self._closed = False
        self._answers: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._tail = bytearray()
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._threads = [
            threading.Thread(target=_read, args=(self._child.stdout, self._answers, self._ended), daemon=True),
            threading.Thread(target=_keep_tail, args=(self._child.stderr, self._tail), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> PipedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return not self._closed and not self._ended.is_set()

    def ask(self, line: str, *, timeout: float, cancel: CancelToken | None = None) -> str:
        """The line with which the program answers `line`.

        Raises TimeoutError when it does not within `timeout` seconds, EOFError (with the last it said on its error
        output) when it ends instead, and what `cancel` stands for when that ends first.
        """
        data = line.encode("utf-8", "replace")
        if b"\n" in data or len(data) >= LINE_IN:
            raise ValueError(f"a question is one line of less than {LINE_IN} bytes, not {len(data)} bytes")
        token = CancelToken(timeout, parent=cancel)
        with self._asking, token.on_cancel(self._stop_waiting):
            answer = self._exchange(data, token)
        if isinstance(answer, bytes):
            return answer.decode("utf-8", "replace").rstrip("\r\n")
        self.close()
        if answer is _END:
            raise EOFError(f"the program ended with status {self._child.returncode}{self._last_words()}")
        if cancel is not None:
            cancel.raise_if_cancelled()
        raise TimeoutError(f"the program did not answer within {timeout:g} s{self._last_words()}")

    def close(self) -> None:
        """End the program and everything that came from it. More than once does nothing more."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._family.end()
            self._child.wait()
            atexit.unregister(self._family.end)
            self._watched.close()
            for thread in self._threads:
                thread.join(_JOIN_SECONDS)
            if not any(thread.is_alive() for thread in self._threads):  # else a stranger holds a pipe
                for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
                    with contextlib.suppress(OSError):
                        cast("Any", stream).close()

    def _exchange(self, data: bytes, token: CancelToken) -> object:
        if not self.alive:
            return _END
        try:
            assert self._child.stdin is not None
            self._child.stdin.write(data + b"\n")
            self._child.stdin.flush()
        except (OSError, ValueError):  # its end of the pipe is closed, or ours is
            return _END
        while True:
            answer = self._answers.get()
            if answer is not _STOP or token.cancelled:  # a stop can be left over from an earlier question
                return answer

    def _stop_waiting(self) -> None:
        self._answers.put(_STOP)

    def _last_words(self) -> str:
        said = bytes(self._tail).decode("utf-8", "replace").strip()
        return f": {said}" if said else ""


def _read(stream: IO[bytes], answers: queue.SimpleQueue[object], ended: threading.Event) -> None:
    with contextlib.suppress(OSError, ValueError):
        while (line := stream.readline(LINE_OUT)).endswith(b"\n"):
            answers.put(line)
    ended.set()
    answers.put(_END)


def _keep_tail(stream: IO[bytes], tail: bytearray) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := os.read(stream.fileno(), _TAIL):
            tail += data
            del tail[: max(0, len(tail) - _TAIL)]
