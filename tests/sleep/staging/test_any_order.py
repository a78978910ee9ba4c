"""Staging, adopting, undoing and a person's own edits in any order: the person's words are never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sleep.staging.staging_world import World

from skillopt_sleep import staging
from skillopt_sleep.errors import StagingError

STEPS = st.lists(st.sampled_from(["stage", "adopt", "undo", "edit", "touch", "reject", "gc"]), max_size=12)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_a_persons_words_outlive_every_order_of_steps(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    fsync, os.fsync = os.fsync, lambda _: None  # the machine does not lose power here
    try:
        _go_through(World(tmp_path_factory.mktemp("w")).fill(), steps)
    finally:
        os.fsync = fsync


def _go_through(world: World, steps: list[str]) -> None:
    own: list[str] = [world.memory.read_text("utf-8")]
    stack: list[str] = []  # the texts that undoing comes back to
    for number, step in enumerate(steps):
        before = world.memory.read_bytes()
        try:
            if step == "stage":
                world.stage(None, world.memory.read_text("utf-8") + f"- learned {number}\n")
            elif step == "adopt":
                night = staging.latest_pending(world.project, cfg=world.cfg)
                if night and staging.adopt(night, cfg=world.cfg):
                    stack.append(before.decode())
            elif step == "undo":
                staging.undo(world.project, cfg=world.cfg)
                assert world.memory.read_text("utf-8") == stack.pop()
            elif step == "edit":
                own.append(f"mine {number}\n")
                world.memory.write_text(world.memory.read_text("utf-8") + own[-1], "utf-8")
            elif step == "touch":
                os.utime(world.memory, (2e9, 2e9))
            elif step == "reject":
                night = staging.latest_pending(world.project, cfg=world.cfg)
                if night:
                    staging.reject(Path(night), cfg=world.cfg)
            else:
                staging.gc(world.project, keep=1, cfg=world.cfg)
        except StagingError:
            assert world.memory.read_bytes() == before
        if step not in ("adopt", "undo", "edit"):
            assert world.memory.read_bytes() == before
        text = world.memory.read_text("utf-8")
        assert all(words in text for words in own), steps[: number + 1]
    assert not list(world.project.rglob(".adopt-transaction.json"))
    assert not list(world.project.rglob(".tmp*"))
