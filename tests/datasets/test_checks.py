from __future__ import annotations

import pytest

from skillopt.datasets.checks import check_items, check_splits
from skillopt.errors import DataError
from skillopt.types import Item


def items(*pairs):
    return tuple(Item(item_id, {"id": item_id, **data}) for item_id, data in pairs)


def numbered(prefix, count=2):
    return items(*((f"{prefix}{i}", {"question": f"{prefix} {i}?"}) for i in range(count)))


def test_items_become_values():
    assert check_items([{"id": 1, "q": "x"}], source="s") == (Item("1", {"id": 1, "q": "x"}),)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "a1"}, {"id": "b"}, {"id": "a1"}], "train: item 3: the id 'a1' is already used at train: item 1"),
        ([{"q": 1}], "train: item 1: has no 'id'"),
        (["x"], "train: item 1: expected a mapping"),
    ],
)
def test_c098_faulty_items_are_named(rows, words):
    with pytest.raises(DataError) as caught:
        check_items(rows, source="train")
    assert words in str(caught.value)


@pytest.mark.parametrize("empty", ["train", "val"])
def test_c092_empty_train_or_val_is_an_error(empty):
    splits = {name: numbered(name) for name in ("train", "val", "test")}
    with pytest.raises(DataError, match=f"split {empty}: has no items"):
        check_splits({**splits, empty: ()})


def test_c092_an_empty_test_split_is_a_notice():
    notices = check_splits({"train": numbered("a"), "val": numbered("b"), "test": ()})
    assert notices == ["split test: has no items, so there is no final test."]


def test_c074_shared_ids_are_named():
    with pytest.raises(DataError, match=r"splits train and val share 2 id\(s\): a0, a1;"):
        check_splits({"train": numbered("a"), "val": numbered("a"), "test": ()})
    with pytest.raises(DataError, match="splits val and test"):
        check_splits({"train": numbered("a"), "val": numbered("b"), "test": numbered("b")})
    with pytest.raises(DataError, match="and 5 more"):
        check_splits({"train": numbered("a", 15), "val": numbered("a", 15), "test": ()})


def test_c100_the_same_question_under_other_ids():
    splits = {
        "train": items(
            ("a1", {"question": "Capital of Peru?", "answer": "Lima"}), ("a2", {"question": "Name the sea"})
        ),
        "val": items(
            ("b9", {"question": "Capital of Peru?", "answer": "lima"}), ("b8", {"question": "name the  Sea."})
        ),
        "test": numbered("t"),
    }
    (notice,) = check_splits(splits)
    assert "a1 = b9" in notice and "a2 = b8" in notice and "splits train and val" in notice
    with pytest.raises(DataError, match="a1 = b9"):
        check_splits(splits, strict=True)


def test_different_inputs_are_not_taken_for_the_same():
    pairs = [("3+4", "3-4"), ("1.5", "15"), ("?", "!"), ("-3", "3")]
    for number, (one, two) in enumerate(pairs):
        splits = {
            "train": items(("a", {"q": one, "n": number})),
            "val": items(("b", {"q": two, "n": number})),
            "test": numbered("t"),
        }
        assert check_splits(splits, strict=True) == []


def test_nested_inputs_are_compared_too():
    one = items(("a", {"q": "x", "options": {"A": "Yes.", "B": ["no", 1]}}))
    two = items(("b", {"q": "X", "options": {"A": "yes", "B": ["No!", 1]}}))
    assert "a = b" in check_splits({"train": one, "val": two, "test": numbered("t")})[0]


def test_fields_to_ignore():
    splits = {
        "train": items(("1", {"qid": "1", "q": "x"})),
        "val": items(("2", {"qid": "2", "q": "x"})),
        "test": numbered("t"),
    }
    assert check_splits(splits) == []
    assert len(check_splits(splits, ignore={"qid"})) == 1


def test_an_item_nested_too_deeply_is_named():
    value = "x"
    for _ in range(2000):
        value = [value]
    with pytest.raises(DataError, match=r"item 'deep'.*nested too deeply"):
        check_splits({"train": [Item("deep", {"x": value})], "val": [Item("b", {"x": 1})], "test": []})
