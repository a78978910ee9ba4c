"""A folder that is whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt.datasets.materialize.new_folder import new_folder
from skillopt.errors import DataError, RunLockedError


def test_it_appears_at_the_end(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a" / "b") as folder:
        (folder / "x").write_text("1", encoding="utf-8")
        assert not (tmp_path / "a" / "b").exists()
    assert (tmp_path / "a" / "b" / "x").read_text(encoding="utf-8") == "1"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), new_folder(tmp_path / "b") as folder:
        (folder / "x").write_text("1", encoding="utf-8")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    taken = pytest.raises(RunLockedError, match="another process")
    with new_folder(tmp_path / "b"), taken, new_folder(tmp_path / "b"):
        pass


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read or written"), new_folder(tmp_path / "file" / "b"):
        pass
    with pytest.raises(DataError, match="is a file"), new_folder(tmp_path / "file"):
        pass
