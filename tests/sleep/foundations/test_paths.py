"""Paths: one root, private files written whole, keys that stand for projects."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skillopt_sleep import paths


def test_the_home_follows_its_variable(tmp_path: Path) -> None:
    assert paths.sleep_home({"SKILLOPT_SLEEP_HOME": str(tmp_path / "a" / ".." / "b")}) == tmp_path / "b"
    assert paths.sleep_home({"SKILLOPT_SLEEP_HOME": " "}) == Path("~/.skillopt-sleep").expanduser()


def test_folders_of_a_project(tmp_path: Path) -> None:
    assert paths.staging_root(tmp_path) == tmp_path / ".skillopt-sleep" / "staging"
    assert paths.handoff_folder(tmp_path, {}) == tmp_path / ".skillopt-sleep-handoff"
    assert paths.handoff_folder(tmp_path, {"SKILLOPT_SLEEP_HANDOFF_DIR": str(tmp_path / "h")}) == tmp_path / "h"
    key = paths.project_key(tmp_path)
    assert paths.night_folder(tmp_path / "s", str(tmp_path)) == tmp_path / "s" / "nights" / key
    assert key != paths.project_key(tmp_path / "x")
    assert len(key) == 20


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_private_files_are_whole_and_private_and_folders_that_exist_keep_their_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    target = tmp_path / "a" / "b" / "x.txt"
    paths.write_private(target, "one\r\n\ud800")
    paths.write_private(target, b"two\r\n")
    assert target.read_bytes() == b"two\r\n"
    assert [stat.S_IMODE(p.stat().st_mode) for p in (target, target.parent, target.parent.parent, tmp_path)] == [
        0o600,
        0o700,
        0o700,
        0o755,
    ]
    assert [p.name for p in target.parent.iterdir()] == ["x.txt"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match=r"."):
        paths.write_private(tmp_path / "x", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    with pytest.raises(ValueError, match=r"."):
        paths.write_private_json(tmp_path / "y", float("nan"))
    assert not (tmp_path / "y").exists()


def test_an_unfinished_last_line_is_ended_before_the_next_one(tmp_path: Path) -> None:
    target = tmp_path / "log.jsonl"
    target.write_bytes(b'{"a": 1}\n{"b"')
    paths.append_private(target, '{"c": 3}\n')
    paths.append_private(target, '{"d": 4}')
    assert target.read_text().splitlines() == ['{"a": 1}', '{"b"', '{"c": 3}', '{"d": 4}']


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX")
def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "log").symlink_to(victim)
    with pytest.raises(OSError, match=r"."):
        paths.append_private(tmp_path / "log", "x")
    paths.write_private(tmp_path / "log", "x")
    assert victim.read_text() == "mine"
