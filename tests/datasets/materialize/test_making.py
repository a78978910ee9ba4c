"""Manifests of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from published_data import Case, trivia, write_json

from skillopt.datasets.materialize import Cut, Order, make_manifest
from skillopt.datasets.materialize.making import parse_counts
from skillopt.errors import ConfigError, DataError

KEYS = [f"k{number:02d}" for number in range(20)]


@pytest.fixture
def searchqa(case: Any, tmp_path: Path) -> Any:
    write_json(tmp_path / "source.json", trivia(*KEYS))
    return case("searchqa")


def make(made: Case, cut: Cut, *, force: bool = False) -> dict[str, list[str]]:
    order = Order(made.manifest, None, str(made.root / "source.json"), force=force)
    make_manifest(made.benchmark, order, cut)
    return {split: [row["id"] for row in made.rows(made.manifest, split)] for split in ("train", "val", "test")}


def test_a_ratio_deals_out_every_item_once(searchqa: Case) -> None:
    dealt = make(searchqa, Cut(ratio="2:1:7"))
    assert [len(ids) for ids in dealt.values()] == [4, 2, 14]
    assert sorted(key for ids in dealt.values() for key in ids) == KEYS


def test_counts_take_a_sample(searchqa: Case) -> None:
    assert [len(ids) for ids in make(searchqa, Cut((3, 2, 1))).values()] == [3, 2, 1]


def test_seed_and_ids_alone_decide(searchqa: Case) -> None:
    first = make(searchqa, Cut((3, 2, 1), seed=7))
    write_json(searchqa.root / "source.json", trivia(*reversed(KEYS)))
    assert make(searchqa, Cut((3, 2, 1), seed=7), force=True) == first
    assert make(searchqa, Cut((3, 2, 1), seed=8), force=True) != first


def test_the_manifest_says_how_it_was_made(searchqa: Case) -> None:
    make(searchqa, Cut(ratio="1:1:2", seed=5))
    about = json.loads((searchqa.manifest / "split_manifest.json").read_text())
    assert about["benchmark"] == "searchqa"
    assert about["manifest_type"] == "id_split"
    assert about["source_repo_type"] == "dataset"
    assert about["source_url"] == "https://huggingface.co/datasets/lucadiliello/searchqa"
    assert about["counts"] == {"train": 5, "val": 5, "test": 10}
    assert about["item_fields"] == ["id"]
    assert (about["split_ratio"], about["split_seed"]) == ("1:1:2", 5)


def test_it_can_be_materialised(searchqa: Case) -> None:
    make(searchqa, Cut(ratio="2:1:7"))
    assert searchqa.make(searchqa.root / "source.json").counts == {"train": 4, "val": 2, "test": 14}


def test_too_few_items_for_the_published_sizes(searchqa: Case) -> None:
    with pytest.raises(DataError, match=r"20 items, too few for 400:200:1400; give --ratio"):
        make(searchqa, Cut())


def test_a_manifest_that_is_there_is_kept(searchqa: Case) -> None:
    make(searchqa, Cut(ratio="2:1:7"))
    with pytest.raises(DataError, match="--force"):
        make(searchqa, Cut(ratio="1:1:1"))


def test_an_empty_validation_split_is_refused(searchqa: Case) -> None:
    write_json(searchqa.root / "source.json", trivia("a", "b"))
    with pytest.raises(DataError, match="would be empty"):
        make(searchqa, Cut(ratio="2:1:7"))


@pytest.mark.parametrize("text", ["1:2", "a:b:c", "0:1:1", "1:0:1", "1.5:1:1", ""])
def test_counts_are_three_numbers(text: str) -> None:
    with pytest.raises(ConfigError, match="--counts"):
        parse_counts(text)


def test_livemathematicianbench_keeps_month_number_and_file(case: Any, tmp_path: Path) -> None:
    made: Case = case("livemathematicianbench")
    write_json(tmp_path / "hub" / "data" / "202601" / "qa_202601_final.json", [{"no": 3}, {"no": 4}])
    order = Order(made.manifest, None, str(tmp_path / "hub"))
    make_manifest(made.benchmark, order, Cut((1, 1, 0), seed=1))
    row = made.rows(made.manifest, "train")[0]
    assert row["id"] in ("202601:3", "202601:4")
    assert (row["month"], row["source_file"]) == ("202601", "data/202601/qa_202601_final.json")
    assert isinstance(row["no"], int)
