"""Where rows come from: what is broken, what is missing, and the hub at its edge."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from published_data import Case, trivia, write_json

from skillopt.datasets.materialize.sources import Wanted, open_source
from skillopt.datasets.materialize.tables import table_rows
from skillopt.errors import DataError, MissingExtraError

ANY = Wanted(("*.json",))


def rows(given: str | Path, wanted: Wanted = ANY) -> list[Any]:
    with open_source(str(given), "", wanted) as source:
        return [(row.name, row.number, row.data) for row in source.rows()]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"[{]", r"a.json:1: not valid JSON"),
        ("a.csv", b"key,question\nx\n", r"a.csv:2: 1 cells"),
        ("a.jsonl", b'{"key": 1}\n[2]\n', r"a.jsonl:2: expected an object"),
        ("a.parquet", b"PAR1 is not enough", r"a.parquet: is no readable parquet file"),
        ("a.arrow", b"ARROW1 and nothing", r"a.arrow: is no readable arrow file"),
        ("a.tar.gz", b"no archive", r"a.tar.gz: cannot be unpacked"),
        ("a.json", b"\xff\xfe", r"is not UTF-8"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    if name.endswith((".parquet", ".arrow")):
        pytest.importorskip("pyarrow", reason="needs the extra datasets")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        rows(tmp_path / name)


def test_a_folder_without_data_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    write_json(tmp_path / ".cache" / "a.json", [])
    with pytest.raises(DataError, match=r"holds no data; expected files that end in \.parquet"):
        rows(tmp_path)


def test_files_of_one_kind_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write_json(tmp_path / "b.json", [{"key": 2}, {"key": 3}])
    write_json(tmp_path / "a" / "x.json", [{"key": 1}])
    write_json(tmp_path / "dataset_info.json", {"made": "by datasets"})
    assert rows(tmp_path) == [("a/x.json", 1, {"key": 1}), ("b.json", 1, {"key": 2}), ("b.json", 2, {"key": 3})]


def test_an_arrow_stream_is_read_like_an_arrow_file(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra datasets")
    table = pyarrow.Table.from_pylist(trivia("k1"))
    for name, opened in (("s.arrow", pyarrow.ipc.new_stream), ("f.arrow", pyarrow.ipc.new_file)):
        with opened(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
        assert [row["key"] for row in table_rows(tmp_path / name)] == ["k1"]


def test_links_in_an_archive_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("data.json")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(DataError, match="is a link"):
        rows(tmp_path / "a.tar.gz")


def test_what_is_neither_a_path_nor_a_name_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        rows(tmp_path / "nowhere")


def test_a_path_has_no_revision(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", [])
    with pytest.raises(DataError, match="leave --revision out"), open_source(str(tmp_path / "a.json"), "v1", ANY):
        pass


def test_without_the_package_the_command_to_install_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r'pip install "skillopt\[datasets\]"'):
        rows("someone/some-data")


class Hub(ModuleType):
    """The two functions of huggingface_hub that are used, over a folder of this machine."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        super().__init__("huggingface_hub")
        self.folder, self.error = folder, error
        self.asked: list[Any] = []

    def HfApi(self) -> Any:
        return SimpleNamespace(dataset_info=self._info)

    def _info(self, repo: str, *, revision: str | None) -> Any:
        self.asked.append((repo, revision))
        if self.error is not None:
            raise self.error
        return SimpleNamespace(sha="c0ffee")

    def snapshot_download(self, repo: str, **more: Any) -> str:
        self.asked.append((repo, more))
        return str(self.folder)


@pytest.mark.parametrize(("given", "asked"), [("", "pinned"), ("me/copy", None)])
def test_the_revision_of_the_manifest_is_fetched_and_the_exact_one_is_kept(
    case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, asked: str | None
) -> None:
    made: Case = case("searchqa")
    made.ids(["k1"], ["k2"], [])
    made.about(source_revision="pinned")
    write_json(tmp_path / "hub" / "train.json", trivia("k1", "k2"))
    hub = Hub(tmp_path / "hub")
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert made.make(given).revision == "c0ffee"
    repo = given or "lucadiliello/searchqa"
    assert hub.asked[0] == (repo, asked)
    assert hub.asked[1][1]["revision"] == "c0ffee"
    assert made.written()["source_revision"] == "c0ffee"


def test_a_hub_that_cannot_be_reached_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub(tmp_path, ConnectionError("no route\nto host")))
    with pytest.raises(DataError, match=r"someone/some-data: cannot be fetched.*ConnectionError: no route\)") as caught:
        rows("someone/some-data")
    assert "\n" not in str(caught.value)
    assert "--source PATH" in str(caught.value)
