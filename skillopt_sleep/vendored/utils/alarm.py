# A copy of skillopt/utils/alarm.py, made by scripts/vendor.py: change the original, then run that.
"""Functions called at their times, all from one thread. A thread for each deadline would cost more than the work."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator


class Alarm:
    """Calls what is registered with `at` when its time comes. Its thread is a daemon and lives while it is needed.

    The functions must be quick: they run one after another.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: dict[object, tuple[float, Callable[[], None]]] = {}
        self._wake_at = 0.0
        self._running = False

    @contextlib.contextmanager
    def at(self, seconds: float, callback: Callable[[], None]) -> Iterator[None]:
        """While inside, `callback` runs once when `seconds` from now are over."""
        mark, due = object(), time.monotonic() + seconds
        with self._changed:
            self._entries[mark] = due, callback
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, daemon=True).start()
            elif due < self._wake_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._entries.pop(mark, None)
                if not self._entries:
                    self._changed.notify()

    def _run(self) -> None:
        while (due := self._due()) is not None:
            for callback in due:
                try:
                    callback()
                except Exception:  # noqa: BLE001 - reported as Python does for a thread; other deadlines must hold
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _due(self) -> list[Callable[[], None]] | None:
        """Waits for the next entries whose time has come; None, and the thread ends, when no entry is left."""
        with self._changed:
            while self._entries:
                now = time.monotonic()
                marks = [mark for mark, (due, _) in self._entries.items() if due <= now]
                if marks:
                    return [self._entries.pop(mark)[1] for mark in marks]
                self._wake_at = min(due for due, _ in self._entries.values())
                self._changed.wait(self._wake_at - now)
            self._running = False
            return None
