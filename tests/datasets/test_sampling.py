from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.datasets.sampling import epoch_batch_seeds, epoch_slices, steps_per_epoch
from skillopt.errors import ConfigError


def test_steps_per_epoch():
    assert steps_per_epoch(10, 4) == 3
    assert steps_per_epoch(10, 4, 2) == 2
    for bad in [(0, 4, 1), (10, 0, 1), (10, 4, 0)]:
        with pytest.raises(ConfigError):
            steps_per_epoch(*bad)


def test_plan_follows_the_formula():
    plan = epoch_slices(list("abcde"), epoch=2, batches=4, batch_size=2, seed=7)
    order = list("abcde")
    random.Random(2007).shuffle(order)
    refill = list("abcde")
    random.Random(2011).shuffle(refill)
    assert plan == [(2008, order[:2]), (2009, order[2:4]), (2010, order[4:]), (2011, refill[:2])]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 5), st.integers(0, 99))
def test_every_item_is_used_once_before_any_refill(count, size, epoch, seed):
    batches = steps_per_epoch(count, size)
    plan = epoch_slices(range(count), epoch=epoch, batches=batches, batch_size=size, seed=seed)
    assert sorted(item for _, batch in plan for item in batch) == list(range(count))


def test_seeds_of_other_loaders():
    seeds = [43, 44, 45]
    random.Random(42 + 1000).shuffle(seeds)
    assert epoch_batch_seeds(epoch=1, batches=3, seed=42) == seeds
