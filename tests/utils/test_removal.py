"""Folders of strangers are removed whatever is in them, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillopt.utils.removal import remove_tree, scratch_folder

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX rights and relative folders")


@posix
def test_a_nest_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    (tmp_path / "a").mkdir()
    os.chdir(tmp_path / "a")
    try:
        for _ in range(2500):
            Path("d").mkdir()
            Path("f").write_text("x", encoding="utf-8")
            os.chdir("d")
    finally:
        os.fchdir(here)
        os.close(here)
    remove_tree(tmp_path / "a")
    assert not list(tmp_path.iterdir())


@posix
def test_closed_folders_and_links_are_removed_and_what_links_lead_to_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "file"
    kept.parent.mkdir()
    kept.write_text("x", encoding="utf-8")
    folder = tmp_path / "a"
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "to a file").symlink_to(kept)
    (folder / "closed" / "to a folder").symlink_to(kept.parent)
    (folder / "closed" / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    for place in (folder / "closed" / "inner", folder / "closed", folder):
        place.chmod(0)
    remove_tree(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text(encoding="utf-8") == "x"


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "absent")
    assert not list(tmp_path.iterdir())


def test_a_scratch_folder_is_gone_afterwards_also_after_an_error() -> None:
    with pytest.raises(ValueError, match="mine"), scratch_folder("skillopt-test-") as folder:
        (folder / "a" / "b").mkdir(parents=True)
        raise ValueError("mine")
    assert not folder.exists()
    with scratch_folder("skillopt-test-") as other:
        other.rmdir()
    assert other != folder
