"""Ready splits of the benchmarks, made from their public data and a manifest that says which items belong where."""

from __future__ import annotations

from skillopt.datasets.materialize.benchmarks import BENCHMARKS, Benchmark, get_benchmark
from skillopt.datasets.materialize.build import Materialized, MissingItemsError, Order, materialize
from skillopt.datasets.materialize.making import Cut, make_manifest

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Cut",
    "Materialized",
    "MissingItemsError",
    "Order",
    "get_benchmark",
    "make_manifest",
    "materialize",
]
