"""What a person saves while a file of theirs is changed is never buried."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from sleep.staging.saving import WAYS, Person, spin, text
from sleep.staging.staging_world import MEMORY, NEW_MEMORY, World

from skillopt_sleep import staging
from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import AdoptionRefused, disk, exchange, live

linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="elsewhere no system tells of open files")


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the machine does not lose power here


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "notes" / "CLAUDE.md"
    path.parent.mkdir()
    path.write_text("old\n")
    path.chmod(0o640)
    return path


def seen(path: Path) -> disk.Seen:
    found = disk.look(path)
    assert found
    return found


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def change(path: Path, before: disk.Seen, *, away: bool) -> None:
    temporary = path.with_name(".tmp-1")
    if away:
        live.remove(path, before=before, temporary=temporary)
    else:
        live.replace(path, b"ours\n", before=before, temporary=temporary, mode=0o640)


def racing(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Each exchange has one of `acts` just before it."""
    real, left = exchange.swap, list(acts)

    def swap(one: Path, other: Path) -> bool:
        if left:
            left.pop(0)()
        return real(one, other)

    monkeypatch.setattr(exchange, "swap", swap)


def saver(path: Path, words: str, *, by_rename: bool) -> Callable[[], object]:
    def save() -> None:
        if by_rename:
            path.with_name("draft").write_text(words)
            path.with_name("draft").rename(path)
        else:
            path.write_text(words)

    return save


@linux
@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("how", WAYS)
def test_nothing_that_is_saved_all_the_time_is_lost(file: Path, how: str, away: bool) -> None:
    rng = random.Random(f"{how}/{away}")
    with Person(file, how) as person:
        for number in range(150):
            file.write_text("old\n")
            before, times = seen(file), rng.choice((1, 1, 2, 5))
            person.start(number, rng.randrange(600), times)
            spin(rng.randrange(300))
            message = ""
            try:
                change(file, before, away=away)
            except AdoptionRefused as refused:
                message = str(refused)
            person.wait()
            last = text(number, times - 1)
            kept = list(file.parent.glob("CLAUDE.md.kept-*"))
            assert last in file.read_text() or any(last in one.read_text() for one in kept), (number, message)
            assert all(str(one) in message for one in kept)
            for one in kept:
                one.unlink()
            assert names(file.parent) == [file.name]


@linux
@pytest.mark.parametrize("how", ["rename", "truncate"])
def test_adopting_and_undoing_while_a_person_saves_loses_nothing(world: World, how: str) -> None:
    night = world.stage(None)
    rng = random.Random(how)
    with Person(world.memory, how) as person:
        for number in range(60):
            undoing = number % 2 == 1
            world.memory.write_text(NEW_MEMORY if undoing else MEMORY)
            person.start(number, rng.randrange(4000), 2)
            told = attempt(world, night, undoing=undoing)
            person.wait()
            last = text(number, 1)
            kept = list(world.project.glob("CLAUDE.md.kept-*"))
            assert last in world.memory.read_text() or any(last in one.read_text() for one in kept), number
            assert all(str(one) in told for one in kept)
            staging.recover(world.project, keep_edited=True, cfg=world.cfg)
            assert last in world.memory.read_text() or kept
            settle(world, night, undone=undoing)
            for one in kept:
                one.unlink()
            assert names(world.project) == [".skillopt-sleep", "CLAUDE.md"]


def attempt(world: World, night: Path, *, undoing: bool) -> str:
    try:
        staging.undo(world.project, cfg=world.cfg) if undoing else staging.adopt(night, cfg=world.cfg)
    except StagingError as error:
        return str(error)
    return ""


def settle(world: World, night: Path, *, undone: bool) -> None:
    """Finish in peace what the person may have stopped."""
    world.memory.write_text(NEW_MEMORY if undone else MEMORY)
    if undone:
        with contextlib.suppress(staging.NoStaging):
            staging.undo(world.project, cfg=world.cfg)
    else:
        with contextlib.suppress(AdoptionRefused):
            staging.adopt(night, cfg=world.cfg)


@pytest.mark.parametrize("by_rename", [False, True])
def test_a_save_of_the_last_instant_stays_live_and_nothing_else_is_changed(
    world: World, monkeypatch: pytest.MonkeyPatch, by_rename: bool
) -> None:
    night = world.stage()
    before = world.skill.read_bytes()
    racing(monkeypatch, lambda: None, saver(world.memory, "mine\n", by_rename=by_rename))
    with pytest.raises(AdoptionRefused, match="left as it is"):
        staging.adopt(night, cfg=world.cfg)
    assert (world.memory.read_text(), world.skill.read_bytes()) == ("mine\n", before)
    assert names(world.project) == [".skillopt-sleep", "CLAUDE.md"]
    assert staging.recover(world.project, cfg=world.cfg) == []
    assert not (night / "backup").exists()


@pytest.mark.parametrize("by_rename", [False, True])
def test_of_two_saves_in_that_moment_the_newest_is_live_and_the_other_is_kept_and_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, by_rename: bool
) -> None:
    before = seen(file)
    racing(monkeypatch, saver(file, "first\n", by_rename=by_rename), saver(file, "second\n", by_rename=by_rename))
    with pytest.raises(AdoptionRefused, match="kept in") as refused:
        change(file, before, away=False)
    assert file.read_text() == "second\n"
    (kept,) = file.parent.glob("CLAUDE.md.kept-*")
    assert kept.read_text() == "first\n"
    assert str(kept) in str(refused.value)


def test_a_link_or_a_deletion_of_the_last_instant_is_respected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = seen(file)

    def link() -> None:
        file.unlink()
        file.symlink_to("elsewhere.md")

    racing(monkeypatch, link, lambda: None, file.unlink)
    with pytest.raises(AdoptionRefused):
        change(file, before, away=False)
    assert str(file.readlink()) == "elsewhere.md"
    file.unlink()
    file.write_text("old\n")
    with pytest.raises(AdoptionRefused):
        change(file, seen(file), away=False)
    assert names(file.parent) == []


@linux
def test_a_file_that_is_open_for_writing_is_neither_replaced_nor_removed(file: Path) -> None:
    for away in (False, True):
        with file.open("r+") as stream:
            with pytest.raises(AdoptionRefused):
                change(file, seen(file), away=away)
            stream.write(f"mine {away}\n")
            stream.truncate()
        assert file.read_text() == f"mine {away}\n"
    change(file, seen(file), away=False)
    assert file.read_text() == "ours\n"


def test_a_file_that_appears_in_the_last_instant_is_not_overwritten(file: Path) -> None:
    with pytest.raises(FileExistsError):
        disk.create(file, b"ours\n", temporary=file.with_name(".tmp-1"))
    assert file.read_text() == "old\n"
    assert names(file.parent) == [file.name]


@pytest.mark.parametrize("links", [True, False])
def test_where_names_cannot_be_exchanged_a_last_look_has_to_do(
    file: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    monkeypatch.setattr(exchange.platform, "system", lambda: "Plan 9")
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    before = seen(file)
    change(file, before, away=False)
    assert (file.read_text(), seen(file).mode) == ("ours\n", before.mode)
    for away in (False, True):
        stale = seen(file)
        file.write_text(f"mine {away}\n")
        with pytest.raises(AdoptionRefused):
            change(file, stale, away=away)
        assert file.read_text() == f"mine {away}\n"
    change(file, seen(file), away=True)
    disk.create(file, b"new\n", temporary=file.with_name(".tmp-1"))
    assert names(file.parent) == [file.name]


def no_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")
