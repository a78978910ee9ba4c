"""What a run may spend. Checked before each call, so that nothing is sent once a budget is used up.

Calls are exact. Tokens, dollars and seconds are known only afterwards: calls already under way end, so a budget can
be passed by what those use.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillopt.errors import BudgetExceededError, ConfigError
from skillopt.types import Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """What has been spent, by this process and by earlier ones of the same run."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """For the run's state file."""
        return {"calls": self.calls, "tokens": self.tokens, "cost_usd": self.cost_usd, "seconds": self.seconds}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spent:
        """Read what `to_dict` wrote; what is missing counts as zero."""
        return cls(
            calls=int(data.get("calls") or 0),
            tokens=int(data.get("tokens") or 0),
            cost_usd=float(data.get("cost_usd") or 0.0),
            seconds=float(data.get("seconds") or 0.0),
        )


class Budget:
    """The limits of a run. None is unlimited; 0 allows nothing. `used`: what earlier processes of the run spent
    (a `Usage` tells calls and tokens, and no money).

    `max_seconds` counts from the making of this object, the others over all processes of the run.
    """

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        max_seconds: float | None = None,
        used: Spent | Usage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_calls, self.max_tokens = max_calls, max_tokens
        self.max_cost_usd, self.max_seconds = max_cost_usd, max_seconds
        self._lock = threading.Lock()
        self._clock, self._started = clock, clock()
        self._used = used if isinstance(used, Spent) else _spent_of(used or Usage())

    @property
    def spent(self) -> Spent:
        """What has been spent until now."""
        with self._lock:
            return self._now()

    def start_call(self) -> None:
        """Count a call that is about to be made. Raises BudgetExceededError when a budget is used up."""
        with self._lock:
            self._check(self._now())
            self._used = replace(self._used, calls=self._used.calls + 1)

    def check(self) -> None:
        """Raise BudgetExceededError when a further call would not be allowed."""
        with self._lock:
            self._check(self._now())

    def allows_attempt(self) -> bool:
        """Whether a call that is counted already may be sent once more: tokens, money and time are left."""
        with self._lock:
            spent = self._now()
        return all(most is None or used < most for name, most, used in self._limits(spent) if name != "max_calls")

    def add(self, usage: Usage, cost_usd: float | None) -> None:
        """Count what an attempt used. Raises ConfigError for an unknown cost under a money budget."""
        with self._lock:
            used = self._used
            self._used = replace(
                used, tokens=used.tokens + usage.total_tokens, cost_usd=used.cost_usd + (cost_usd or 0.0)
            )
        if cost_usd is None and self.max_cost_usd is not None:
            raise ConfigError(
                "budget.max_cost_usd is set, but a call's cost is unknown: its model has no entry in model.prices or "
                "its provider reports no tokens; add the price, or limit budget.max_calls instead."
            )

    def _now(self) -> Spent:
        return replace(self._used, seconds=self._used.seconds + self._clock() - self._started)

    def _limits(self, spent: Spent) -> tuple[tuple[str, float | None, float], ...]:
        """Name, limit and what is used of each budget."""
        return (
            ("max_calls", self.max_calls, spent.calls),
            ("max_tokens", self.max_tokens, spent.tokens),
            ("max_cost_usd", self.max_cost_usd, spent.cost_usd),
            ("max_seconds", self.max_seconds, self._clock() - self._started),
        )

    def _check(self, spent: Spent) -> None:
        for name, most, used in self._limits(spent):
            if most is not None and used >= most:
                raise BudgetExceededError(
                    f"budget.{name} = {most:g} is used up ({used:g}); everything finished is kept, "
                    "raise it and run the same command again to go on."
                )


def _spent_of(usage: Usage) -> Spent:
    return Spent(calls=usage.calls, tokens=usage.total_tokens)
