"""How long calls took, in bounded memory: counts in buckets whose bounds grow by a fixed factor.

A quantile read from it is at most 10 % off; count, sum and maximum are exact. Two of them add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillopt.types import JsonObject

_SMALLEST = 1e-3  # seconds; whatever is shorter is in the first bucket
_FACTOR = 1.2
_BUCKETS = 100  # up to 23 hours


@dataclass(frozen=True, slots=True)
class Latency:
    """Durations in seconds. `counts`: how many are in which bucket, `worst`: the longest one."""

    number: int = 0
    total: float = 0.0
    worst: float = 0.0
    counts: Mapping[int, int] = field(default_factory=dict)

    def plus(self, seconds: float) -> Latency:
        """With one more duration."""
        bucket = _bucket(seconds)
        counts = {**self.counts, bucket: self.counts.get(bucket, 0) + 1}
        return Latency(self.number + 1, self.total + seconds, max(self.worst, seconds), counts)

    @property
    def mean(self) -> float | None:
        """The mean, None without any."""
        return self.total / self.number if self.number else None

    def quantile(self, share: float) -> float | None:
        """The duration that `share` of all do not exceed (nearest rank), None without any."""
        rank, seen = max(1, math.ceil(share * self.number)), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                return min(self.worst, _middle(bucket))
        return None

    def summary(self) -> JsonObject:
        """`{mean_s, p50_s, p95_s, max_s}`, each None without any."""
        values = {"mean_s": self.mean, "p50_s": self.quantile(0.5), "p95_s": self.quantile(0.95)}
        values["max_s"] = self.worst if self.number else None
        return {name: None if value is None else round(value, 3) for name, value in values.items()}

    def to_dict(self) -> JsonObject:
        """Everything, for `from_dict`."""
        counts = {str(bucket): number for bucket, number in sorted(self.counts.items())}
        return {"number": self.number, "total": self.total, "worst": self.worst, "counts": counts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Latency:
        """Read what `to_dict` wrote."""
        counts = {int(bucket): int(number) for bucket, number in (data.get("counts") or {}).items()}
        return cls(
            int(data.get("number") or 0), float(data.get("total") or 0.0), float(data.get("worst") or 0.0), counts
        )


def _bucket(seconds: float) -> int:
    if seconds <= _SMALLEST:
        return 0
    return min(_BUCKETS, math.ceil(math.log(seconds / _SMALLEST, _FACTOR)))


def _middle(bucket: int) -> float:
    """The geometric middle of a bucket."""
    return _SMALLEST * _FACTOR ** (bucket - 0.5) if bucket else _SMALLEST
