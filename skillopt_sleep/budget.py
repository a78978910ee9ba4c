"""Limits of a night: `Meter` counts every model call and refuses the one that would pass a cap."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.errors import BudgetSpent

_TOKENS_A_CALL = 1500
_CALLS_A_TASK = 3


@dataclass(slots=True)
class Budget:
    """What an experiment may spend; None means no limit. Minutes run from the making of the object."""

    max_tokens: int | None = None
    max_minutes: float | None = None
    tokens_spent: int = 0
    clock: Callable[[], float] = time.monotonic
    started: float = field(default=-1.0)

    def __post_init__(self) -> None:
        if self.started < 0:
            self.started = self.clock()

    def spend(self, tokens: int) -> None:
        """Count `tokens` more."""
        self.tokens_spent += max(0, int(tokens))

    @property
    def minutes_elapsed(self) -> float:
        """Minutes since the start."""
        return (self.clock() - self.started) / 60.0

    @property
    def remaining_fraction(self) -> float:
        """The smallest share that is left of any limit, 0..1; 1 without limits."""
        shares = [1.0]
        for limit, used in ((self.max_tokens, float(self.tokens_spent)), (self.max_minutes, self.minutes_elapsed)):
            if limit is not None:
                shares.append(max(0.0, 1.0 - used / limit) if limit > 0 else 0.0)
        return min(shares)

    @property
    def exhausted(self) -> bool:
        """True when a limit is reached."""
        return (self.max_tokens is not None and self.tokens_spent >= self.max_tokens) or (
            self.max_minutes is not None and self.minutes_elapsed >= self.max_minutes
        )

    def status(self) -> str:
        """Spending and limits in one line."""
        tokens = "no limit" if self.max_tokens is None else str(self.max_tokens)
        minutes = "no limit" if self.max_minutes is None else f"{self.max_minutes:g}"
        return f"{self.tokens_spent} tokens of {tokens}, {self.minutes_elapsed:.1f} minutes of {minutes}"


def plan_depth(budget: Budget, n_tasks: int, default_nights: int = 2, default_k: int = 1) -> tuple[int, int]:
    """(nights, rollouts a task) that a token limit allows; the defaults without one.

    With a = max_tokens/1500 attempts and n tasks: nights = a // 3n within 1..4, and
    k = 1 + (a - 3n*nights) // n within 1..5.
    """
    if budget.max_tokens is None:
        return default_nights, default_k
    tasks = max(1, n_tasks)
    attempts = budget.max_tokens / _TOKENS_A_CALL
    a_night = _CALLS_A_TASK * tasks
    nights = min(4, max(1, int(attempts // a_night)))
    return nights, min(5, max(1, 1 + int((attempts - nights * a_night) // tasks)))


@dataclass(slots=True)
class Charge:
    """One call in flight. Whoever made the call sets `tokens` to what it used; unset, the estimate counts.

    `calls`: how many requests it took, known afterwards. `reserved`: what is held for it.
    """

    kind: str
    estimate: int
    tokens: int | None = None
    calls: int = 1
    reserved: int = 0


class Meter:
    """Counts calls, tokens and minutes of a night, safely from many threads, and enforces hard caps.

    A call is admitted only if its estimate (prompt plus longest answer, or the most that a call of its kind has used)
    still fits beside what is spent and what the calls in flight may use. None means no cap; a cap of 0 admits nothing.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_calls: int | None = None,
        max_minutes: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_tokens = max_tokens
        self.max_calls = max_calls
        self.max_minutes = max_minutes
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._kinds: dict[str, list[int]] = {}
        self._most: dict[str, int] = {}
        self._reserved = 0
        self._minutes_before = 0.0

    @contextlib.contextmanager
    def call(self, kind: str, estimate: int = 0) -> Iterator[Charge]:
        """Around one model call: `with meter.call("attempt", estimate) as charge: ...; charge.tokens = used`.

        Raises BudgetSpent before the call when a cap does not allow it. A call that raises counts as a call, with the
        tokens that were set by then.
        """
        charge = self._admit(kind, max(0, int(estimate)))
        try:
            yield charge
        except BaseException:
            charge.tokens = charge.tokens or 0
            raise
        finally:
            self._settle(charge)

    def check(self) -> None:
        """Raise BudgetSpent when not even a call of no tokens is allowed any more."""
        with self._lock:
            self._refuse(0)

    @property
    def calls(self) -> int:
        """Calls so far, those in flight included."""
        return sum(calls for calls, _ in self._kinds.values())

    @property
    def tokens(self) -> int:
        """Tokens of the calls that have ended."""
        return sum(tokens for _, tokens in self._kinds.values())

    @property
    def minutes(self) -> float:
        """Minutes since the start, with those of an interrupted night before it."""
        return self._minutes_before + (self._clock() - self._started) / 60.0

    def to_dict(self) -> dict[str, Any]:
        """`{calls, tokens, minutes, kinds: {kind: {calls, tokens}}}`, for reports and for `restore`."""
        with self._lock:
            kinds = {kind: {"calls": row[0], "tokens": row[1]} for kind, row in sorted(self._kinds.items())}
            return {"calls": self.calls, "tokens": self.tokens, "minutes": round(self.minutes, 3), "kinds": kinds}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Count what an interrupted night spent before (a `to_dict`)."""
        with self._lock:
            for kind, row in dict(data.get("kinds") or {}).items():
                self._add(str(kind), int(row.get("calls", 0)), int(row.get("tokens", 0)))
            self._minutes_before += float(data.get("minutes") or 0.0)

    def _admit(self, kind: str, estimate: int) -> Charge:
        with self._lock:
            reserved = max(estimate, self._most.get(kind, 0))
            self._refuse(reserved)
            self._reserved += reserved
            self._add(kind, 1, 0)
        return Charge(kind, estimate, reserved=reserved)

    def _settle(self, charge: Charge) -> None:
        with self._lock:
            self._reserved -= charge.reserved
            used = charge.estimate if charge.tokens is None else max(0, int(charge.tokens))
            self._most[charge.kind] = max(used, self._most.get(charge.kind, 0))
            self._add(charge.kind, max(0, charge.calls - 1), used)

    def _add(self, kind: str, calls: int, tokens: int) -> None:
        row = self._kinds.setdefault(kind, [0, 0])
        row[0] += calls
        row[1] += tokens

    def _refuse(self, estimate: int) -> None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetSpent(_spent("calls", f"{self.calls} of {self.max_calls} calls are made"), limit="calls")
        used = self.tokens + self._reserved
        if self.max_tokens is not None and (used + estimate > self.max_tokens or used >= self.max_tokens):
            done = f"{used} of {self.max_tokens} tokens are spent or promised and the next call may take {estimate}"
            raise BudgetSpent(_spent("tokens", done), limit="tokens")
        if self.max_minutes is not None and self.minutes >= self.max_minutes:
            done = f"{self.minutes:.1f} of {self.max_minutes:g} minutes are over"
            raise BudgetSpent(_spent("minutes", done), limit="minutes")


def _spent(limit: str, done: str) -> str:
    return f"The night's budget is used up: {done}; what was paid for is kept, raise max_{limit}_per_night for more."
