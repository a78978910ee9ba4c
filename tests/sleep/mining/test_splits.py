"""Splits hold for good: by group, over nights, whatever is added and however it is worded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.mining import (
    SplitMemory,
    assign_splits,
    group_keys,
    mine,
    normalize_legacy_split,
    split_fractions,
)
from skillopt_sleep.mining.identity import straddling
from skillopt_sleep.state import SleepState
from skillopt_sleep.types import SessionDigest, TaskRecord


def task(name: str, intent: str = "", **fields: Any) -> TaskRecord:
    return TaskRecord(name, "/p", intent or name, **fields)


def splits(tasks: list[TaskRecord], **options: Any) -> dict[str, str]:
    return {row.id: row.split for row in assign_splits(tasks, **options)}


def members(found: dict[str, str], split: str) -> set[int]:
    return {int(name.rsplit("_", 1)[1]) for name, where in found.items() if where == split}


def test_the_published_assignments() -> None:
    found = splits([task(f"persona_wrap-answer_{i}") for i in range(12)])
    assert members(found, "val") == {0, 1, 2, 4, 6, 7}
    found = splits([task(f"persona_commit-imperative_{i}") for i in range(8)])
    assert members(found, "val") == {1, 3, 7}
    assert set(found.values()) == {"train", "val"}


def test_a_test_task_never_moves_and_an_added_task_moves_no_other() -> None:
    few = splits([task(name) for name in ("t0", "t3", "t4")], val_fraction=0.34, test_fraction=0.10)
    more = splits([task(name) for name in ("t0", "t3", "t4", "t1")], val_fraction=0.34, test_fraction=0.10)
    assert more["t1"] == "test"
    assert {name: more[name] for name in few} == few


def test_dream_tasks_train_always() -> None:
    rows = [task(f"d{i}", origin="dream", split="val") for i in range(30)]
    assert set(splits([*rows, task("a"), task("b")]).values()) >= {"train"}
    assert all(row.split == "train" for row in rows)


def test_two_tasks_give_something_to_train_on_and_something_to_check_with() -> None:
    for i in range(40):
        assert sorted(splits([task(f"x{i}"), task(f"y{i}")]).values()) == ["train", "val"]
    assert set(splits([task("only")]).values()) <= {"train", "val"}


@pytest.mark.parametrize(
    "options",
    [
        {"val_fraction": -0.1},
        {"val_fraction": 1.1},
        {"val_fraction": 0.6, "test_fraction": 0.4},
        {"val_fraction": 1.0},
        {"test_fraction": float("nan")},
        {"val_fraction": True},
        {"holdout_fraction": "0.3"},
    ],
)
def test_impossible_fractions_are_refused_before_anything(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="fraction"):
        assign_splits([task("a")], **options)
    with pytest.raises(ValueError, match="fraction"):
        mine([], llm_miner=lambda _: pytest.fail("a call was made"), **options)


def test_one_resolver_of_fractions() -> None:
    assert split_fractions() == (0.34, 0.0) == SleepConfig({}).fractions
    assert split_fractions(holdout_fraction=0.5) == (0.5, 0.0) == SleepConfig({"holdout_fraction": 0.5}).fractions
    for val in (0.0, 0.34):
        assert split_fractions(val, None, 0.5) == (val, 0.0)
        assert SleepConfig({"val_fraction": val, "holdout_fraction": 0.5}).fractions == (val, 0.0)
    assert split_fractions(None, 0.2, None) == (0.34, 0.2)


@pytest.mark.parametrize(("old", "new"), [("replay", "train"), ("holdout", "val"), ("", "train"), ("test", "test")])
def test_older_names(old: str, new: str) -> None:
    assert normalize_legacy_split(old) == new


REQUESTS = [
    ("please fix the login test", "Please fix the login test.", True),
    ("please fix the login test", "could you fix the failing login test", True),
    ("ログインのテストを直してください", "ログインのテストを直して下さい。", False),
    ("ログインのテストを直してください", "ログインのテストを直してください。", True),
    ("what is the arXiv id of the paper on attention", "what is the arXiv id of the paper on diffusion", False),
    ("write the report for week 12", "write the report for week 13", False),
    ("fix the login test", "fix the logout test", False),
    ("summarise", "Summarise!", True),
]


@pytest.mark.parametrize(("one", "other", "same"), REQUESTS)
def test_what_is_the_same_request(one: str, other: str, same: bool) -> None:
    keys = group_keys([task("a", one), task("b", other)])
    assert (keys["a"] == keys["b"]) is same


def test_projects_are_kept_apart() -> None:
    rows = [TaskRecord("a", "/p", "fix the login test"), TaskRecord("b", "/q", "fix the login test")]
    assert len(set(group_keys(rows).values())) == 2


def test_paraphrases_and_siblings_of_a_session_share_a_split() -> None:
    for i in range(60):
        rows = [
            task(f"a{i}", "please fix the login test", source_sessions=["s1"]),
            task(f"b{i}", "Please fix the login test."),
            task(f"c{i}", "write a changelog entry", source_sessions=["s1"]),
            task(f"d{i}", "publish the new wheel", source_sessions=["s2"]),
        ]
        found = splits(rows)
        assert len({found[f"{name}{i}"] for name in "abc"}) == 1
        assert set(found.values()) == {"train", "val"}
        assert straddling(rows) == []


words = st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"])
intents = st.lists(words, min_size=1, max_size=5).map(" ".join)
records = st.lists(st.tuples(intents, st.integers(0, 6)), min_size=1, max_size=12)


def tasks_of(rows: list[tuple[str, int]], start: int = 0) -> list[TaskRecord]:
    return [task(f"t{start + i}", intent, source_sessions=[f"s{s}"] if s else []) for i, (intent, s) in enumerate(rows)]


@given(records, st.integers(0, 3), st.floats(0, 0.6), st.floats(0, 0.3))
def test_groups_never_straddle(rows: list[tuple[str, int]], seed: int, val: float, test: float) -> None:
    found = tasks_of(rows)
    assign_splits(found, val_fraction=val, test_fraction=test, seed=seed)
    assert straddling(found) == []
    if len(set(group_keys(found).values())) >= 2 and "test" not in {row.split for row in found}:
        assert {row.split for row in found} == {"train", "val"}
    again = tasks_of(rows)
    assert splits(again, val_fraction=val, test_fraction=test, seed=seed) == {row.id: row.split for row in found}


@given(records, records)
def test_later_nights_never_move_a_task(first: list[tuple[str, int]], second: list[tuple[str, int]]) -> None:
    night_one = tasks_of(first)
    before = splits(night_one)
    night_two = tasks_of(first) + tasks_of(second, start=100)
    after = splits(night_two, assigned=before, known=night_one)
    assert {name: after[name] for name in before} == before
    shuffled = splits(list(reversed(tasks_of(first))), assigned=before)
    assert shuffled == before


@given(records, records)
def test_a_new_wording_goes_where_its_work_went(first: list[tuple[str, int]], second: list[tuple[str, int]]) -> None:
    known = tasks_of(first)
    before = splits(known)
    new = tasks_of(second, start=100)
    after = splits(new, known=known)
    for row in new:
        same = [old for old in known if old.intent == row.intent]
        if same and len(row.intent) >= 8:
            assert after[row.id] in {before[old.id] for old in same}


def test_assignments_live_in_the_state(tmp_path: Path) -> None:
    def sessions(*names: str) -> list[SessionDigest]:
        return [SessionDigest(n, "/p", user_prompts=[text]) for n in names for text in [TEXTS[n]]]

    state = SleepState.load(tmp_path / "state.json")
    first = mine(sessions("a", "b", "c", "d"), memory=SplitMemory(state, "/p"))
    state.add_to_archive(first)
    state.save()
    before = {row.intent: row.split for row in first}
    assert set(before.values()) == {"train", "val"}

    memory = SplitMemory(SleepState.load(tmp_path / "state.json"), "/p")
    assert memory.assigned == {row.id: row.split for row in first}
    for limit in range(1, 5):  # any part of the night, in any company, and with another seed
        again = mine(sessions("e", "d", "c", "b", "a")[: limit + 1], memory=memory, seed=limit)
        assert all(row.split == before[row.intent] for row in again if row.intent in before)
        paraphrase = next(row for row in again if row.source_sessions == ["e"])
        assert paraphrase.split == before[TEXTS["a"]]


TEXTS = {
    "a": "please fix the login test",
    "b": "write a changelog entry",
    "c": "publish the new wheel",
    "d": "draw the class diagram",
    "e": "can you fix the flaky login test?",
}


def test_a_task_that_lies_between_two_groups_moves_neither() -> None:
    known = [
        task("k1", "fix the login test", split="val", source_sessions=["s1"]),
        task("k2", "publish the wheel", split="train", source_sessions=["s2"]),
    ]
    new = task("n", "please publish the wheel", source_sessions=["s1"])
    assert splits([new], known=known) == {"n": "train"}
    assert splits([*known, new], assigned={"k1": "val", "k2": "train"}) == {"k1": "val", "k2": "train", "n": "train"}
