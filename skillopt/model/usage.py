"""What was used, counted as it happens: by role, backend, model and stage. And what it costs, if that is known."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from skillopt.types import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. `cached` is the price of prompt tokens from the provider's cache."""

    prompt: float
    completion: float
    cached: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> Price:
        """Read `{input, output, cached}` as in `model.prices`."""
        return cls(data["input"], data["output"], data.get("cached"))

    def of(self, usage: Usage) -> float:
        """Dollars for `usage`. Reasoning tokens are part of the completion tokens."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * cached_price + usage.completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class UsageKey:
    """What usage is counted under. `free`: the model runs on this machine, so its tokens cost no money."""

    role: str
    backend: str
    model: str
    stage: str
    free: bool = False


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Counts of one key. `calls` got a reply, `failures` ended in an error; `retries` are attempts beyond the first.

    `cached_calls` were answered from the run's store and used nothing. `tokens` covers every attempt that reported
    tokens, failed ones too. `seconds` is the time of calls from first attempt to end. `last_error` is empty after a
    success.
    """

    calls: int = 0
    failures: int = 0
    retries: int = 0
    cached_calls: int = 0
    seconds: float = 0.0
    tokens: Usage = field(default_factory=Usage)
    last_error: str = ""

    @property
    def usage(self) -> Usage:
        """Tokens together with the number of calls."""
        return replace(self.tokens, calls=self.calls)


class UsageTracker:
    """The counters of one session; safe to use from many threads. `prices`: what costs are reckoned with."""

    def __init__(self, prices: Mapping[str, Price] | None = None) -> None:
        self._prices = prices or {}
        self._lock = threading.Lock()
        self._rows: dict[UsageKey, UsageRow] = {}

    def add_tokens(self, key: UsageKey, usage: Usage) -> None:
        """Count what one attempt used."""
        with self._lock:
            row = self._rows.get(key, UsageRow())
            self._rows[key] = replace(row, tokens=row.tokens + replace(usage, calls=0))

    def add_retry(self, key: UsageKey) -> None:
        """Count one more attempt."""
        with self._lock:
            row = self._rows.get(key, UsageRow())
            self._rows[key] = replace(row, retries=row.retries + 1)

    def add_success(self, key: UsageKey, seconds: float) -> None:
        """Count a call that got its reply."""
        with self._lock:
            row = self._rows.get(key, UsageRow())
            self._rows[key] = replace(row, calls=row.calls + 1, seconds=row.seconds + seconds, last_error="")

    def add_failure(self, key: UsageKey, seconds: float, error: str) -> None:
        """Count a call that ended in an error."""
        with self._lock:
            row = self._rows.get(key, UsageRow())
            changed = replace(row, failures=row.failures + 1, seconds=row.seconds + seconds, last_error=error)
            self._rows[key] = changed

    def add_cached(self, key: UsageKey) -> None:
        """Count a call answered from the store."""
        with self._lock:
            row = self._rows.get(key, UsageRow())
            self._rows[key] = replace(row, cached_calls=row.cached_calls + 1)

    def reset(self) -> None:
        """Forget everything."""
        with self._lock:
            self._rows = {}

    def rows(self) -> dict[UsageKey, UsageRow]:
        """A copy of all counters, ordered by role, stage, backend and model."""
        with self._lock:
            items = list(self._rows.items())
        return dict(sorted(items, key=lambda item: (item[0].role, item[0].stage, item[0].backend, item[0].model)))

    @property
    def total(self) -> Usage:
        """Everything added up."""
        return _sum(row.usage for row in self.rows().values())

    def by_role_stage(self) -> dict[str, dict[str, Usage]]:
        """`{role: {stage: usage}}`."""
        out: dict[str, dict[str, Usage]] = {}
        for key, row in self.rows().items():
            stages = out.setdefault(key.role, {})
            stages[key.stage] = stages.get(key.stage, Usage()) + row.usage
        return out

    def by_stage(self) -> dict[str, Usage]:
        """`{stage: usage}`, all roles together, ordered by stage."""
        out: dict[str, Usage] = {}
        for key, row in self.rows().items():
            out[key.stage] = out.get(key.stage, Usage()) + row.usage
        return dict(sorted(out.items()))

    def summary(self) -> dict[str, dict[str, int]]:
        """`{stage: {calls, prompt_tokens, completion_tokens, total_tokens}, "_total": {…}}`."""
        stages = self.by_stage()
        return {name: _counts(usage) for name, usage in (*stages.items(), ("_total", _sum(stages.values())))}

    def details(self) -> list[JsonObject]:
        """One dict for each key with every counter and `cost_usd` (None: unknown), for reports."""
        return [
            {
                "role": key.role,
                "backend": key.backend,
                "model": key.model,
                "stage": key.stage,
                "failures": row.failures,
                "retries": row.retries,
                "cached_calls": row.cached_calls,
                "seconds": round(row.seconds, 3),
                "last_error": row.last_error,
                "cost_usd": cost_of(key, row.tokens, self._prices),
                **row.usage.to_dict(),
            }
            for key, row in self.rows().items()
        ]

    def cost(self, prices: Mapping[str, Price] | None = None) -> float | None:
        """US dollars in all, by the session's prices or others, or None when a price or some tokens are unknown."""
        total = 0.0
        for key, row in self.rows().items():
            cost = cost_of(key, row.tokens, self._prices if prices is None else prices)
            if cost is None:
                return None
            total += cost
        return total


def read_prices(prices: Mapping[str, Price | Mapping[str, float]]) -> dict[str, Price]:
    """Prices by model, each a `Price` or the `{input, output, cached}` of `model.prices`."""
    return {model: price if isinstance(price, Price) else Price.from_dict(price) for model, price in prices.items()}


def price_of(key: UsageKey, prices: Mapping[str, Price]) -> Price | None:
    """The price of a key's model, looked up as `backend/model`, then as `model`."""
    if key.free:
        return Price(0.0, 0.0)
    return prices.get(f"{key.backend}/{key.model}") or prices.get(key.model)


def cost_of(key: UsageKey, usage: Usage, prices: Mapping[str, Price]) -> float | None:
    """Dollars for `usage` under `key`, or None when unknown: never a zero that nobody knows to be true."""
    price = price_of(key, prices)
    if price is None:
        return None if usage.total_tokens or not usage.known else 0.0
    return price.of(usage) if usage.known or key.free else None


def _sum(usages: Iterable[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total = total + usage
    return total


def _counts(usage: Usage) -> dict[str, int]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
