"""What holds for every benchmark, shown on SearchQA: order, fields, refusals, folders that are whole or not there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from published_data import Case, trivia, write_json

from skillopt.datasets.materialize import MissingItemsError, Order, get_benchmark, materialize
from skillopt.errors import ConfigError, DataError


@pytest.fixture
def searchqa(case: Any, tmp_path: Path) -> Any:
    made: Case = case("searchqa")
    made.ids(["k3", "k1"], ["k2"], ["k5", "k4"])
    write_json(tmp_path / "source.json", trivia("k1", "k2", "k3", "k4", "k5", "k6"))
    return made


def test_items_come_in_the_order_of_the_manifest_with_exactly_four_fields(searchqa: Case, tmp_path: Path) -> None:
    made = searchqa.make(tmp_path / "source.json")
    assert [item["id"] for item in searchqa.split("train")] == ["k3", "k1"]
    assert [item["id"] for item in searchqa.split("test")] == ["k5", "k4"]
    assert list(searchqa.split("val")[0]) == ["id", "question", "context", "answers"]
    assert made.counts == {"train": 2, "val": 1, "test": 2}


def test_the_manifest_says_where_everything_is_from(searchqa: Case, tmp_path: Path) -> None:
    searchqa.make(tmp_path / "source.json")
    about = searchqa.written()
    assert about["counts"] == {"train": 2, "val": 1, "test": 2}
    assert about["source_dataset"] == str(tmp_path / "source.json")
    assert about["source_manifest_dir"] == searchqa.manifest.as_posix()
    assert about["item_fields"] == ["id", "question", "context", "answers"]
    assert len(about["source_files"][0]["sha256"]) == len(about["files"]["train/items.json"]) == 64


def test_the_same_order_gives_the_same_bytes(searchqa: Case, tmp_path: Path) -> None:
    def content() -> dict[str, bytes]:
        return {p.name + p.parent.name: p.read_bytes() for p in searchqa.output.rglob("*") if p.is_file()}

    searchqa.make(tmp_path / "source.json")
    first = content()
    searchqa.make(tmp_path / "source.json", force=True)
    assert content() == first


def test_missing_ids_are_counted_and_five_are_named(searchqa: Case, tmp_path: Path) -> None:
    searchqa.ids(["k1"], ["k2"], [f"gone{n}" for n in range(7)])
    with pytest.raises(MissingItemsError, match=r"lacks 7 of the 9.*'gone0'.*'gone4', \.\.\.") as caught:
        searchqa.make(tmp_path / "source.json")
    assert isinstance(caught.value, RuntimeError)
    assert "gone5" not in str(caught.value)
    assert searchqa.left() == ["searchqa_ids"]


@pytest.mark.parametrize(("train", "val"), [(["k1", "k1"], ["k2"]), (["k1"], ["k1"])])
def test_an_id_that_stands_twice_is_refused(searchqa: Case, tmp_path: Path, train: list[str], val: list[str]) -> None:
    searchqa.ids(train, val, [])
    with pytest.raises(ValueError, match="duplicate IDs"):
        searchqa.make(tmp_path / "source.json")


def test_a_key_that_stands_twice_in_the_source_is_refused(searchqa: Case, tmp_path: Path) -> None:
    source = write_json(tmp_path / "twice.json", trivia("k1", "k2", "k3", "k4", "k5", "k1"))
    with pytest.raises(DataError, match=r"twice.json: row 6: duplicate IDs.*'k1'"):
        searchqa.make(source)


@pytest.mark.parametrize(("field", "value"), [("question", ""), ("answers", []), ("context", None)])
def test_an_item_without_a_needed_field_is_refused(searchqa: Case, tmp_path: Path, field: str, value: Any) -> None:
    rows = trivia("k1", "k2", "k3", "k4", "k5")
    rows[2][field] = value
    with pytest.raises(DataError, match=f"row 3: item 'k3' has no '{field}'"):
        searchqa.make(write_json(tmp_path / "hole.json", rows))
    assert searchqa.left() == ["searchqa_ids"]


def test_a_wrong_source_is_named(searchqa: Case, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 1: has no 'key' or 'id'; is this the right source"):
        searchqa.make(write_json(tmp_path / "other.json", [{"text": "x"}]))


def test_counts_that_disagree_with_the_files_are_refused(searchqa: Case, tmp_path: Path) -> None:
    searchqa.about(benchmark="SearchQA", counts={"train": 3, "val": 1, "test": 2})
    with pytest.raises(DataError, match="counts 3 items in train, its file has 2"):
        searchqa.make(tmp_path / "source.json")


def test_the_manifest_of_another_benchmark_is_refused(searchqa: Case, tmp_path: Path) -> None:
    searchqa.about(benchmark="docvqa")
    with pytest.raises(DataError, match="is of the benchmark 'docvqa'"):
        searchqa.make(tmp_path / "source.json")


def test_without_a_manifest_the_ways_to_one_are_told(case: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--manifest-dir.*skillopt data manifest searchqa"):
        case("searchqa").make(tmp_path / "source.json")


def test_a_folder_that_exists_is_replaced_only_when_asked(searchqa: Case, tmp_path: Path) -> None:
    searchqa.make(tmp_path / "source.json")
    searchqa.ids(["k1"], ["k2"], ["k3"])
    with pytest.raises(DataError, match="--force"):
        searchqa.make(tmp_path / "source.json")
    assert len(searchqa.split("train")) == 2
    searchqa.make(tmp_path / "source.json", force=True)
    assert len(searchqa.split("train")) == 1
    assert searchqa.left() == ["searchqa_ids", "searchqa_split"]


def test_a_folder_of_others_is_never_replaced(searchqa: Case, tmp_path: Path) -> None:
    write_json(searchqa.output / "train" / "items.json", [])
    with pytest.raises(DataError, match="not from here"):
        searchqa.make(tmp_path / "source.json", force=True)


def test_the_manifest_itself_is_not_written_over(searchqa: Case, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is the manifest's folder"):
        materialize(searchqa.benchmark, Order(searchqa.manifest, searchqa.manifest, str(tmp_path / "source.json")))


def test_an_unknown_benchmark_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'searchqa'"):
        get_benchmark("serchqa")


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from skillopt.datasets.materialize import Order, build, get_benchmark, materialize
    def dying(rows):
        for number, row in enumerate(rows):
            if number == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield row
    benchmark = get_benchmark("searchqa")
    real = build.Source.rows
    build.Source.rows = lambda self: dying(real(self))
    materialize(benchmark, Order(*(Path(path) for path in sys.argv[1:3]), sys.argv[3]))
"""


def test_a_kill_in_the_middle_leaves_no_half_folder(searchqa: Case, tmp_path: Path) -> None:
    source = tmp_path / "source.json"
    script = [sys.executable, "-c", textwrap.dedent(KILLED), str(searchqa.manifest), str(searchqa.output), str(source)]
    done = subprocess.run(script, capture_output=True, cwd=Path(__file__).parents[3], timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not searchqa.output.exists()
    searchqa.make(source)
    assert searchqa.left() == ["searchqa_ids", "searchqa_split"]


def test_a_folder_that_was_put_aside_comes_back(searchqa: Case, tmp_path: Path) -> None:
    searchqa.make(tmp_path / "source.json")
    searchqa.output.rename(searchqa.output.with_name(".searchqa_split.old"))
    with pytest.raises(MissingItemsError):
        searchqa.ids(["k1"], ["k2"], ["gone"])
        searchqa.make(tmp_path / "source.json", force=True)
    assert json.loads((searchqa.output / "train" / "items.json").read_text())[0]["id"] == "k3"
