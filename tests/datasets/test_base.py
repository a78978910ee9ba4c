from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from skillopt.datasets.base import SPLIT_NAMES, BaseDataLoader, BatchSpec, SplitDataLoader, canonical_split
from skillopt.errors import ConfigError, DataError, ResumeMismatchError


def rows(prefix, count):
    return [{"id": f"{prefix}{i}", "question": f"{prefix} number {i}?"} for i in range(count)]


def make_splits(root: Path, **counts):
    for name in SPLIT_NAMES:
        (root / name).mkdir(parents=True, exist_ok=True)
        if name in counts:
            (root / name / "items.json").write_text(json.dumps(rows(name, counts[name])), encoding="utf-8")
    return root


def make_source(tmp_path, count=20, name="all.json"):
    path = tmp_path / name
    path.write_text(json.dumps(rows("q", count)), encoding="utf-8")
    return path


def load(**options):
    cfg = options.pop("cfg", {})
    loader = SplitDataLoader(**options)
    loader.setup(cfg)
    return loader


def ids(loader, split):
    return [item.id for item in loader.items(split)]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train", "train"),
        ("val", "val"),
        ("selection", "val"),
        ("valid_seen", "val"),
        ("test", "test"),
        ("valid_unseen", "test"),
    ],
)
def test_aliases(name, split):
    assert canonical_split(name) == split


@pytest.mark.parametrize(("name", "near"), [("valid_sen", "valid_seen"), ("Train", "train"), ("tset", "test")])
def test_unknown_split_names_are_refused_with_a_suggestion(name, near):
    with pytest.raises(DataError, match=f"did you mean '{near}'"):
        canonical_split(name)


def test_split_dir_mode(tmp_path):
    loader = load(split_dir=str(make_splits(tmp_path, train=4, val=3, test=2)), split_mode="split_dir")
    assert [len(loader.items(name)) for name in SPLIT_NAMES] == [4, 3, 2]
    assert loader.notices == []
    batch = loader.build_eval_batch(2, "valid_seen", 99)
    assert batch == BatchSpec("eval", "valid_seen", 99, 2, rows("val", 2), {})
    assert loader.build_eval_batch(0, "val", 1).batch_size == loader.build_eval_batch(9, "val", 1).batch_size == 3
    batch.payload[0]["question"] = "changed"
    assert loader.items("val")[0].data["question"] == "val number 0?"


def test_settings_come_from_the_configuration_where_left_alone(tmp_path):
    root = make_splits(tmp_path, train=4, val=3, test=2)
    loader = load(cfg={"split_mode": "split_dir", "split_dir": str(root), "limit": 2, "seed": 5, "split_seed": 0})
    assert (loader.limit, loader.seed, loader.split_seed) == (2, 5, 5)
    loader = load(cfg={"split_mode": "split_dir", "split_dir": str(root)}, split_mode="", split_ratio="", limit=None)
    assert (loader.split_ratio, loader.limit) == ("2:1:7", 0)
    given = SplitDataLoader(split_dir=str(root), split_mode="split_dir", limit=1)
    given.setup({"split_dir": "elsewhere", "limit": 3})
    assert (given.split_dir, given.limit) == (str(root), 1)


def test_c109_limit_keeps_the_first_items_of_each_split(tmp_path):
    loader = load(split_dir=str(make_splits(tmp_path, train=4, val=10, test=1)), split_mode="split_dir", limit=3)
    assert ids(loader, "val") == ["val0", "val1", "val2"]
    assert loader.notices == [
        "limit 3: only the first items of each split are used (train 3 of 4, val 3 of 10, test 1 of 1)."
    ]


