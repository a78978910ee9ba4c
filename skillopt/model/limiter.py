"""How many requests an endpoint gets at once and in a minute, and in which order.

Concurrency follows what the endpoint bears (`crowd.py`). First come, first served: a request that was refused keeps its
place. Waiting ends early when the caller's token ends.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from skillopt.errors import RateLimitError
from skillopt.model.crowd import Crowd
from skillopt.model.retry import RetryPolicy
from skillopt.utils.cancel import CancelToken

_BURST_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard a session may press, per endpoint, and how patient it is. None or 0 a minute means no such limit.

    Times in seconds. `timeout_seconds` bounds all attempts of one call together; waiting for a turn does not count. A
    backend's own `timeout_seconds` bounds one attempt, half of the call's time where it has none; a call has at least
    the time of two attempts.
    """

    max_concurrency: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retries: int = 5
    retry_first_wait_seconds: float = 1.0
    retry_longest_wait_seconds: float = 30.0
    retry_after_ceiling_seconds: float = 300.0
    timeout_seconds: float = 600.0

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
    """The right to send one request, given by an `EndpointLimiter`.

    `number`: which of all requests it is. `news`: after a refusal, whether it was the first of several at one time.
    """

    def __init__(self, estimate: int, number: int) -> None:
        self.estimate, self.number = estimate, number
        self.tokens = estimate
        self.good = self.news = False

    def used(self, tokens: int) -> None:
        """The request succeeded and took this many tokens."""
        self.tokens, self.good = tokens or self.estimate, True


@dataclass(order=True)
class _Ticket:
    """One who waits. `place`: where in the line. `turn`: how it is woken, alone."""

    place: int
    turn: threading.Condition = field(compare=False)


class EndpointLimiter:
    """The limits of one endpoint, shared by all threads of a session. None means no such limit.

    `policy`: how long everybody waits when the endpoint serves nobody and does not say for how long.
    """

    def __init__(
        self,
        max_concurrency: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        policy: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._policy = policy or RetryPolicy()
        self._lock = threading.RLock()  # a signal handler may cancel while its own thread is in here
        self._crowd = Crowd(max(1, max_concurrency))
        self._running = 0
        self._places = 0
        self._line: list[_Ticket] = []
        self._blocks = 0
        self._blocked_until = -math.inf
        self._released = False
        self._requests = _Bucket(requests_per_minute, clock())
        self._tokens = _Bucket(tokens_per_minute, clock())

    @property
    def concurrency(self) -> int:
        """How many requests may run at once now."""
        with self._lock:
            return self._crowd.limit

    def place(self) -> int:
        """A place in the line, behind all that were given before. It is good for every attempt of one call."""
        with self._lock:
            self._places += 1
            return self._places

    @contextlib.contextmanager
    def slot(self, token: CancelToken, estimate: int = 0, *, place: int | None = None) -> Iterator[Slot]:
        """Wait for the right to send a request of about `estimate` tokens, and hold it while inside.

        `place`: a place from `place()`, else the last one. Raises DeadlineError or InterruptedRunError when `token`
        ends first.
        """
        slot = self._enter(token, estimate, self.place() if place is None else place)
        try:
            yield slot
        finally:
            self._leave(slot)

    def throttled(self, slot: Slot, retry_after: float | None) -> bool:
        """The endpoint answered the request of `slot` with 429, and the wait that it asked for.

        True when the endpoint serves others: fewer run from now on, and the request can go again as soon as there is
        room. False when it serves nobody: all wait as long as it asked for.
        """
        with self._lock:
            slot.tokens = 0
            slot.news = self._crowd.is_news(slot.number)
            if self._crowd.refused(slot.number, self._running - 1):
                return True
            self._blocks += 1
            pause = self._policy.wait_after(RateLimitError("", retry_after), self._blocks)
            self._blocked_until = max(self._blocked_until, self._clock() + pause)
            return False

    def release(self) -> None:
        """Let in at once whoever waits, now or later: no request will be sent any more, and they are to learn it."""
        with self._lock:
            self._released = True
            for ticket in self._line:
                ticket.turn.notify()

    def _enter(self, token: CancelToken, estimate: int, place: int) -> Slot:
        with self._lock:
            if self._line or not self._try_start(estimate):
                self._wait_in_line(token, estimate, place)
            return Slot(estimate, self._crowd.sent())

    def _wait_in_line(self, token: CancelToken, estimate: int, place: int) -> None:
        """Wait for one's turn; first come, first served, so that nobody starves."""
        ticket = _Ticket(place, threading.Condition(self._lock))
        bisect.insort(self._line, ticket)
        try:
            with token.on_cancel(lambda: self._wake(ticket)):
                while True:
                    token.raise_if_cancelled()
                    first = self._line[0] is ticket
                    if (first or self._released) and self._try_start(estimate):
                        return
                    ticket.turn.wait(self._delay(estimate) if first else None)
        finally:
            self._line.remove(ticket)
            self._wake_first()

    def _wake(self, ticket: _Ticket) -> None:
        with self._lock:
            ticket.turn.notify()

    def _wake_first(self) -> None:
        if self._line:
            self._line[0].turn.notify()

    def _delay(self, estimate: int) -> float | None:
        """Seconds until time alone opens the way, or None when only another request's end can."""
        if self._running >= self._crowd.limit:
            return None
        now = self._clock()
        waits = (self._blocked_until - now, self._requests.wait(now, 1), self._tokens.wait(now, estimate))
        return max(0.001, *waits)

    def _try_start(self, estimate: int) -> bool:
        if self._released:
            self._running += 1
            return True
        now = self._clock()
        free = self._running < self._crowd.limit and now >= self._blocked_until
        if not free or self._requests.wait(now, 1) > 0 or self._tokens.wait(now, estimate) > 0:
            return False
        self._requests.take(1)
        self._tokens.take(estimate)
        self._running += 1
        return True

    def _leave(self, slot: Slot) -> None:
        with self._lock:
            self._running -= 1
            self._tokens.take(slot.tokens - slot.estimate)
            if slot.good:
                self._blocks = 0
                self._crowd.served(slot.number, wanted=bool(self._line))
            self._wake_first()
