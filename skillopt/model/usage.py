"""What was used, counted as it happens: by role, backend, model and stage. And what it costs, if that is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from skillopt.model.cost import FREE, Cost, Price
from skillopt.model.latency import Latency
from skillopt.types import JsonObject, Usage, canonical_json


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
    tokens, failed ones too; `unknown` counts replies that reported none. `seconds` is the time of calls from first
    attempt to end, `latency` that of those with a reply. `last_error` is empty after a success that began later.
    """

    calls: int = 0
    failures: int = 0
    retries: int = 0
    cached_calls: int = 0
    seconds: float = 0.0
    tokens: Usage = field(default_factory=Usage)
    unknown: int = 0
    latency: Latency = field(default_factory=Latency)
    last_error: str = ""

    @property
    def usage(self) -> Usage:
        """Tokens together with the number of calls."""
        return replace(self.tokens, calls=self.calls)


class UsageLedger(Protocol):
    """Where counters outlive the process."""

    def usage_rows(self) -> list[JsonObject]:
        """Every kept row."""

    def put_usage(self, key: str, row: Mapping[str, Any]) -> None:
        """Keep the present state of a row."""


class UsageTracker:
    """The counters of one session; safe to use from many threads.

    `prices`: what costs are reckoned with. `ledger`: where the counters are kept at the end of every call and read
    from at the start, so that they go on after a process was killed.
    """

    def __init__(self, prices: Mapping[str, Price] | None = None, ledger: UsageLedger | None = None) -> None:
        self._prices = prices or {}
        self._ledger = ledger
        self._lock = threading.Lock()
        self._rows: dict[UsageKey, UsageRow] = {}
        self._former: dict[UsageKey, Price] = {}
        self._failed_at: dict[UsageKey, float] = {}
        for kept in ledger.usage_rows() if ledger is not None else ():
            key = UsageKey(kept["role"], kept["backend"], kept["model"], kept["stage"], bool(kept["free"]))
            self._rows[key] = _read_row(kept)
            if kept.get("price"):
                self._former[key] = Price.from_dict(kept["price"])

    def price(self, key: UsageKey) -> Price | None:
        """The price that the tokens of `key` are reckoned with, or None when unknown."""
        return price_of(key, self._prices) or self._former.get(key)

    def add_tokens(self, key: UsageKey, usage: Usage) -> None:
        """Count what one attempt used."""
        tokens = replace(usage, calls=0)
        self._change(
            key,
            lambda row: replace(row, tokens=row.tokens + tokens, unknown=row.unknown + (not usage.known)),
            keep=False,
        )

    def add_retry(self, key: UsageKey) -> None:
        """Count one more attempt."""
        self._change(key, lambda row: replace(row, retries=row.retries + 1), keep=False)

    def add_success(self, key: UsageKey, seconds: float) -> None:
        """Count a call that got its reply. One that began after the last error shows that the error is over."""
        began = time.monotonic() - seconds
        over = began >= self._failed_at.get(key, 0.0)
        self._change(
            key,
            lambda row: replace(
                row,
                calls=row.calls + 1,
                seconds=row.seconds + seconds,
                latency=row.latency.plus(seconds),
                last_error="" if over else row.last_error,
            ),
        )

    def add_failure(self, key: UsageKey, seconds: float, error: str) -> None:
        """Count a call that ended in an error."""
        self._failed_at[key] = time.monotonic()
        self._change(
            key,
            lambda row: replace(row, failures=row.failures + 1, seconds=row.seconds + seconds, last_error=error),
        )

    def add_cached(self, key: UsageKey) -> None:
        """Count a call answered from the store."""
        self._change(key, lambda row: replace(row, cached_calls=row.cached_calls + 1))

    def keep(self, key: UsageKey) -> None:
        """Keep what has been counted of a call that ends without a reply or an error of its own."""
        with self._lock:
            if key in self._rows:
                self._keep(key, self._rows[key])

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
        """One dict for each key with every counter, for reports.

        `latency` holds mean, median, 95th percentile and maximum in seconds. `cost_usd` is None when unknown, as it is
        when a part is; `cost_at_least_usd` is what is known of it. `price` says what a million tokens cost, by whom.
        """
        return [{**self._counters(key, row), "latency": row.latency.summary()} for key, row in self.rows().items()]

    def cost(self, prices: Mapping[str, Price] | None = None) -> float | None:
        """US dollars in all, by the session's prices or others, or None when a price or some tokens are unknown."""
        return self.total_cost(prices).exact

    def total_cost(self, prices: Mapping[str, Price] | None = None) -> Cost:
        """What everything costs, as far as that is known, by the session's prices or others."""
        total = Cost()
        for key, row in self.rows().items():
            price = self.price(key) if prices is None else price_of(key, prices)
            total += _cost(price, row.tokens, free=key.free)
        return total

    def _change(self, key: UsageKey, change: Callable[[UsageRow], UsageRow], *, keep: bool = True) -> None:
        """Change one row, and keep it before anybody can count on it.

        `keep` is False for what is said of a call before its end: one write for a call is enough.
        """
        with self._lock:
            row = self._rows[key] = change(self._rows.get(key, UsageRow()))
            if keep:
                self._keep(key, row)

    def _keep(self, key: UsageKey, row: UsageRow) -> None:
        if self._ledger is not None:
            kept = {**self._counters(key, row), "free": key.free, "latency": row.latency.to_dict()}
            self._ledger.put_usage(canonical_json([key.role, key.backend, key.model, key.stage]), kept)

    def _counters(self, key: UsageKey, row: UsageRow) -> JsonObject:
        price = self.price(key)
        cost = _cost(price, row.tokens, free=key.free)
        return {
            "role": key.role,
            "backend": key.backend,
            "model": key.model,
            "stage": key.stage,
            "failures": row.failures,
            "retries": row.retries,
            "cached_calls": row.cached_calls,
            "unknown_calls": row.unknown,
            "seconds": round(row.seconds, 3),
            "last_error": row.last_error,
            "cost_usd": cost.exact,
            "cost_at_least_usd": cost.usd,
            "price": None if price is None else price.to_dict(),
            **row.usage.to_dict(),
        }


def price_of(key: UsageKey, prices: Mapping[str, Price]) -> Price | None:
    """The price of a key's model, looked up as `backend/model`, then as `model`."""
    if key.free:
        return FREE
    return prices.get(f"{key.backend}/{key.model}") or prices.get(key.model)


def cost_of(key: UsageKey, usage: Usage, prices: Mapping[str, Price]) -> float | None:
    """Dollars for `usage` under `key`, or None when unknown: never a zero that nobody knows to be true."""
    return _cost(price_of(key, prices), usage, free=key.free).exact


def _cost(price: Price | None, usage: Usage, *, free: bool) -> Cost:
    if price is None:
        return Cost(0.0, not usage.total_tokens and usage.known)
    return Cost(price.of(usage), usage.known or free)


def _read_row(kept: Mapping[str, Any]) -> UsageRow:
    return UsageRow(
        calls=kept["calls"],
        failures=kept["failures"],
        retries=kept["retries"],
        cached_calls=kept["cached_calls"],
        seconds=kept["seconds"],
        tokens=replace(Usage.from_dict(kept), calls=0),
        unknown=kept["unknown_calls"],
        latency=Latency.from_dict(kept["latency"]),
        last_error=kept["last_error"],
    )


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