@pytest.mark.parametrize("empty", ["train", "val"])
@pytest.mark.parametrize("content", ["[]", ""])
def test_c092_empty_train_or_val_stops(tmp_path, empty, content):
    make_splits(tmp_path, train=2, val=2, test=2)
    (tmp_path / empty / "items.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=f"split {empty}: has no items"):
        load(split_dir=str(tmp_path), split_mode="split_dir")


@pytest.mark.parametrize("missing", SPLIT_NAMES)
def test_c092_a_missing_folder_stops(tmp_path, missing):
    make_splits(tmp_path, **{name: 2 for name in SPLIT_NAMES if name != missing})
    (tmp_path / missing).rmdir()
    with pytest.raises(ValueError, match=f"has no folder '{missing}'"):
        load(split_dir=str(tmp_path), split_mode="split_dir")


def test_c092_a_folder_without_items(tmp_path):
    make_splits(tmp_path, train=2, test=2)
    with pytest.raises(FileNotFoundError, match="holds no items") as caught:
        load(split_dir=str(tmp_path), split_mode="split_dir")
    assert isinstance(caught.value, DataError)


def test_c092_an_empty_test_folder_is_a_notice(tmp_path):
    loader = load(split_dir=str(make_splits(tmp_path, train=2, val=2)), split_mode="split_dir")
    assert loader.items("test") == () and "no final test" in loader.notices[0]


def test_c074_and_c100_checks_run(tmp_path):
    make_splits(tmp_path, train=2, val=2, test=2)
    (tmp_path / "val" / "items.json").write_text(json.dumps(rows("train", 1)), encoding="utf-8")
    with pytest.raises(DataError, match="splits train and val share"):
        load(split_dir=str(tmp_path), split_mode="split_dir")
    same = [{"id": "b9", "question": "TRAIN number 0"}]
    (tmp_path / "val" / "items.json").write_text(json.dumps(same), encoding="utf-8")
    assert "train0 = b9" in load(split_dir=str(tmp_path), split_mode="split_dir").notices[0]
    with pytest.raises(DataError, match="train0 = b9"):
        load(split_dir=str(tmp_path), split_mode="split_dir", split_strict=True)


def test_first_json_then_jsonl_then_csv(tmp_path):
    make_splits(tmp_path, train=2, val=2)
    (tmp_path / "test" / "z.csv").write_text("id\nfrom_csv\n", encoding="utf-8")
    assert ids(load(split_dir=str(tmp_path), split_mode="split_dir"), "test") == ["from_csv"]
    (tmp_path / "test" / "b.jsonl").write_text('{"id": "from_jsonl"}\n', encoding="utf-8")
    loader = load(split_dir=str(tmp_path), split_mode="split_dir")
    assert ids(loader, "test") == ["from_jsonl"]
    assert "reads b.jsonl and leaves out z.csv" in loader.notices[0]
    (tmp_path / "test" / ".hidden.json").write_text("broken", encoding="utf-8")
    (tmp_path / "test" / "y.json").write_text('[{"id": "from_json"}]', encoding="utf-8")
    assert ids(load(split_dir=str(tmp_path), split_mode="split_dir"), "test") == ["from_json"]


def test_ratio_mode_writes_the_split_and_its_manifest(tmp_path):
    source = make_source(tmp_path)
    cfg = {"out_root": str(tmp_path / "run"), "env": "jsonl", "split_ratio": "2:1:1", "split_seed": 7}
    loader = load(data_path=str(source), cfg=cfg)
    folder = tmp_path / "run" / "_generated_splits" / "jsonl_2-1-1_seed7"
    manifest = json.loads((folder / "split_manifest.json").read_text(encoding="utf-8"))
    hashed = manifest.pop("source_hash")
    assert len(hashed) == 64
    assert manifest == {
        "source_data_path": str(source),
        "split_mode": "ratio",
        "split_ratio": "2:1:1",
        "split_seed": 7,
        "counts": {"train": 10, "val": 5, "test": 5},
    }
    for name in SPLIT_NAMES:
        stored = json.loads((folder / name / "items.json").read_text(encoding="utf-8"))
        assert [item["id"] for item in stored] == ids(loader, name)
        assert len(stored) == manifest["counts"][name]
    order = sorted(f"q{i}" for i in range(20))
    random.Random(7).shuffle(order)
    assert [item for name in SPLIT_NAMES for item in ids(loader, name)] == order


def test_ratio_mode_without_any_folder_writes_nothing(tmp_path, monkeypatch):
    source = make_source(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    loader = load(data_path=str(source), split_ratio="1:1:1")
    assert [len(loader.items(name)) for name in SPLIT_NAMES] == [7, 7, 6]
    assert list(work.iterdir()) == []
    assert loader.fingerprint == load(data_path="../all.json", split_ratio="1:1:1", split_output_dir="s").fingerprint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.csv", "id,q\n" + "".join(f"{i},x{i}\n" for i in range(10))),
        ("d.jsonl", "".join(json.dumps({"id": i, "q": f"x{i}"}) + "\n" for i in range(10))),
    ],
)
def test_ratio_mode_reads_single_files(tmp_path, name, text):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    for path in (tmp_path / "in" / name, tmp_path / "in"):
        loader = load(data_path=str(path), split_ratio="0.5:0.2:0.3", split_output_dir=str(tmp_path / "out"))
        assert [len(loader.items(split)) for split in SPLIT_NAMES] == [5, 2, 3]


def test_an_empty_data_path_never_means_the_working_directory(tmp_path, monkeypatch):
    make_source(tmp_path)
    monkeypatch.chdir(tmp_path)
    for value in ("", "  "):
        with pytest.raises(DataError, match=r"env\.data_path is empty"):
            load(data_path=value)
    with pytest.raises(DataError, match="set split_mode: split_dir"):
        load(split_dir="splits")
    with pytest.raises(DataError, match=r"env\.split_dir is empty"):
        load(split_mode="split_dir")


