"""`skillopt data ...` as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from published_data import trivia, write_json

from skillopt.cli.main import main

ROOT = Path(__file__).parents[2]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["data", *map(str, arguments)])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_json(tmp_path / "source.json", trivia(*"abcdefghij"))


def test_from_a_source_to_splits_that_pass_the_check(source: Path, capsys: Any) -> None:
    assert run(capsys, "manifest", "searchqa", "--source", source, "--ratio", "2:1:7", "--seed", 1)[0] == 0
    assert Path("data/searchqa_id_split/train/items.json").is_file()
    code, out, _ = run(capsys, "materialize", "searchqa")  # the manifest knows the source
    assert code == 0
    assert "train 2 items, val 1 items, test 7 items" in out
    code, out, _ = run(capsys, "check", "data/searchqa_split")
    assert (code, "Nothing here would stop a run." in out) == (0, True)


def test_what_was_made_as_json(source: Path, capsys: Any) -> None:
    run(capsys, "manifest", "searchqa", "--source", source, "--counts", "3:2:1")
    made = json.loads(run(capsys, "materialize", "searchqa", "--source", source, "--json")[1])
    assert made["counts"] == {"train": 3, "val": 2, "test": 1}
    assert made["folder"] == "data/searchqa_split"


def test_a_missing_manifest_ends_with_two_and_one_sentence(source: Path, capsys: Any) -> None:
    code, out, err = run(capsys, "materialize", "searchqa", "--source", source)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "skillopt data manifest searchqa" in err


def test_an_unknown_benchmark_ends_with_two(source: Path, capsys: Any) -> None:
    assert run(capsys, "materialize", "searchquiz")[0] == 2


def broken(folder: Path, **splits: list[Any]) -> Path:
    for split in ("train", "val", "test"):
        write_json(folder / split / "items.json", splits.get(split, []))
    return folder


def item(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"What is {name}?", "context": "", "answers": [name], **more}


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ({"train": [item("a")], "val": [item("a")]}, "share 1 id(s): a"),
        ({"train": [item("a"), item("a")], "val": [item("b")]}, "'a' is already used"),
        ({"train": [item("a")]}, "val: has no items"),
        ({"train": [item("a", answers=[])], "val": [item("b", question=" ")]}, "'answers' holds no answer"),
        ({"train": [item("a", answers=[])], "val": [item("b", question=" ")]}, "'question' is missing"),
    ],
)
def test_what_would_stop_a_run_is_found(tmp_path: Path, capsys: Any, splits: Any, said: str) -> None:
    code, out, _ = run(capsys, "check", broken(tmp_path / "searchqa_mine", **splits))
    assert code == 1
    assert said in out
    assert "would stop a run" in out


def test_equal_inputs_are_told_and_stop_nothing(tmp_path: Path, capsys: Any) -> None:
    folder = broken(tmp_path / "x", train=[item("a")], val=[item("b", question="What is a?")], test=[item("c")])
    code, out, _ = run(capsys, "check", folder, "--env", "searchqa", "--json")
    told = json.loads(out)
    assert (code, told["ok"]) == (0, True)
    assert any("same input" in finding["what"] for finding in told["findings"])


def test_files_that_changed_since_they_were_made_are_told(source: Path, capsys: Any) -> None:
    run(capsys, "manifest", "searchqa", "--source", source, "--counts", "3:2:1")
    run(capsys, "materialize", "searchqa", "--source", source)
    write_json(Path("data/searchqa_split/val/items.json"), [item("new")])
    code, out, _ = run(capsys, "check", "data/searchqa_split")
    assert code == 0
    assert "changed since they were made: val/items.json" in out


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, "check", tmp_path / "nowhere")
    assert code == 1
    assert "does not exist" in out


def test_an_environment_that_is_not_there(tmp_path: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, "check", tmp_path, "--env", "serchqa")
    assert code == 1
    assert "did you mean 'searchqa'" in out


def test_settings_of_a_configuration_count(tmp_path: Path, capsys: Any) -> None:
    rows = {split: [{"id": split, "ask": f"{split}?", "say": "yes"}] for split in ("train", "val", "test")}
    folder = broken(tmp_path / "plain", **rows)
    assert run(capsys, "check", folder)[0] == 1
    config = tmp_path / "c.yaml"
    config.write_text("env: {name: jsonl, question_field: ask, answer_field: say}\n", encoding="utf-8")
    assert run(capsys, "check", folder, "--config", config)[0] == 0


def test_all_six_benchmarks_have_samples(capsys: Any) -> None:
    told = json.loads(run(capsys, "samples", "--json")[1])
    six = {"searchqa", "docvqa", "officeqa", "livemathematicianbench", "spreadsheetbench", "alfworld"}
    assert six <= set(told)
    assert "registry" not in told
    assert all(about.endswith(".") for about in told.values())


def test_samples_are_written_as_they_are_shipped(tmp_path: Path, capsys: Any) -> None:
    assert run(capsys, "samples", "searchqa", "--out", tmp_path / "s")[0] == 0
    for path in (ROOT / "data" / "samples" / "searchqa").rglob("*.json"):
        assert (tmp_path / "s" / path.parent.name / path.name).read_bytes() == path.read_bytes()


def test_unknown_samples_get_a_suggestion(capsys: Any) -> None:
    code, _, err = run(capsys, "samples", "search")
    assert code == 2
    assert "did you mean 'searchqa'" in err


def test_the_script_for_searchqa_has_its_published_flags(source: Path, capsys: Any, tmp_path: Path) -> None:
    run(capsys, "manifest", "searchqa", "--source", source, "--counts", "3:2:1", "--manifest-dir", "ids")
    script = ROOT / "scripts" / "materialize_searchqa.py"
    flags = ["--manifest-dir", "ids", "--output-dir", "made", "--dataset", str(source)]
    done = subprocess.run([sys.executable, str(script), *flags], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "made" / "train" / "items.json").read_text())) == 3
