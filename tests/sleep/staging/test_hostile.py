"""A project can come from anywhere, its `.skillopt-sleep` folder too: whatever lies there is told, never a crash."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sleep.staging.staging_world import World

from skillopt_sleep import staging
from skillopt_sleep.errors import SleepError
from skillopt_sleep.staging import disk

_HASH = "0" * 64
_ROW = {"proposed_file": "proposed_SKILL.md", "live_path": "/x/SKILL.md", "sha256": _HASH, "live_sha256": ""}
_GOOD = {"schema": "skillopt-sleep-staging", "schema_version": 2, "accepted": True}


def _manifest(path: str) -> str:
    row = {**_ROW, "live_path": path, "live_realpath": path}
    return json.dumps({**_GOOD, "legacy": {"skill": row}})


HOSTILE = {
    "manifest.json": [
        "[" * 100_000,
        json.dumps({**_GOOD, "created": "x"}),
        json.dumps({**_GOOD, "rejected_before": {"a": "b"}}),
        '{"schema": "skillopt-sleep-staging", "schema_version": 2, "created": ' + "9" * 400 + "}",
        '{"schema": "skillopt-sleep-staging", "schema_version": 2, "created": NaN}',
        _manifest("/x\0/SKILL.md"),
        _manifest("/x\ud800/SKILL.md"),
        _manifest("/" + "a" * 5000 + "/SKILL.md"),
        json.dumps({"has_skill": True, "live_skill_path": "/x\0"}),
    ],
    "adopted_legacy.json": ["[" * 100_000, '[{"target": "skill", "live_path": "/x"}]', "5"],
    ".adopt-transaction.json": ["[" * 100_000, "[]", '{"version": 1}'],
    "rejected.json": ["[" * 100_000, '{"a": NaN}', '{"a": ' + "9" * 400 + "}"],
}


def _everything(world: World, night: Path) -> None:
    cfg = world.cfg
    commands: list[Callable[[], object]] = [
        lambda: staging.view(night, cfg=cfg),
        lambda: staging.pending_nights(world.project, cfg=cfg),
        lambda: staging.diff(night, cfg=cfg),
        lambda: staging.select(night, cfg=cfg),
        lambda: staging.adopt(night, cfg=cfg, trust_unsigned=True),
        lambda: staging.undo(world.project, cfg=cfg),
        lambda: staging.recover(world.project, cfg=cfg),
        lambda: staging.gc(world.project, keep=0, now=9e9, cfg=cfg),
        lambda: staging.reject(night, cfg=cfg),
    ]
    for command in commands:
        try:
            command()
        except SleepError:
            continue


@pytest.mark.parametrize(("name", "number"), [(name, at) for name, rows in HOSTILE.items() for at in range(len(rows))])
def test_hostile_content_is_told_and_stops_no_later_night(tmp_path: Path, name: str, number: int) -> None:
    world = World(tmp_path).fill()
    night = world.stage()
    (night / name).write_text(HOSTILE[name][number], encoding="utf-8")
    before = (world.skill.read_bytes(), world.memory.read_bytes())
    _everything(world, night)
    assert (world.skill.read_bytes(), world.memory.read_bytes()) == before
    assert (world.stage() / "manifest.json").is_file()


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
@pytest.mark.parametrize("name", ["manifest.json", "rejected.json", ".adopt-transaction.json", ".adopt-skills.lock"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_what_is_no_file_is_never_waited_for_nor_followed(tmp_path: Path, name: str, kind: str) -> None:
    world = World(tmp_path).fill()
    night = world.stage()
    path = night / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(world.memory)
    before = world.memory.read_bytes()
    _everything(world, night)
    assert world.memory.read_bytes() == before


def test_a_copied_project_cannot_touch_the_files_of_the_original(tmp_path: Path) -> None:
    world = World(tmp_path)
    staging.adopt(world.stage(), cfg=world.cfg)
    pending = world.stage(skill=None, memory="# Later\n")
    copy = world.project.with_name("copy")
    shutil.copytree(world.project, copy, symlinks=True)
    cfg = world.config(invoked_project=str(copy))
    before = (world.skill.read_bytes(), world.memory.read_bytes())
    with pytest.raises(staging.InvalidStaging, match="moved or copied"):
        staging.undo(copy, cfg=cfg)
    for trusted in (False, True):
        with pytest.raises(staging.InvalidStaging, match="moved or copied"):
            staging.adopt(copy / pending.relative_to(world.project), trust_unsigned=trusted)
    assert (world.skill.read_bytes(), world.memory.read_bytes()) == before
    assert staging.undo(world.project, cfg=world.cfg).removed == (str(world.skill), str(world.memory))


def test_a_lost_key_is_named_and_a_new_night_works(tmp_path: Path) -> None:
    world = World(tmp_path).fill()
    staging.adopt(world.stage(), cfg=world.cfg)
    (world.cfg.state_dir / "staging.key").unlink()
    with pytest.raises(staging.InvalidStaging, match="key of this installation was lost"):
        staging.undo(world.project, cfg=world.cfg)
    assert staging.adopt(world.stage(memory="# Anew\n", skill=None), cfg=world.cfg) == [str(world.memory)]
    staging.undo(world.project, cfg=world.cfg)


def test_a_foreign_manifest_cannot_make_diff_show_a_file_of_the_person(tmp_path: Path) -> None:
    world = World(tmp_path).fill()
    secret = world.write(world.home.parent / "credentials", "top secret words")
    note = world.write(world.home.parent / "private.md", "top secret words")
    night = world.stage()
    for path in (secret, note, world.project / ".." / "private.md"):
        row = {**_ROW, "live_path": str(path), "live_realpath": str(path), "live_sha256": _HASH}
        (night / "manifest.json").write_text(json.dumps({**_GOOD, "legacy": {"skill": row}}), encoding="utf-8")
        text = staging.diff(night, cfg=world.cfg)
        assert "is not shown" in text
        assert "top secret" not in text


def test_an_edit_that_a_person_saves_while_the_new_text_is_flushed_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path).fill()
    night = world.stage(skill=None)
    flush = disk.write_temporary

    def slow(temporary: Path, data: bytes, mode: int | None) -> None:
        flush(temporary, data, mode)
        if temporary.parent == world.project:
            world.memory.write_text("saved just now", encoding="utf-8")

    monkeypatch.setattr(disk, "write_temporary", slow)
    with pytest.raises(SleepError):
        staging.adopt(night, cfg=world.cfg)
    assert world.memory.read_text("utf-8") == "saved just now"