def test_a_data_folder_must_hold_one_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(data_path=str(tmp_path / "gone.json"))
    with pytest.raises(FileNotFoundError, match="holds no items"):
        load(data_path=str(tmp_path))
    make_source(tmp_path, name="a.json")
    make_source(tmp_path, name="b.jsonl")
    with pytest.raises(DataError, match=r"holds 2 data files \(a.json, b.jsonl\)"):
        load(data_path=str(tmp_path))
    (tmp_path / "train").mkdir()
    with pytest.raises(DataError, match="holds folders of splits"):
        load(data_path=str(tmp_path))


def test_a_cut_that_leaves_train_or_val_empty_stops_before_writing(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"1 item.* cut 2:1:7 in split_mode ratio give"):
        load(data_path=str(make_source(tmp_path, 1)), split_output_dir=str(out))
    with pytest.raises(DataError, match="holds no items"):
        load(data_path=str(make_source(tmp_path, 0)), split_output_dir=str(out))
    assert not out.exists()


@pytest.mark.parametrize("ratio", ["2:1", "2:1:0", "a:b:c", "2:1:-7", 7267])
def test_c094_bad_ratio(tmp_path, ratio):
    with pytest.raises(ConfigError, match=r"env\.split_ratio"):
        load(data_path=str(make_source(tmp_path)), split_ratio=ratio)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split_mode": "ratios"}, "env.split_mode is 'ratios'; expected one of ratio, hash, split_dir"),
        ({"limit": -1}, "env.limit is -1"),
        ({"limit": True}, "env.limit is True"),
        ({"split_seed": "7"}, "env.split_seed is '7'"),
    ],
)
def test_bad_settings(options, words):
    with pytest.raises(ConfigError) as caught:
        load(data_path="x", **options)
    assert words in str(caught.value)


def test_c106_a_grown_file_is_not_cut_again_without_the_flag(tmp_path):
    options = {"data_path": str(make_source(tmp_path, 100)), "split_output_dir": str(tmp_path / "out")}
    first = load(**options)
    before = (tmp_path / "out" / "train" / "items.json").read_bytes()
    assert load(**options).fingerprint == first.fingerprint
    make_source(tmp_path, 105)
    with pytest.raises(DataError, match=r"holds a split with another source_hash.*split_reset"):
        load(**options)
    assert (tmp_path / "out" / "train" / "items.json").read_bytes() == before
    assert sum(len(load(**options, split_reset=True).items(name)) for name in SPLIT_NAMES) == 105
    with pytest.raises(DataError, match="another split_ratio, split_seed"):
        load(**options, split_ratio="1:1:1", split_seed=1)


def test_c106_by_hash_a_grown_file_is_cut_again_and_old_items_keep_their_split(tmp_path):
    options = {"data_path": str(make_source(tmp_path, 100)), "split_output_dir": str(tmp_path / "out")}
    first = load(**options, split_mode="hash")
    make_source(tmp_path, 105)
    grown = load(**options, split_mode="hash")
    for name in SPLIT_NAMES:
        assert set(ids(first, name)) <= set(ids(grown, name))
    assert sum(len(grown.items(name)) for name in SPLIT_NAMES) == 105
    for changed in ({"split_mode": "ratio"}, {"split_mode": "hash", "split_seed": 7}):
        with pytest.raises(DataError, match="holds a split with another split_"):
            load(**options, **changed)


def test_c106_by_hash_has_its_own_folder_under_a_run(tmp_path):
    source = str(make_source(tmp_path, 100))
    for mode in ("ratio", "hash"):
        load(data_path=source, split_mode=mode, cfg={"out_root": str(tmp_path / "run"), "env": "mine"})
    folders = sorted(path.name for path in (tmp_path / "run" / "_generated_splits").iterdir())
    assert folders == ["mine_2-1-7_seed42", "mine_2-1-7_seed42_hash"]


def test_by_hash_a_split_without_items_stops(tmp_path):
    with pytest.raises(DataError, match=r"cut 1:1:998 in split_mode hash give"):
        load(data_path=str(make_source(tmp_path, 20)), split_mode="hash", split_ratio="1:1:998")


def test_c107_a_reordered_file_gives_the_same_split(tmp_path):
    source = make_source(tmp_path)
    options = {"data_path": str(source), "split_output_dir": str(tmp_path / "out")}
    first = load(**options)
    source.write_text(json.dumps(rows("q", 20)[::-1]), encoding="utf-8")
    assert load(**options).fingerprint == first.fingerprint


