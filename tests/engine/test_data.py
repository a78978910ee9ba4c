"""The check of data, on the samples of every benchmark and on what can be wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from published_data import write_json

from skillopt.datasets.samples.registry import sample_names, write_samples
from skillopt.engine.data import check_data, environment_of
from skillopt.errors import MissingExtraError


@pytest.fixture(params=sorted(sample_names()))
def sample(request: Any, tmp_path: Path) -> Path:
    folder = tmp_path / request.param
    try:
        write_samples(request.param, folder)
    except MissingExtraError as error:
        pytest.skip(str(error))
    return folder


def test_the_samples_of_every_benchmark_pass(sample: Path) -> None:
    findings = check_data(sample)
    levels = {finding.level for finding in findings}
    if any("pip install" in finding.fix for finding in findings):
        pytest.skip("; ".join(finding.fix for finding in findings if finding.fix))
    assert findings[0].what == f"environment: {sample.name}"
    assert "fail" not in levels, [finding.what for finding in findings]


def test_nothing_is_written_by_a_check(sample: Path) -> None:
    before = sorted(sample.rglob("*"))
    check_data(sample)
    assert sorted(sample.rglob("*")) == before


def test_every_broken_item_is_told_and_the_rest_counted(tmp_path: Path) -> None:
    rows = [{"id": str(n), "question": f"q{n}", "context": "", "answers": []} for n in range(15)]
    for split, part in (("train", rows[:10]), ("val", rows[10:]), ("test", [])):
        write_json(tmp_path / split / "items.json", part)
    found = [finding.what for finding in check_data(tmp_path, "searchqa") if finding.level == "fail"]
    assert len([what for what in found if "'answers' holds no answer" in what]) >= 10
    assert "items: 5 more like these" in found


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("data/searchqa_split", "searchqa"),
        ("data/docvqa/splits", "docvqa"),
        ("data/samples/alfworld", "alfworld"),
        ("data/mine", "jsonl"),
        ("data/searchqasplit", "jsonl"),
    ],
)
def test_a_folder_tells_its_environment(folder: str, name: str) -> None:
    assert environment_of(Path(folder)) == name


def test_the_manifest_of_a_folder_comes_first(tmp_path: Path) -> None:
    write_json(tmp_path / "searchqa_x" / "split_manifest.json", {"benchmark": "officeqa"})
    assert environment_of(tmp_path / "searchqa_x") == "officeqa"
    write_json(tmp_path / "searchqa_x" / "split_manifest.json", ["odd"])
    assert environment_of(tmp_path / "searchqa_x") == "searchqa"
