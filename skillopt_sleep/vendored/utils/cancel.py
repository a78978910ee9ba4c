# A copy of skillopt/utils/cancel.py, made by scripts/vendor.py: change the original, then run that.
"""Deadlines and cancellation, passed down from a run to an item to a model call.

A token ends by its own time, by `cancel()`, or with its parent. Whoever waits does so through the token, and
whoever blocks in a system call registers with `on_cancel` what ends that call.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from skillopt_sleep.vendored.errors import DeadlineError, InterruptedRunError
from skillopt_sleep.vendored.utils.alarm import Alarm


class CancelToken:
    """One unit of work that can end early.

    `timeout`: seconds from now, or None for no limit of its own. A child never outlives its parent.
    """

    def __init__(self, timeout: float | None = None, parent: CancelToken | None = None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._parent = parent
        self._alarm: Alarm = parent._alarm if parent is not None else Alarm()
        self._event = threading.Event()
        self._lock = threading.RLock()  # a signal handler may cancel while its own thread registers a callback
        self._callbacks: list[Callable[[], None]] = []

    def remaining(self) -> float | None:
        """Seconds left before the nearest deadline of this token and its parents (never below 0), or None."""
        own = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        above = self._parent.remaining() if self._parent is not None else None
        if own is None or above is None:
            return own if above is None else above
        return min(own, above)

    @property
    def interrupted(self) -> bool:
        """True when this token or a parent was cancelled by `cancel()`."""
        return self._event.is_set() or (self._parent is not None and self._parent.interrupted)

    @property
    def cancelled(self) -> bool:
        """True when the work should end, for either reason."""
        return self.interrupted or self.remaining() == 0.0

    def cancel(self) -> None:
        """End this token, and with it every token below, and run what is registered with `on_cancel`.

        Every callback is run; what the first one that failed raised is raised then.
        """
        self._event.set()
        with self._lock:
            callbacks = list(self._callbacks)
        failed: Exception | None = None
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        if failed is not None:
            raise failed

    def raise_if_cancelled(self) -> None:
        """Raise InterruptedRunError after `cancel()`, DeadlineError after the deadline, else nothing."""
        if self.interrupted:
            raise InterruptedRunError("Stopped; everything finished is kept.")
        if self.remaining() == 0.0:
            raise DeadlineError("The time for this call is over.")

    def wait(self, seconds: float) -> None:
        """Sleep for `seconds`, less when the token ends; then raise as `raise_if_cancelled` does."""
        with self._watching() as event:
            left = self.remaining()
            event.wait(seconds if left is None else min(seconds, left))
        self.raise_if_cancelled()

    @contextlib.contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        """While inside, `callback` runs when the token ends, from another thread; at once if it was cancelled before.

        It can run twice, when a deadline and a cancellation meet.
        """
        left = self.remaining()
        with self._registered(callback), contextlib.nullcontext() if left is None else self._alarm.at(left, callback):
            if self.interrupted:
                callback()
            yield

    @contextlib.contextmanager
    def _registered(self, callback: Callable[[], None]) -> Iterator[None]:
        chain: list[CancelToken] = []
        token: CancelToken | None = self
        while token is not None:
            chain.append(token)
            token = token._parent
        for link in chain:
            with link._lock:
                link._callbacks.append(callback)
        try:
            yield
        finally:
            for link in chain:
                with link._lock:
                    link._callbacks.remove(callback)

    @contextlib.contextmanager
    def _watching(self) -> Iterator[threading.Event]:
        event = threading.Event()
        with self._registered(event.set):
            if self.interrupted:
                event.set()
            yield event