def test_splits_made_by_hand_are_never_overwritten(tmp_path):
    make_splits(tmp_path / "mine", train=2, val=2, test=2)
    for reset in (False, True):
        with pytest.raises(DataError, match="not generated and are not overwritten"):
            load(data_path=str(make_source(tmp_path)), split_output_dir=str(tmp_path / "mine"), split_reset=reset)


def test_an_interrupted_start_is_repeated(tmp_path):
    options = {"data_path": str(make_source(tmp_path)), "split_output_dir": str(tmp_path / "out")}
    first = load(**options)
    (tmp_path / "out" / "test" / "items.json").unlink()
    (tmp_path / "out" / "test").rmdir()
    assert load(**options).fingerprint == first.fingerprint


def test_c110_an_edited_file_changes_the_fingerprint(tmp_path):
    options = {"split_dir": str(make_splits(tmp_path, train=3, val=3, test=3)), "split_mode": "split_dir"}
    before = load(**options)
    state = json.loads(json.dumps(before.state_dict()))
    edited = rows("val", 3)
    edited[1]["question"] = "another"
    (tmp_path / "val" / "items.json").write_text(json.dumps(edited), encoding="utf-8")
    after = load(**options)
    assert after.fingerprint != before.fingerprint
    before.load_state_dict(state)
    after.load_state_dict({})
    with pytest.raises(ResumeMismatchError, match=r"the data changed since this run began \(split val\)"):
        after.load_state_dict(state)


def test_train_batches(tmp_path):
    loader = load(split_dir=str(make_splits(tmp_path, train=5, val=1)), split_mode="split_dir")
    order = rows("train", 5)
    random.Random(3).shuffle(order)
    assert loader.build_train_batch(2, 3) == BatchSpec("train", "train", 3, 2, order[:2])
    plan = loader.plan_train_epoch(epoch=1, steps_per_epoch=2, accumulation=2, batch_size=2, seed=42)
    assert [(batch.seed, batch.batch_size) for batch in plan] == [(1043, 2), (1044, 2), (1045, 1), (1046, 2)]
    assert sorted(item["id"] for batch in plan[:3] for item in batch.payload) == [f"train{i}" for i in range(5)]


def test_items_need_setup():
    with pytest.raises(DataError, match="call setup"):
        SplitDataLoader().items("train")


def test_hooks_can_be_overridden(tmp_path):
    class Custom(SplitDataLoader):
        def load_raw_items(self, data_path):
            return [{"id": i, "line": line} for i, line in enumerate(Path(data_path).read_text().split())]

    (tmp_path / "words.txt").write_text("a b c d e f g h i j")
    loader = Custom(data_path=str(tmp_path / "words.txt"))
    loader.set_out_root(str(tmp_path / "run"))
    loader.setup({"env": "odd name/x", "out_root": "ignored"})
    assert sorted(item.data["line"] for name in SPLIT_NAMES for item in loader.items(name)) == list("abcdefghij")
    (folder,) = (tmp_path / "run" / "_generated_splits").iterdir()
    assert folder.name.endswith("_2-1-7_seed42")


def test_the_base_class_plans_by_seeds():
    class Custom(BaseDataLoader):
        def build_train_batch(self, batch_size, seed):
            return BatchSpec("train", "train", seed, batch_size)

    loader = Custom()
    loader.setup({"x": 1})
    loader.set_out_root("out")
    loader.load_state_dict(loader.state_dict())
    seeds = [43, 44, 45, 46]
    random.Random(42).shuffle(seeds)
    plan = loader.plan_train_epoch(epoch=0, steps_per_epoch=2, accumulation=2, batch_size=8, seed=42)
    assert [batch.seed for batch in plan] == seeds
    for call in (lambda: BaseDataLoader().build_train_batch(1, 1), lambda: loader.build_eval_batch(1, "val", 1)):
        with pytest.raises(NotImplementedError):
            call()


def test_c104_the_audit_is_part_of_the_notices(tmp_path):
    make_splits(tmp_path, val=1)
    items = [{"id": f"t{i}", "options": [f"a{i}", f"b{i}", "all of them"], "answer": "C"} for i in range(6)]
    (tmp_path / "train" / "items.json").write_text(json.dumps(items), encoding="utf-8")
    loader = load(split_dir=str(tmp_path), split_mode="split_dir")
    assert any("'all of them' stands in 6 items" in notice for notice in loader.notices)


def test_a_split_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere does not exist"):
        load(split_mode="split_dir", split_dir=str(tmp_path / "nowhere"))


def test_a_split_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written here"):
        load(data_path=str(make_source(tmp_path, 20)), split_output_dir=str(tmp_path / "file" / "out"))
