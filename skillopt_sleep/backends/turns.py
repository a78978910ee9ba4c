"""Which of several like calls this one is, and whose turn it is: what lets threads share one way out."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator


class FreshNumbers:
    """Numbers the fresh calls for each prompt from 1, so that a resumed night asks for the same answers again.

    The number of a call that failed goes to the next one, as it would in a night that is resumed after it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Counter[str] = Counter()
        self._free: dict[str, list[int]] = {}
        self._given: dict[str, tuple[str, int]] = {}

    def take(self, base: str) -> int:
        """The number of the next call with the key `base`: the lowest that was given back, else a new one."""
        with self._lock:
            free = self._free.get(base)
            if free:
                return free.pop(free.index(min(free)))
            self._last[base] += 1
            return self._last[base]

    def given_to(self, key: str, base: str, number: int) -> None:
        """Remember that the call `key` has this number."""
        with self._lock:
            self._given[key] = base, number

    def give_back(self, key: str) -> None:
        """The call `key` failed; nothing when it has no number."""
        with self._lock:
            base, number = self._given.pop(key, ("", 0))
            if base:
                self._free.setdefault(base, []).append(number)


class Turns:
    """Lets calls with the same key go one after another: the second finds the answer of the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight: dict[str, tuple[threading.Lock, int]] = {}

    def __len__(self) -> int:
        """How many keys are in use."""
        return len(self._in_flight)

    @contextlib.contextmanager
    def of(self, key: str) -> Iterator[None]:
        """This thread's turn with `key`."""
        with self._lock:
            lock, users = self._in_flight.get(key, (threading.Lock(), 0))
            self._in_flight[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._in_flight[key]
                self._in_flight[key] = (lock, users - 1)
                if users == 1:
                    del self._in_flight[key]
