"""`kill -9` at any moment: afterwards each file is wholly before or wholly after, and work goes on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sleep.staging import killing
from sleep.staging.staging_world import MEMORY, World

from skillopt_sleep import staging
from skillopt_sleep.staging import nights

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the machine does not lose power here


def killed_worlds(base: Path, kind: str, moments: int) -> list[dict[str, Any]]:
    shares = [str(random.Random(f"{kind}/{number}").random()) for number in range(moments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [sys.executable, str(Path(killing.__file__)), str(base), kind, *shares]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["total"] > 10
    assert all(world["killed"] for world in told["worlds"]), "a moment lay after the end"
    return list(told["worlds"])


def opened(folder: str) -> World:
    world = World.__new__(World)
    world.base = Path(folder)
    world.project, world.home = world.base / "project", world.base / "claude"
    world.cfg = world.config()
    return world


def as_text(snapshot: dict[str, tuple[bytes, int]]) -> dict[str, list[Any]]:
    return {path: [data.hex(), mode] for path, (data, mode) in snapshot.items()}


@pytest.mark.parametrize(("kind", "moments"), [("pair", 50), ("create", 12), ("no-links", 12), ("named", 10)])
def test_adoption_survives_a_kill_at_any_moment(tmp_path: Path, kind: str, moments: int) -> None:
    for told in killed_worlds(Path(os.path.realpath(tmp_path)) / "worlds", kind, moments):
        world = opened(told["folder"])
        (night,) = nights.folders(world.project)
        staging.recover(world.project, cfg=world.cfg)
        after = as_text(world.snapshot())
        finished = bool(staging.view(night, cfg=world.cfg).rows) and not staging.view(night, cfg=world.cfg).pending
        if finished:
            assert not list(world.project.rglob("*.tmp*")), told["at"]
        else:
            assert after == told["before"], told["at"]
            assert not (night / "backup").exists()
            assert adopt(world, night, kind)
        assert staging.recover(world.project, cfg=world.cfg) == []
        assert not [entry for entry in night.iterdir() if entry.name.startswith((".tmp", ".adopt-tr"))]
        undone = staging.undo(world.project, cfg=world.cfg)
        assert undone.night == str(night)
        assert as_text(world.snapshot()) == told["before"], told["at"]


def adopt(world: World, night: Path, kind: str) -> object:
    if kind == "named":
        return staging.adopt_skills(night, cfg=world.cfg)
    return staging.adopt(night, cfg=world.cfg)


def test_a_save_of_the_last_instant_survives_a_kill_at_any_moment_after_it(tmp_path: Path) -> None:
    saved = 0
    for told in killed_worlds(Path(os.path.realpath(tmp_path)) / "worlds", "saved", 40):
        world = opened(told["folder"])
        (done,) = staging.recover(world.project, cfg=world.cfg) or (None,)
        assert done is None or done.status == "rolled_back" or world.memory.read_text() == killing.SAVED, told["at"]
        staging.recover(world.project, keep_edited=True, cfg=world.cfg)
        after = as_text(world.snapshot())
        memory = after.pop(str(world.memory))
        told["before"].pop(str(world.memory))
        was_saved = (world.base / "saved").exists()
        saved += was_saved
        texts = [killing.SAVED] if was_saved else [killing.SAVED, MEMORY]
        assert bytes.fromhex(memory[0]).decode() in texts, told["at"]
        assert after == told["before"], told["at"]
        assert staging.recover(world.project, cfg=world.cfg) == []
    assert saved > 5


@pytest.mark.parametrize("kind", ["undo", "undo-create"])
def test_undo_survives_a_kill_at_any_moment(tmp_path: Path, kind: str) -> None:
    for told in killed_worlds(Path(os.path.realpath(tmp_path)) / "worlds", kind, 12):
        world = opened(told["folder"])
        staging.recover(world.project, cfg=world.cfg)
        if as_text(world.snapshot()) == told["before"]:
            staging.undo(world.project, cfg=world.cfg)
        fresh = World(Path(told["folder"]) / "fresh")
        if kind == "undo":
            fresh.fill()
        left = {path.replace(told["folder"], ""): value for path, value in world.snapshot().items()}
        wanted = {path.replace(str(fresh.base), ""): value for path, value in fresh.snapshot().items()}
        assert left == wanted, told["at"]


def test_a_kill_during_recovery_is_recovered_too(tmp_path: Path) -> None:
    for told in killed_worlds(Path(os.path.realpath(tmp_path)) / "worlds", "create", 5):
        world = opened(told["folder"])
        for at in range(2, 40, 5):
            killing_recovery(world, at)
        staging.recover(world.project, cfg=world.cfg)
        (night,) = nights.folders(world.project)
        if staging.view(night, cfg=world.cfg).pending:
            assert as_text(world.snapshot()) == told["before"]
            assert staging.adopt(night, cfg=world.cfg)


def killing_recovery(world: World, at: int) -> None:
    child = os.fork()
    if child == 0:
        killing.Killer(at)
        staging.recover(world.project, cfg=world.cfg)
        os._exit(0)
    os.waitpid(child, 0)


def test_staging_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    for told in killed_worlds(Path(os.path.realpath(tmp_path)) / "worlds", "stage", 10):
        world = opened(told["folder"])
        staging.recover(world.project, cfg=world.cfg)
        assert as_text(world.snapshot()) == told["before"]
        for night in nights.published(world.project):
            assert staging.adopt(night, cfg=world.cfg), told["at"]
            staging.undo(world.project, cfg=world.cfg)
        assert staging.adopt(world.stage(), cfg=world.cfg)
