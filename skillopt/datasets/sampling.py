"""Seeded choices: how many steps an epoch has, which items a batch gets. Pure functions of their arguments."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from skillopt.errors import ConfigError

_T = TypeVar("_T")
_EPOCH_STRIDE = 1000


def steps_per_epoch(train_size: int, batch_size: int, accumulation: int = 1) -> int:
    """`ceil(train_size / (batch_size * accumulation))`. Raises ConfigError for numbers below 1."""
    for name, value in (("train_size", train_size), ("batch_size", batch_size), ("accumulation", accumulation)):
        if value < 1:
            raise ConfigError(f"train.{name} is {value}; expected at least 1.")
    return math.ceil(train_size / (batch_size * accumulation))


def epoch_seed(seed: int, epoch: int) -> int:
    """Seed of the order of the train items in `epoch`."""
    return seed + epoch * _EPOCH_STRIDE


def shuffled(items: Sequence[_T], seed: int) -> list[_T]:
    """A shuffled copy, the same for the same seed on every platform."""
    order = list(items)
    random.Random(seed).shuffle(order)
    return order


def epoch_slices(
    items: Sequence[_T], *, epoch: int, batches: int, batch_size: int, seed: int
) -> list[tuple[int, list[_T]]]:
    """The (seed, items) of each train batch of an epoch.

    All items are shuffled once and cut into consecutive slices, of which the last may be short. Where the items have
    run out, a batch is refilled from a shuffle of all items with the batch's own seed.
    """
    base = epoch_seed(seed, epoch)
    order = shuffled(items, base)
    plan: list[tuple[int, list[_T]]] = []
    for index in range(batches):
        batch_seed = base + index + 1
        batch = order[index * batch_size : (index + 1) * batch_size]
        plan.append((batch_seed, batch or shuffled(items, batch_seed)[:batch_size]))
    return plan


def epoch_batch_seeds(*, epoch: int, batches: int, seed: int) -> list[int]:
    """Batch seeds of an epoch where the items are not known: `seed + 1` to `seed + batches`, shuffled by epoch."""
    return shuffled(range(seed + 1, seed + batches + 1), epoch_seed(seed, epoch))
