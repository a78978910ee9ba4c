"""How many requests an endpoint gets at once and in a minute.

Concurrency follows what the endpoint bears, as in TCP: half after a 429, one more after a run of successes (additive
increase, multiplicative decrease; Chiu and Jain 1989). Waiting ends early when the caller's token ends.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skillopt.model.retry import RetryPolicy
from skillopt.utils.cancel import CancelToken

SUCCESSES_TO_GROW = 20
_BURST_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a session may press, per endpoint, and how patient it is. None or 0 a minute means no such limit.

    Times in seconds. `timeout_seconds` bounds all attempts of one call together; waiting for a turn does not count. A
    backend's own `timeout_seconds` bounds one attempt.
    """

    max_concurrency: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retries: int = 5
    retry_first_wait_seconds: float = 1.0
    retry_longest_wait_seconds: float = 30.0
    retry_after_ceiling_seconds: float = 300.0
    timeout_seconds: float = 300.0

    @property
    def policy(self) -> RetryPolicy:
        """The part that is about retries."""
        return RetryPolicy(
            self.retries,
            self.retry_first_wait_seconds,
            self.retry_longest_wait_seconds,
            self.retry_after_ceiling_seconds,
        )


class _Bucket:
    """So many units a minute, a tenth of it at once. May go below zero: a large call passes and later ones wait."""

    def __init__(self, per_minute: float | None, now: float) -> None:
        self._rate = None if per_minute is None else per_minute / 60.0
        self._most = 0.0 if self._rate is None else max(1.0, self._rate * _BURST_SECONDS)
        self._level, self._at = self._most, now

    def wait(self, now: float, need: float) -> float:
        """Seconds until `need` units are there; a need above what fits counts as a full bucket."""
        if self._rate is None:
            return 0.0
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        missing = min(need, self._most) - self._level
        return max(0.0, missing / self._rate) if missing > 1e-9 else 0.0

    def take(self, units: float) -> None:
        if self._rate is not None:
            self._level = min(self._most, self._level - units)


class Slot:
    """The right to send one request, given by an `EndpointLimiter`."""

    def __init__(self, estimate: int, generation: int) -> None:
        self.estimate, self.generation = estimate, generation
        self.tokens = estimate
        self.good = False

    def used(self, tokens: int) -> None:
        """The request succeeded and took this many tokens."""
        self.tokens, self.good = tokens or self.estimate, True


class EndpointLimiter:
    """The limits of one endpoint, shared by all threads of a session. None means no such limit."""

    def __init__(
        self,
        max_concurrency: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._most = max(1, max_concurrency)
        self._limit = self._most
        self._running = 0
        self._line: deque[object] = deque()
        self._streak = 0
        self._generation = 0
        self._blocked_until = -math.inf
        self._released = False
        self._requests = _Bucket(requests_per_minute, clock())
        self._tokens = _Bucket(tokens_per_minute, clock())

    @property
    def concurrency(self) -> int:
        """How many requests may run at once now."""
        with self._changed:
            return self._limit

    @contextlib.contextmanager
    def slot(self, token: CancelToken, estimate: int = 0) -> Iterator[Slot]:
        """Wait for the right to send a request of about `estimate` tokens, and hold it while inside.

        Raises DeadlineError or InterruptedRunError when `token` ends first.
        """
        slot = self._enter(token, estimate)
        try:
            yield slot
        finally:
            self._leave(slot)

    def _enter(self, token: CancelToken, estimate: int) -> Slot:
        with self._changed:
            if self._line or not self._try_start(estimate):
                self._wait_in_line(token, estimate)
            return Slot(estimate, self._generation)

    def _wait_in_line(self, token: CancelToken, estimate: int) -> None:
        """Wait for one's turn; first come, first served, so that nobody starves."""
        ticket = object()
        self._line.append(ticket)
        try:
            with token.on_cancel(self._wake):
                while True:
                    token.raise_if_cancelled()
                    first = self._line[0] is ticket
                    if first and self._try_start(estimate):
                        return
                    self._changed.wait(self._delay(estimate) if first else None)
        finally:
            self._line.remove(ticket)
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _delay(self, estimate: int) -> float | None:
        """Seconds until time alone opens the way, or None when only another request's end can."""
        if self._running >= self._limit:
            return None
        now = self._clock()
        waits = (self._blocked_until - now, self._requests.wait(now, 1), self._tokens.wait(now, estimate))
        return max(0.001, *waits)

    def release(self) -> None:
        """Let in at once whoever waits, now or later: no request will be sent any more, and they are to learn it."""
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def _try_start(self, estimate: int) -> bool:
        if self._released:
            self._running += 1
            return True
        now = self._clock()
        free = self._running < self._limit and now >= self._blocked_until
        if not free or self._requests.wait(now, 1) > 0 or self._tokens.wait(now, estimate) > 0:
            return False
        self._requests.take(1)
        self._tokens.take(estimate)
        self._running += 1
        return True

    def _leave(self, slot: Slot) -> None:
        with self._changed:
            self._running -= 1
            self._tokens.take(slot.tokens - slot.estimate)
            if slot.good:
                self._grow()
            self._changed.notify_all()

    def throttled(self, slot: Slot, retry_after: float | None) -> bool:
        """The endpoint answered the request of `slot` with 429, and the wait that it asked for.

        True when fewer requests run at once from now on than when this one was sent: again, it has a better chance.
        """
        with self._changed:
            self._streak = 0
            slot.tokens = 0
            self._blocked_until = max(self._blocked_until, self._clock() + (retry_after or 0.0))
            # Requests that were already running at the last decrease say nothing about the new limit.
            if slot.generation == self._generation:
                self._shrink()
            return slot.generation < self._generation

    def _shrink(self) -> None:
        crowd = min(self._limit, self._running)
        if crowd > 1:  # a request refused alone was not refused for want of room
            self._limit = math.ceil(crowd / 2) if crowd > 2 else 1
            self._generation += 1

    def _grow(self) -> None:
        self._streak += 1
        if self._streak >= SUCCESSES_TO_GROW and self._limit < self._most:
            self._limit += 1
            self._streak = 0
