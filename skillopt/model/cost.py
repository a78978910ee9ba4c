"""What tokens cost: the price of a million, and what is known of a sum. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillopt.types import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. `cached` is the price of prompt tokens from the provider's cache.

    `source` says in words where the price is from.
    """

    prompt: float
    completion: float
    cached: float | None = None
    source: str = field(default="", compare=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "model.prices") -> Price:
        """Read `{input, output, cached}` as in `model.prices`; a `source` in it wins over the one given."""
        return cls(data["input"], data["output"], data.get("cached"), str(data.get("source") or source))

    def to_dict(self) -> JsonObject:
        """`{input, output, cached, source}`."""
        return {"input": self.prompt, "output": self.completion, "cached": self.cached, "source": self.source}

    def of(self, usage: Usage) -> float:
        """Dollars for `usage`. Reasoning tokens are part of the completion tokens."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * cached_price + usage.completion_tokens * self.completion) / 1e6


FREE = Price(0.0, 0.0, source="runs on this machine")


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars that are known to be spent; `complete` is False when there is more that nobody knows."""

    usd: float = 0.0
    complete: bool = True

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.complete and other.complete)

    @property
    def exact(self) -> float | None:
        """The whole cost, None when a part of it is unknown."""
        return self.usd if self.complete else None


def read_prices(prices: Mapping[str, Price | Mapping[str, float]]) -> dict[str, Price]:
    """Prices by model, each a `Price` or the `{input, output, cached}` of `model.prices`."""
    return {model: price if isinstance(price, Price) else Price.from_dict(price) for model, price in prices.items()}
