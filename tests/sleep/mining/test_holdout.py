"""Validation tasks take turns, and help each other out: one for one, never within a group, and only by this rule."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.mining import Holdout, HoldoutRecord, assign_splits, group_keys
from skillopt_sleep.mining.identity import straddling
from skillopt_sleep.types import TaskRecord

NIGHTS = 3


def task(name: str, split: str, intent: str = "", **fields: Any) -> TaskRecord:
    fields.setdefault("reference_kind", "rubric")
    fields.setdefault("reference", "a good answer")
    return TaskRecord(name, "/p", intent or f"{name} {name}x {name}y", split=split, **fields)


def holdout(
    tonight: list[TaskRecord],
    known: list[TaskRecord] | None = None,
    record: HoldoutRecord | None = None,
    *,
    nights: int | None = NIGHTS,
    least: int = 1,
) -> Holdout:
    return Holdout({"": tonight}, {"": known or []}, record or HoldoutRecord(), nights=nights, least=least, seed=42)


def exchanged(*args: Any, **options: Any) -> dict[str, str]:
    return holdout(*args, **options).exchange()


def helped(*args: Any, **options: Any) -> list[str]:
    return [one.id for one in holdout(*args, **options).helpers()]


def decided(**nights: list[int]) -> HoldoutRecord:
    return HoldoutRecord(nights)


def test_a_task_that_decided_three_nights_changes_places_with_the_one_that_waited_longest() -> None:
    tonight = [task(name, "val") for name in ("v1", "v2")] + [task(name, "train") for name in ("t1", "t2", "t3")]
    record = decided(v1=[1, 2, 3], v2=[2, 3], t1=[1], t2=[3], t3=[2])
    assert exchanged(tonight, record=record) == {"v1": "train", "t1": "val"}
    assert exchanged(tonight, record=decided(v1=[1, 2, 3], t1=[1], t2=[3])) == {"v1": "train", "t3": "val"}
    assert exchanged(tonight, record=decided(v1=[1, 2])) == {}
    assert exchanged(tonight, record=record, nights=None) == {}


def test_only_nights_since_the_last_change_of_sides_count() -> None:
    tonight = [task("v", "val"), task("t", "train")]
    record = HoldoutRecord({"v": [1, 2, 3, 6, 7]}, {"v": 5})
    assert exchanged(tonight, record=record) == {}
    assert exchanged(tonight, record=HoldoutRecord({"v": [1, 2, 3, 5, 6, 7]}, {"v": 5})) == {"v": "train", "t": "val"}


def test_a_new_wording_inherits_the_nights_and_all_of_the_group_moves() -> None:
    known = [task("v", "val", "please fix the login test"), task("old", "train", "publish the new wheel")]
    tonight = [
        task("v2", "val", "fix the failing login test, please"),
        task("t", "train", "write a changelog", source_sessions=["s"]),
        task("t2", "train", "draw the class diagram", source_sessions=["s"]),
        task("new", "train", "publish the new wheel now"),
    ]
    moves = exchanged(tonight, known, decided(v=[1, 2, 3]))
    assert moves == {"v": "train", "v2": "train", "t": "val", "t2": "val"}, "what was never trained on comes first"


def test_without_a_partner_nothing_moves() -> None:
    v, worn = task("v", "val"), decided(v=[1, 2, 3])
    assert exchanged([v], record=worn) == {}
    assert exchanged([v, task("x", "test")], record=worn) == {}
    assert exchanged([v, task("d", "train", origin="dream")], record=worn) == {}
    assert exchanged([v, task("t", "train", source_sessions=["s"]), task("u", "val", source_sessions=["s"])],
                     record=worn) == {}  # fmt: skip
    assert exchanged([task("v", "test"), task("t", "train")], record=worn) == {}


def test_what_a_person_wrote_never_moves() -> None:
    tonight, nights = [task("v", "val"), task("t", "train")], {"v": [1, 2, 3]}
    for written in ("v", "t"):
        assert exchanged(tonight, record=HoldoutRecord(nights, {}, frozenset({written}))) == {}


def test_a_large_group_does_not_leave_too_few_behind() -> None:
    many = [task(f"v{n}", "val", source_sessions=["s"]) for n in range(3)]
    tonight = [*many, task("w", "val"), task("t", "train")]
    record = decided(v0=[1, 2, 3])
    assert exchanged(tonight, record=record, least=3) == {}
    assert set(exchanged(tonight, record=record, least=2)) == {"v0", "v1", "v2", "t"}
    three = [task(f"u{n}", "train", source_sessions=["r"]) for n in range(2)]
    assert set(exchanged([*tonight, *three], record=record, least=3)) == {"v0", "v1", "v2", "u0", "u1"}


def test_skills_do_not_exchange_with_each_other() -> None:
    parts = {"": [task("v", "val"), task("w", "val")], "papers": [task("t", "train")]}
    found = Holdout(parts, {}, decided(v=[1, 2, 3]), nights=NIGHTS, least=1, seed=42)
    assert found.exchange() == {}


def test_a_skill_is_helped_by_its_own_tasks() -> None:
    tonight = {"": [task("t", "train")], "papers": [task("p", "train")]}
    known = {"": [task("k", "val")], "papers": [task("q", "val")], "other": [task("o", "val")]}
    found = Holdout(tonight, known, HoldoutRecord(), nights=NIGHTS, least=1, seed=42).helpers()
    assert [one.id for one in found] == ["k", "q"]
    assert [one.id for one in Holdout({"": tonight["papers"]}, known, HoldoutRecord(), nights=NIGHTS, least=1, seed=42)
            .helpers()] == ["k"]  # fmt: skip


def test_earlier_validation_tasks_help_those_first_that_decided_least_and_longest_ago() -> None:
    known = [task(f"k{n}", "val") for n in range(5)]
    record = decided(k0=[5, 6], k1=[4], k2=[3])
    tonight = [task("t", "train"), task("v", "val")]
    assert sorted(helped(tonight, known, record, least=3)) == ["k3", "k4"]
    assert helped(tonight, known, record, least=6)[2:] == ["k2", "k1", "k0"]
    assert helped(tonight, known, record, least=7) == [], "what is not enough would be paid for in vain"
    assert helped(tonight, known, record, least=1) == []
    assert helped([task("v", "val")], known, least=3) == [], "there is nothing to learn from"
    assert len(helped([task("t", "train")], known, least=3)) == 3


def test_who_cannot_help() -> None:
    tonight = [task("t", "train", "write the changelog of the shop"), task("x", "test", "draw the class diagram")]
    known = [
        task("t", "val"),
        task("like", "val", "Please write the changelog of the shop."),
        task("tested", "val", "draw the class diagram"),
        task("train", "train"),
        task("test", "test"),
        task("dream", "val", origin="dream"),
        task("made", "val", derived_from="other"),
        task("none", "val", reference_kind="none"),
        task("blank", "val", reference=" "),
        task("checks", "val", reference_kind="rule", judge={"checks": []}),
        task("worn", "val"),
    ]
    record = HoldoutRecord({"worn": [1, 2, 3]}, {}, frozenset({"worn"}))
    assert helped(tonight, known, record) == []
    assert helped(tonight, [*known, task("fine", "val")], record) == ["fine"]
    assert helped(tonight, known, record, nights=None) == ["worn"]


def test_a_coding_task_can_be_judged_by_what_it_changes() -> None:
    place = {"commit": "a" * 40, "folder": ""}
    judge = {"checks": [{"op": "file_changed", "arg": "**"}]}
    known = [
        task("coding", "val", reference_kind="none", reference="", workspace=place, judge=judge),
        task("bare", "val", reference_kind="none", reference="", workspace=place),
        task("text", "val", reference_kind="none", reference="", judge=judge),
    ]
    assert helped([task("t", "train")], known) == ["coding"]


def test_different_work_helps_before_more_of_the_same() -> None:
    same = [task(f"s{n}", "val", source_sessions=["s"]) for n in range(3)]
    late = task("late", "val")
    found = helped([task("t", "train")], [*same, late], decided(late=[1]), least=2)
    assert set(found) == {"late", found[0]}
    assert len(helped([task("t", "train")], [*same, late], least=4)) == 4


def test_helpers_keep_their_ids_are_marked_and_are_copies() -> None:
    known = task("k", "val", tags=["x"], source_sessions=["s"])
    (one,) = holdout([task("t", "train")], [known]).helpers()
    assert (one.id, one.split, one.tags, one.source_sessions) == ("k", "val", ["x", "holdout"], ["s"])
    one.tags.append("y")
    one.judge["z"] = 1
    assert (known.tags, known.judge) == (["x"], {})


words = st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"])
intents = st.lists(words, min_size=1, max_size=4).map(" ".join)
evenings = st.lists(st.lists(st.tuples(intents, st.integers(0, 5)), max_size=5), min_size=1, max_size=9)


@given(evenings, st.integers(1, 3), st.integers(1, 4), st.integers(0, 2))
def test_any_sequence_of_nights(
    rows: list[list[tuple[str, int]]], nights: int, least: int, again: int
) -> None:  # tasks come, come again, and come in other words
    archive: dict[str, TaskRecord] = {}
    assigned: dict[str, str] = {}
    record = HoldoutRecord()
    for number, evening in enumerate(rows, start=1):
        names = [f"n{number}i{at}" for at in range(len(evening))]
        sessions = [[f"s{number}-{session}"] if session else [] for _, session in evening]
        new = [task(name, "train", intent, source_sessions=session)
               for name, (intent, _), session in zip(names, evening, sessions, strict=True)]  # fmt: skip
        old = [TaskRecord.from_dict(one.to_dict()) for one in list(archive.values())[: again * 3]]
        known = list(archive.values())
        tonight = assign_splits([*new, *old], assigned=assigned, known=known, test_fraction=0.1)
        before = {**assigned, **{one.id: one.split for one in tonight}}
        unchanged = {name: split for name, split in before.items() if name in assigned}
        assert unchanged == assigned, "nothing but the exchange moves a task"
        pure = straddling([*known, *(one for one in tonight if one.id not in archive)]) == []

        found = Holdout({"": tonight}, {"": known}, record, nights=nights, least=least, seed=1)
        helpers = found.helpers()
        assert {one.id for one in helpers}.isdisjoint(one.id for one in tonight)
        tonight = [*tonight, *helpers]
        moves = Holdout({"": tonight}, {"": known}, record, nights=nights, least=least, seed=1).exchange()
        sizes = {split: sum(one.split == split for one in tonight) for split in ("train", "val", "test")}
        for one in (*tonight, *known):
            one.split = moves.get(one.id, one.split)
        after = {split: sum(one.split == split for one in tonight) for split in ("train", "val", "test")}

        keys = group_keys([*known, *tonight])
        gone = {keys[name] for name, split in moves.items() if split == "train"}
        come = {keys[name] for name, split in moves.items() if split == "val"}
        assert len(gone) == len(come)
        assert gone.isdisjoint(come)
        for key in gone:
            members = [name for name, group in keys.items() if group == key and moves.get(name) == "train"]
            assert record.nights(members) >= nights
        assert all(before[name] != split != "test" and before[name] != "test" for name, split in moves.items())
        assert after["test"] == sizes["test"]
        assert all(after[split] > 0 for split in ("train", "val") if sizes[split] > 0)
        assert after["val"] >= min(least, sizes["val"])
        if pure:
            assert straddling([*known, *(one for one in tonight if one.id not in archive)]) == []

        assigned = {**before, **moves}
        archive.update({one.id: one for one in tonight})
        val = [one.id for one in tonight if one.split == "val"]
        if after["train"] and len(val) >= least:
            history = {name: [*record.decided.get(name, ()), number] for name in val}
            record = HoldoutRecord({**record.decided, **history}, {**record.moved, **dict.fromkeys(moves, number)})
        else:
            record = HoldoutRecord(record.decided, {**record.moved, **dict.fromkeys(moves, number)})


def test_fixed_tasks_take_turns_for_good() -> None:
    """Six tasks every night for thirty nights: none decides for more than three nights at a stretch."""
    tasks = [task(f"t{n}", "val" if n < 2 else "train") for n in range(6)]
    record = HoldoutRecord()
    stretch = dict.fromkeys((one.id for one in tasks), 0)
    for number in range(1, 31):
        moves = exchanged(tasks, tasks, record)
        for one in tasks:
            one.split = moves.get(one.id, one.split)
        val = [one.id for one in tasks if one.split == "val"]
        stretch = {name: stretch[name] + 1 if name in val else 0 for name in stretch}
        assert len(val) == 2
        assert max(stretch.values()) <= NIGHTS
        nights = {name: [*record.decided.get(name, ()), number] for name in val}
        record = HoldoutRecord({**record.decided, **nights}, {**record.moved, **dict.fromkeys(moves, number)})
    assert all(len(record.decided[name]) >= 9 for name in stretch)
