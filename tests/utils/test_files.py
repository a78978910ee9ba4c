"""Writing, reading, naming and locking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import DataError, RunLockedError
from skillopt.utils.files import (
    RunLock,
    append_jsonl,
    atomic_write_json,
    atomic_write_text,
    read_json,
    read_text,
    safe_name,
)


@pytest.mark.parametrize("text", ["", "a\r\nb\n", "\ufeffé→\n", "no end"])
def test_text_is_written_and_read_exactly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep" / "skill.md"
    atomic_write_text(path, text)
    assert path.read_bytes() == text.encode("utf-8")
    assert read_text(path) == text
    assert [p.name for p in path.parent.iterdir()] == ["skill.md"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    atomic_write_json(path, {"a": 1})
    with pytest.raises(ValueError, match=r"Out of range float values|not JSON compliant"):
        atomic_write_json(path, {"a": float("nan")})
    with pytest.raises(UnicodeEncodeError):
        atomic_write_text(path, "\ud800")
    assert read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


def test_files_are_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_write_text(tmp_path / "x", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_reading_says_which_file_and_where(tmp_path: Path) -> None:
    bad = tmp_path / "bad.md"
    bad.write_bytes(b"ab\xff")
    with pytest.raises(DataError, match=r"bad\.md: byte 2 is not UTF-8"):
        read_text(bad)
    with pytest.raises(DataError, match="no such file"):
        read_text(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be read"):
        read_text(tmp_path)
    bad.write_text('{"a": 1,\n"b": }', encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.md:2: not valid JSON"):
        read_json(bad)


@given(st.text(max_size=300), st.text(max_size=300))
def test_names_are_safe_and_tell_ids_apart(one: str, other: str) -> None:
    name = safe_name(one)
    assert name not in ("", ".", "..")
    assert len(name) <= 140
    assert not set(name) & set('/\\:*?"<>|\0')
    assert not name.startswith(".") and not name.endswith(".")
    assert (safe_name(other) == name) == (one == other)


@pytest.mark.parametrize(
    "item_id",
    ["../secret", "/etc/x", "a\\b", "..", "", "con", "a:b", "x" * 300, "a\0b", "ends.", ".hidden"],
)
def test_unsafe_ids_get_safe_names(item_id: str) -> None:  # C101
    name = safe_name(item_id)
    assert name != item_id
    assert Path(name).name == name


def test_simple_ids_keep_their_names() -> None:
    assert safe_name("q-12_a.b") == "q-12_a.b"


def test_a_second_run_is_refused_and_a_dead_one_is_not_in_the_way(tmp_path: Path) -> None:  # C166
    script = textwrap.dedent(
        f"""
        import os, pathlib, sys
        from skillopt.utils.files import RunLock
        with RunLock(pathlib.Path({str(tmp_path)!r})):
            print("held", flush=True)
            sys.stdin.read(1)
            os._exit(9)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunLockedError, match=f"process {holder.pid} on "), RunLock(tmp_path):
            pass
        holder.stdin.write("x")
        holder.stdin.flush()
        holder.wait(60)
    with RunLock(tmp_path):
        pass


def test_a_line_that_a_kill_cut_short_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append_jsonl(path, {"n": 1})
    with path.open("ab") as stream:
        stream.write(b'{"n": 2, "te')
    append_jsonl(path, {"n": 3})
    append_jsonl(path, {"n": 4})
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(lines[n])["n"] for n in (0, 2, 3)] == [1, 3, 4]
    assert lines[1] == '{"n": 2, "te'


@pytest.mark.skipif(os.name == "nt", reason="no permissions of this kind")
def test_writing_never_changes_the_mask_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("other threads make files meanwhile"))
            atomic_write_text(tmp_path / "a.txt", "x")
        assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
