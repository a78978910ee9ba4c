from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.datasets.ratio import cut, parse_ratio, source_hash, split_counts
from skillopt.errors import ConfigError
from skillopt.types import Item


@pytest.mark.parametrize(
    ("total", "ratio", "counts"),
    [
        (10, "2:1:7", (2, 1, 7)),
        (7, "2:1:7", (1, 1, 5)),
        (5, "1:1:1", (2, 2, 1)),
        (1, "2:1:7", (0, 0, 1)),
        (3, "2:1:7", (1, 0, 2)),
        (2, "2:1:7", (0, 0, 2)),
        (177, "2:1:7", (35, 18, 124)),
        (400, "2:1:7", (80, 40, 280)),
        (10, "0.5:0.2:0.3", (5, 2, 3)),
        (10, "2:1:7:", (2, 1, 7)),
    ],
)
def test_counts(total, ratio, counts):
    assert split_counts(total, parse_ratio(ratio)) == counts


@given(st.integers(0, 10_000), st.lists(st.integers(1, 10**9 - 1), min_size=3, max_size=3))
def test_counts_add_up(total, weights):
    counts = split_counts(total, parse_ratio(":".join(map(str, weights))))
    assert sum(counts) == total and min(counts) >= 0


@pytest.mark.parametrize(
    "ratio",
    ["2:1", "2:1:0", "a:b:c", "2:1:-7", "0.5:0.2:0.2", "1:2:3:4", "", "0.5:0.5:0", "2:1:nan", "1e1:1:1", 7267, None],
)
def test_c094_bad_ratios_are_refused(ratio):
    with pytest.raises(ConfigError, match=r"env\.split_ratio is"):
        parse_ratio(ratio)


def make(count):
    return [Item(f"q{i}", {"id": f"q{i}", "n": i}) for i in range(count)]


def test_c107_membership_does_not_depend_on_input_order():
    items = make(30)
    one, two = cut(items, parse_ratio("2:1:7"), 42), cut(items[::-1], parse_ratio("2:1:7"), 42)
    assert one == two
    assert cut(items, parse_ratio("2:1:7"), 43) != one


def test_cut_is_the_documented_shuffle():
    order = sorted(make(10), key=lambda item: item.id)
    random.Random(5).shuffle(order)
    splits = cut(make(10), parse_ratio("2:1:7"), 5)
    assert splits["train"] + splits["val"] + splits["test"] == order


def test_source_hash_sees_content_and_not_order():
    items = make(4)
    assert source_hash(items) == source_hash(items[::-1])
    assert source_hash(items) != source_hash(items[:3])
    assert source_hash(items) != source_hash([*items[:3], Item("q3", {"id": "q3", "n": 99})])
