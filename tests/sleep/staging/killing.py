"""Kills a child process at the n-th file operation of an action; run as a script it makes many such worlds.

The product has no hook for this: the interpreter's own audit events tell of each operation before it happens, and a
flush to disk is where a write can be torn.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from sleep.staging.staging_world import World

from skillopt_sleep import staging
from skillopt_sleep.staging import exchange

KILLED = 137
SAVED = "saved in the last instant\n"
_EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "os.truncate"}


class Killer:
    """Counts file operations; ends the process before the n-th (0: never), a flush only after half of it was lost."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

        def fsync(handle: int) -> None:
            if self.step():
                size = os.fstat(handle).st_size
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    os.ftruncate(handle, size // 2)
                os._exit(KILLED)

        os.fsync = fsync
        sys.addaudithook(self._hook)

    def step(self) -> bool:
        self.count += 1
        return self.count == self.at

    def _hook(self, event: str, arguments: tuple[object, ...]) -> None:
        writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_CREAT | os.O_WRONLY)
        if (writing or event in _EVENTS) and self.step():
            os._exit(KILLED)


def run(action: Callable[[], object], at: int) -> tuple[bool, int]:
    """Do `action` in a child that dies at operation `at`; whether it was killed, and how many operations it did."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        killer = Killer(at)
        try:
            action()
            os.write(writing, str(killer.count).encode())
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as stream:
        told = stream.read()
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, KILLED):
        raise RuntimeError(f"the action failed with exit code {code} at operation {at}")
    return code == KILLED, int(told or 0)


def prepare(kind: str, folder: Path) -> tuple[World, Callable[[], object]]:
    """A world and the action that is killed in it."""
    world = World(folder)
    if kind == "create":
        night = world.stage()
        return world, lambda: staging.adopt(night, cfg=world.cfg)
    if kind == "no-links":
        os.link, platform.system = _no_links, lambda: "Plan 9"
        night = world.stage()
        return world, lambda: staging.adopt(night, cfg=world.cfg)
    if kind == "named":
        night = world.stage_named("alpha", "beta", "gamma")
        return world, lambda: staging.adopt_skills(night, cfg=world.cfg)
    if kind == "stage":
        world.fill()
        return world, lambda: world.stage()
    if kind == "undo-create":
        staging.adopt(world.stage(), cfg=world.cfg)
        return world, lambda: staging.undo(world.project, cfg=world.cfg)
    world.fill()
    night = world.stage()
    if kind == "undo":
        staging.adopt(night, cfg=world.cfg)
        return world, lambda: staging.undo(world.project, cfg=world.cfg)
    if kind == "saved":
        return world, lambda: saved_in_the_last_instant(world, night)
    return world, lambda: staging.adopt(night, cfg=world.cfg)


def saved_in_the_last_instant(world: World, night: Path) -> None:
    """An adoption that a person's save comes in front of, after the last look; the save is noted in `saved`."""
    real = exchange.swap

    def swap(one: Path, other: Path) -> bool:
        if other == world.memory and not (world.base / "saved").exists():
            world.memory.write_text(SAVED)
            (world.base / "saved").touch()
        return real(one, other)

    exchange.swap = swap
    with contextlib.suppress(staging.AdoptionRefused):
        staging.adopt(night, cfg=world.cfg)


def _no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def main() -> None:
    """`killing.py BASE KIND SHARE...`: one killed world for each share (0..1) of the action's operations."""
    base, kind, *shares = sys.argv[1:]
    os.fsync = lambda _: None  # the machine does not lose power here
    _, total = run(prepare(kind, Path(base) / "whole")[1], 0)
    made = []
    for number, share in enumerate(shares):
        folder = Path(base) / f"w{number}"
        world, action = prepare(kind, folder)
        before = {path: [data.hex(), mode] for path, (data, mode) in world.snapshot().items()}
        at = 1 + int(float(share) * total)
        killed, _ = run(action, at)
        made.append({"folder": str(folder), "at": at, "killed": killed, "before": before})
    json.dump({"total": total, "worlds": made}, sys.stdout)


if __name__ == "__main__":
    main()
