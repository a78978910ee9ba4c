"""Each benchmark made from a small source in its published form, and read again by its own environment."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from published_data import PNG, Case, trivia, write_json

from skillopt.datasets.base import SPLIT_NAMES
from skillopt.datasets.materialize import BENCHMARKS, Cut, Order, make_manifest, materialize
from skillopt.datasets.samples.registry import write_samples
from skillopt.engine.data import check_data, materialize_data
from skillopt.errors import DataError

MakeCase = Callable[[str], Case]


def stops(folder: Path, env: str = "", **settings: Any) -> list[str]:
    return [finding.what for finding in check_data(folder, env, settings) if finding.level == "fail"]


def test_searchqa_from_parquet_files(case: MakeCase, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra datasets")
    import pyarrow

    made = case("searchqa")
    made.ids(["k1"], ["k2"], ["k3"])
    source = tmp_path / "hub" / "data"
    source.mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(trivia("k1", "k9")), source / "train-00000-of-00001.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(trivia("k2", "k3")), source / "validation-00000-of-00001.parquet")
    made.make(source.parent)
    assert made.split("test") == [
        {"id": "k3", "question": "Who is k3?", "context": "[DOC] k3 is k3.", "answers": ["k3"]}
    ]
    assert len(made.written()["source_files"]) == 2
    assert stops(made.output, "searchqa") == []


def test_searchqa_from_what_datasets_keeps_on_disk(case: MakeCase, tmp_path: Path) -> None:
    # Not `datasets` itself: without the package, that name is the folder of these tests.
    arrow_dataset = pytest.importorskip("datasets.arrow_dataset", reason="needs the extra datasets")
    made = case("searchqa")
    made.ids(["k1"], ["k2"], [])
    arrow_dataset.Dataset.from_list(trivia("k1", "k2")).save_to_disk(tmp_path / "kept")
    made.make(tmp_path / "kept")
    assert made.split("train")[0]["answers"] == ["k1"]


def page(number: int, **more: Any) -> dict[str, Any]:
    return {
        "questionId": str(100 + number),
        "question": f"What is on page {number}?",
        "question_types": ["form", "free_text"],
        "docId": number,
        "ucsf_document_id": f"u{number}",
        "ucsf_document_page_no": "1",
        "answers": [f"1,{number}00", "it's"],
        "image": {"bytes": PNG_FILE + bytes([number]), "path": None},
        **more,
    }


PNG_FILE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000020001"
    "48afa4710000000049454e44ae426082"
)


@pytest.fixture
def docvqa(case: MakeCase, tmp_path: Path) -> Case:
    pytest.importorskip("pyarrow", reason="needs the extra datasets")
    import pyarrow
    import pyarrow.parquet

    made = case("docvqa")
    made.ids([{"id": "q1", "questionId": "101", "topic": "letters"}], [{"questionId": "102"}], [{"questionId": "103"}])
    hub = tmp_path / "hub" / "DocVQA"
    hub.mkdir(parents=True)
    rows = [page(number) for number in (1, 2, 3, 4)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), hub / "validation-00000-of-00001.parquet")
    test_rows = [page(1, answers=["another split"])]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(test_rows), hub / "test-00000-of-00001.parquet")
    return made


def test_docvqa_writes_tables_and_images(docvqa: Case, tmp_path: Path) -> None:
    docvqa.make(tmp_path / "hub")
    with (docvqa.output / "train" / "items.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["questionId"] == "101"
    assert row["answer"] == '["1,100", "it\'s"]'
    assert row["topic"] == "letters"
    assert row["image_path"] == "images/q101_d1.png"
    assert (docvqa.output / row["image_path"]).read_bytes() == PNG_FILE + b"\x01"
    assert not (docvqa.output / "images" / "q104_d4.png").exists()
    assert "images/q101_d1.png" in docvqa.written()["files"]
    assert stops(docvqa.output, "docvqa") == []


def test_a_missing_image_is_a_finding(docvqa: Case, tmp_path: Path) -> None:
    docvqa.make(tmp_path / "hub")
    (docvqa.output / "images" / "q102_d2.png").unlink()
    (stop,) = stops(docvqa.output, "docvqa")
    assert "q102_d2.png" in stop


def test_an_image_outside_the_source_is_refused(case: MakeCase, tmp_path: Path) -> None:
    made = case("docvqa")
    made.ids(["101"], ["102"], [])
    (tmp_path / "secret.png").write_bytes(PNG)
    rows = [page(1, image="../secret.png"), page(2, image="../secret.png")]
    with pytest.raises(DataError, match="leads out of the source"):
        made.make(write_json(tmp_path / "source" / "rows.json", rows))
    assert made.left() == ["docvqa_ids"]


def test_officeqa_from_its_table(case: MakeCase, tmp_path: Path) -> None:
    made = case("officeqa")
    made.ids([{"id": "UID2", "uid": "UID2", "category": "hard"}], ["UID1"], [])
    source = tmp_path / "officeqa_full.csv"
    source.write_text(
        'uid,question,answer,source_docs,source_files,difficulty\nUID1,How much?,"1,234",d?page=3,a.txt,easy\n'
        'UID2,"When,\nexactly?",1941,"d?page=1\r\nd?page=2",b.txt,hard\n',
        encoding="utf-8",
        newline="",
    )
    made.make(source)
    (row,) = made.split("train")
    assert (row["id"], row["ground_truth"], row["category"]) == ("UID2", "1941", "hard")
    assert row["question"] == "When,\nexactly?"
    assert made.split("val")[0]["source_files"] == "a.txt"
    for name in ("a.txt", "b.txt"):
        (made.output / "docs").mkdir(exist_ok=True)
        (made.output / "docs" / name).write_text("Total 1,234\n", encoding="utf-8")
    assert stops(made.output, "officeqa", retrieval="restricted") == []


def theorem(**more: Any) -> dict[str, Any]:
    choices = [{"label": "A", "text": "x = 1"}, {"label": "B", "content": "x = 2"}]
    mcq = {"question": "What is x?", "choices": choices, "correct_choice": {"label": "B", "text": "x = 2"}}
    return {"theorem": "x is 2", "sketch": "clear", "theorem_type": "Existence", "paper_link": "p", "mcq": mcq, **more}


def test_livemathematicianbench_in_its_normal_form(case: MakeCase, tmp_path: Path) -> None:
    made = case("livemathematicianbench")
    made.ids(["202512:1"], ["202511:7"], ["202511:1"])
    write_json(tmp_path / "hub" / "data" / "202511" / "qa_202511_final.json", [theorem(no=1), theorem(no=7)])
    write_json(tmp_path / "hub" / "data" / "202512" / "qa_202512_final.json", [theorem()])
    write_json(tmp_path / "hub" / "data" / "202512" / "notes.json", {"what": "else"})
    order = Order(made.manifest, made.output, str(tmp_path / "hub"))
    materialize_data("livemathematicianbench", order)
    (row,) = made.split("train")
    assert row["id"] == "202512:1"
    assert row["choices"] == [{"label": "A", "text": "x = 1"}, {"label": "B", "text": "x = 2"}]
    assert row["correct_choice"] == {"label": "B", "text": "x = 2"}
    assert row["theorem_type"] == ["Existence"]
    assert "mcq" not in row
    assert stops(made.output, "livemathematicianbench") == []


@pytest.fixture
def workbooks(tmp_path: Path) -> Path:
    """The sample workbooks as an archive in the published form."""
    pytest.importorskip("openpyxl", reason="needs the extra spreadsheet")
    sample = tmp_path / "sample"
    write_samples("spreadsheetbench", sample)
    rows = [row for split in SPLIT_NAMES for row in Case.rows(sample, split)]
    top = tmp_path / "spreadsheetbench_verified_400"
    for row in rows:
        folder = sample / row.get("spreadsheet_path", f"spreadsheet/{row['id']}")
        for path in folder.iterdir():
            target = top / "spreadsheet" / str(row["id"]) / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        row["spreadsheet_path"] = f"spreadsheet/{row['id']}"
    write_json(top / "dataset.json", rows)
    archive = tmp_path / "spreadsheetbench_verified_400.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(top, top.name)
    return archive


def ids_of(sample: Path) -> list[list[Any]]:
    return [[row["id"] for row in Case.rows(sample, split)] for split in SPLIT_NAMES]


def test_spreadsheetbench_from_its_archive(case: MakeCase, workbooks: Path) -> None:
    made = case("spreadsheetbench")
    made.ids(*ids_of(workbooks.parent / "sample"))
    result = made.make(workbooks)
    root = made.output.parent / "spreadsheetbench_verified_400"
    assert result.files_folder == root
    row = made.split("train")[0]
    assert list((root / row["spreadsheet_path"]).glob("*.xlsx"))
    assert stops(made.output, "spreadsheetbench") == []
    made.make(workbooks, force=True)
    assert made.left() == ["spreadsheetbench_ids", "spreadsheetbench_split", "spreadsheetbench_verified_400"]


def test_workbooks_that_a_person_unpacked_are_used_as_they_are(case: MakeCase, workbooks: Path) -> None:
    made = case("spreadsheetbench")
    made.ids(*ids_of(workbooks.parent / "sample"))
    made.output.parent.mkdir(exist_ok=True)
    with tarfile.open(workbooks) as tar:
        tar.extractall(made.output.parent, filter="data")
    root = made.output.parent / "spreadsheetbench_verified_400"
    made.make(root)
    assert not (root / "split_manifest.json").exists()
    assert stops(made.output, "spreadsheetbench") == []
    first = next(root.rglob("*.xlsx"))
    first.write_bytes(b"changed")
    with pytest.raises(DataError, match="is not the file of the source"):
        made.make(workbooks, force=True)


def test_alfworld_checks_the_games(case: MakeCase, tmp_path: Path) -> None:
    made = case("alfworld")
    for folder, number in (("train", 1), ("train", 2), ("valid_seen", 3), ("valid_unseen", 4)):
        task = f"json_2.1.1/{folder}/pick_and_place_simple-Apple-None-Fridge-{number}/trial_T{number}"
        write_json(tmp_path / "games" / task / "game.tw-pddl", {})
    order = Order(made.manifest, None, str(tmp_path / "games"))
    _, counts, _ = make_manifest(made.benchmark, order, Cut(seed=1))
    assert counts == {"train": 2, "val": 1, "test": 1}
    (row,) = Case.rows(made.manifest, "val")
    assert row["id"] == "valid_seen:0000"
    assert row["task_type"] == "pick_and_place_simple"
    made.make(tmp_path / "games")
    assert made.split("val") == [row]
    (tmp_path / "games" / row["gamefile"]).unlink()
    with pytest.raises(DataError, match=r"lacks 1 of 4 games.*alfworld-download"):
        made.make(tmp_path / "games", force=True)
    assert len(made.split("train")) == 2


def test_the_path_manifest_of_alfworld_is_its_split(case: MakeCase, tmp_path: Path) -> None:
    made = case("alfworld")
    write_json(tmp_path / "games" / "a" / "game.tw-pddl", {})
    made.ids([{"id": "train:0000", "gamefile": "a/game.tw-pddl"}], [], [])
    order = Order(made.manifest, made.manifest, str(tmp_path / "games"))
    assert materialize(made.benchmark, order).counts["train"] == 1


def test_a_workbook_archive_that_leads_out_is_refused(case: MakeCase, tmp_path: Path) -> None:
    made = case("spreadsheetbench")
    made.ids(["1"], ["2"], [])
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("../escaped.txt")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"bad"))
    with pytest.raises(DataError, match="leads out of the archive"):
        made.make(tmp_path / "evil.tar.gz")
    assert not list(tmp_path.rglob("escaped.txt"))


def test_the_published_sizes_are_those_of_the_manifests() -> None:
    sizes = {name: row.counts for name, row in BENCHMARKS.items()}
    assert sizes["searchqa"] == (400, 200, 1400)
    assert sizes["docvqa"] == (107, 53, 374)
    assert sizes["officeqa"] == (50, 24, 172)
    assert sizes["livemathematicianbench"] == (35, 17, 125)
    assert sizes["spreadsheetbench"] == (80, 40, 280)
    assert sizes["alfworld"] == (39, 18, 134)
