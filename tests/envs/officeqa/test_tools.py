"""glob, read and grep over the documents of an item: outputs, limits, and what they never reach."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.officeqa.documents import Library
from skillopt.envs.officeqa.tools import ITEM_CHARS, READ_CHARS, Toolbox
from skillopt.errors import DataError


def box(docs: Path, *names: str) -> Toolbox:
    library = Library([(docs / "transformed").resolve()])
    allowed = [doc for name in names for doc in library.named(name)] if names else library.documents
    return Toolbox(library, allowed)


def use(toolbox: Toolbox, tool: str, **given: Any) -> str:
    return toolbox.run(tool, json.dumps(given))


def test_glob_lists_names_by_base_name_and_by_folder(docs: Path) -> None:
    tools = box(docs)
    assert use(tools, "glob", pattern="*.txt").splitlines() == [
        "docs/root_1/a.txt", "docs/root_1/b.txt", "docs/root_1/old/c.txt",
    ]  # fmt: skip
    assert use(tools, "glob", pattern="old/*") == "docs/root_1/old/c.txt"
    assert use(tools, "glob", pattern="A.TXT") == "docs/root_1/a.txt"
    assert use(tools, "glob", pattern="*.pdf") == "[no matches]"


def test_glob_stops_at_fifty_names(docs: Path) -> None:
    for number in range(60):
        (docs / "transformed" / f"x{number:02d}.txt").write_text("x", encoding="utf-8")
    found = use(box(docs), "glob", pattern="x*").splitlines()
    assert len(found) == 51 and found[-1] == "[… 10 more; use a narrower pattern]"


def test_read_gives_lines_from_start_and_eighty_of_them(docs: Path) -> None:
    tools = box(docs)
    assert use(tools, "read", path="docs/root_1/a.txt").splitlines()[1] == "Coal | 1,234"
    assert len(use(tools, "read", path="old/c.txt").splitlines()) == 80
    assert use(tools, "read", path="c.txt", start=200, limit=5) == "line 200"
    assert use(tools, "read", path="c.txt", start="3", limit=2.0) == "line 3\nline 4"
    assert "behind its end" in use(tools, "read", path="c.txt", start=201)


def test_read_is_cut_and_says_where_to_go_on(docs: Path) -> None:
    (docs / "transformed" / "long.txt").write_text("".join(f"{n:099d}\n" for n in range(100)), encoding="utf-8")
    tools = box(docs)
    text = use(tools, "read", path="long.txt", limit=100)
    assert text.startswith(f"{0:099d}\n") and text.index("\n[… cut") == READ_CHARS
    assert text.endswith("go on with start=41]")
    assert use(tools, "read", path="long.txt", start=41, limit=1) == f"{40:099d}"


def test_grep_is_literal_and_without_case_and_stops_at_twenty(docs: Path) -> None:
    tools = box(docs)
    assert use(tools, "grep", pattern="millions", path="a.txt") == "3: Note: in MILLIONS"
    assert use(tools, "grep", pattern="C.al", path="a.txt") == "[no matches]"
    assert use(tools, "grep", pattern="(a+)+$", path="c.txt") == "[no matches]"
    found = use(tools, "grep", pattern="LINE", path="c.txt").splitlines()
    assert len(found) == 21 and found[0] == "1: line 1" and "180 more lines" in found[-1]


def test_a_very_long_line_is_shown_around_the_match(docs: Path) -> None:
    (docs / "transformed" / "wide.txt").write_text("x" * 50_000 + "needle" + "y" * 50_000, encoding="utf-8")
    found = use(box(docs), "grep", pattern="needle", path="wide.txt")
    assert "needle" in found and len(found) < 600


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("read", "{not json", "not valid JSON"),
        ("read", "[1]", "must be one JSON object"),
        ("read", "{}", "path is missing"),
        ("read", '{"path": 7}', "path is missing"),
        ("read", '{"path": "a.txt", "start": "first"}', "start is 'first'; it must be a whole number"),
        ("read", '{"path": "a.txt", "limit": 0}', "limit is '0'"),
        ("read", '{"path": "a.txt", "limit": true}', "limit is 'True'"),
        ("read", '{"path": "a.txt", "start": 1e400}', "start is 'inf'"),
        ("read", '{"path": "old"}', "there is no document 'old'"),
        ("read", '{"path": "missing.txt"}', "glob with pattern * lists them"),
        ("grep", '{"path": "a.txt", "pattern": " "}', "pattern is missing"),
        ("grep", json.dumps({"path": "a.txt", "pattern": "x" * 600}), "600 characters"),
        ("shell", '{"cmd": "ls"}', "there is no tool 'shell'; the tools are glob, read, grep"),
    ],
)
def test_a_wrong_call_is_told_to_the_model(docs: Path, tool: str, arguments: str, words: str) -> None:
    answer = box(docs).run(tool, arguments)
    assert answer.startswith("[error] ") and words in answer


def test_nothing_but_the_allowed_files_can_be_reached(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("gold", encoding="utf-8")
    texts = docs / "transformed"
    (texts / "out.txt").symlink_to(tmp_path / "secret.txt")
    (texts / "loop").symlink_to(texts, target_is_directory=True)
    (texts / "up").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(texts / "pipe.txt")
    (texts / ".hidden.txt").write_text("gold", encoding="utf-8")
    tools = box(docs, "a.txt")
    names = ["../secret.txt", str(tmp_path / "secret.txt"), "out.txt", "up/secret.txt", "docs/root_1/../../secret.txt"]
    names += ["b.txt", "/etc/passwd", "loop/b.txt", ".", "", "a.txt/../b.txt", "~/secret.txt", "a.txt\x00"]
    for name in names:
        assert use(tools, "read", path=name).startswith("[error]"), name
        assert use(tools, "grep", path=name, pattern="gold").startswith("[error]"), name
    assert use(tools, "glob", pattern="*") == "docs/root_1/a.txt"
    assert [doc.relative for doc in Library([texts.resolve()]).documents] == ["a.txt", "b.txt", "old/c.txt"]
    for name in ("a.txt", "./a.txt", "docs/root_1/a.txt", "root_1/a.txt", str((texts / "a.txt").resolve())):
        assert use(tools, "read", path=name, limit=1) == "Title"


def test_folders_with_answers_and_parsed_pages_are_not_documents(docs: Path) -> None:
    (docs / "jsons" / "b.json").write_text("{}", encoding="utf-8")
    (docs / "train").mkdir()
    (docs / "train" / "items.csv").write_text("uid,ground_truth\n1,42\n", encoding="utf-8")
    library = Library([docs.resolve()], [docs / "train"])
    assert [doc.relative for doc in library.documents] == [
        "transformed/a.txt", "transformed/b.txt", "transformed/old/c.txt",
    ]  # fmt: skip


def test_a_name_that_fits_several_documents_is_not_guessed(docs: Path) -> None:
    (docs / "transformed" / "old" / "a.txt").write_text("older\n", encoding="utf-8")
    tools = box(docs)
    assert use(tools, "read", path="a.txt").startswith("Title")  # the one at the top is called just that
    (docs / "transformed" / "older").mkdir()
    (docs / "transformed" / "older" / "c.txt").write_text("x\n", encoding="utf-8")
    assert "several documents are called that" in use(box(docs), "read", path="c.txt")


def test_a_document_that_became_a_link_is_not_followed(docs: Path, tmp_path: Path) -> None:
    tools = box(docs)
    (tmp_path / "secret.txt").write_text("gold", encoding="utf-8")
    (docs / "transformed" / "b.txt").unlink()
    (docs / "transformed" / "b.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(DataError, match="became a link"):
        use(tools, "read", path="b.txt")


def test_what_one_item_reads_has_a_bound(docs: Path) -> None:
    (docs / "transformed" / "long.txt").write_text("".join(f"{n:0399d}\n" for n in range(1000)), encoding="utf-8")
    tools = box(docs)
    rounds = ITEM_CHARS // READ_CHARS + 1
    assert not any(use(tools, "read", path="long.txt").startswith("[error]") for _ in range(rounds - 2))
    assert any("answer now" in use(tools, "read", path="long.txt") for _ in range(4))


_LIBRARY: list[Toolbox] = []


@given(tool=st.sampled_from(["glob", "read", "grep", "x"]), arguments=st.text() | st.dictionaries(
    st.sampled_from(["pattern", "path", "start", "limit"]), st.text() | st.integers() | st.none() | st.floats(),
).map(json.dumps))  # fmt: skip
def test_no_arguments_raise(tool: str, arguments: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not _LIBRARY:
        folder = tmp_path_factory.mktemp("docs")
        (folder / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
        library = Library([folder.resolve()])
        _LIBRARY.append(Toolbox(library, library.documents))
    assert isinstance(_LIBRARY[0].run(tool, arguments), str)
