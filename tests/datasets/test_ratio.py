from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.datasets.ratio import cut, cut_by_hash, parse_ratio, source_hash, split_counts
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


RATIOS = st.sampled_from(["2:1:7", "1:1:1", "0.5:0.2:0.3", "1:1:998"])
IDS = st.lists(st.text(max_size=8), unique=True, max_size=40)


def members(ids, ratio, seed):
    splits = cut_by_hash([Item(name, {"id": name}) for name in ids], parse_ratio(ratio), seed)
    return {item.id: name for name, items in splits.items() for item in items}


def test_c106_five_more_items_move_none_of_a_hundred():
    old, new = (cut_by_hash(make(count), parse_ratio("2:1:7"), 42) for count in (100, 105))
    for name, items in old.items():
        assert [item for item in new[name] if item in items] == items
    assert sum(map(len, new.values())) == 105


@given(IDS, IDS, RATIOS, st.integers(-5, 2**70))
def test_c106_by_hash_no_item_depends_on_another(ids, more, ratio, seed):
    before, after = members(ids, ratio, seed), members(dict.fromkeys([*more, *ids]), ratio, seed)
    assert set(before) == set(ids)
    assert before.items() <= after.items()


@given(IDS, st.integers(0, 99))
def test_c107_by_hash_input_order_does_not_matter(ids, seed):
    items = [Item(name, {"id": name}) for name in ids]
    assert cut_by_hash(items, parse_ratio("2:1:7"), seed) == cut_by_hash(items[::-1], parse_ratio("2:1:7"), seed)


def test_by_hash_the_sizes_follow_the_ratio_and_the_seed_decides():
    counts = {name: len(items) for name, items in cut_by_hash(make(10_000), parse_ratio("2:1:7"), 42).items()}
    assert counts == pytest.approx({"train": 2000, "val": 1000, "test": 7000}, abs=150)
    assert members(["q1", "q2", "q3", "q4", "q5", "q6"], "1:1:1", 1) != members(
        ["q1", "q2", "q3", "q4", "q5", "q6"], "1:1:1", 2
    )


def test_by_hash_places_stay_for_ever():
    assert members([f"q{i}" for i in range(6)], "1:1:1", 42) == {
        "q0": "val",
        "q1": "train",
        "q2": "test",
        "q3": "test",
        "q4": "test",
        "q5": "train",
    }
