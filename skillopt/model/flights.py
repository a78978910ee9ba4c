"""Single flight: of equal requests made at the same time, one is sent and the others wait for its reply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from skillopt.errors import DeadlineError, ModelError
from skillopt.utils.cancel import CancelToken

_T = TypeVar("_T")


@dataclass(slots=True)
class _Flight(Generic[_T]):
    changed: threading.Condition = field(default_factory=threading.Condition)
    done: bool = False
    result: _T | None = None
    error: ModelError | None = None

    def finish(self, result: _T | None, error: ModelError | None) -> None:
        with self.changed:
            self.done, self.result, self.error = True, result, error
            self.changed.notify_all()

    def wake(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def wait(self, token: CancelToken) -> None:
        with token.on_cancel(self.wake), self.changed:
            while not self.done:
                token.raise_if_cancelled()
                self.changed.wait()


class Flights(Generic[_T]):
    """Requests under way, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, _Flight[_T]] = {}

    def once(self, key: str, token: CancelToken, work: Callable[[], _T]) -> tuple[_T, bool]:
        """The result of `work` for this key and whether this caller did it.

        Who waits gets the leader's result, or its error; if the leader ran out of its own time or was stopped, the
        next in line does the work itself.
        """
        while True:
            with self._lock:
                flight = self._running.get(key)
                leads = flight is None
                if flight is None:
                    flight = self._running[key] = _Flight()
            if leads:
                return self._lead(key, flight, work), True
            flight.wait(token)
            if flight.error is not None:
                raise flight.error
            if flight.result is not None:
                return flight.result, False

    def _lead(self, key: str, flight: _Flight[_T], work: Callable[[], _T]) -> _T:
        result: _T | None = None
        error: ModelError | None = None
        try:
            result = work()
            return result
        except DeadlineError:
            raise
        except ModelError as failed:
            error = failed
            raise
        finally:
            with self._lock:
                del self._running[key]
            flight.finish(result, error)
