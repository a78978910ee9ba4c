"""Staging, adopting, undoing and a person's own edits in any order: the person's words are never lost."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sleep.staging.staging_world import World

from skillopt_sleep import staging
from skillopt_sleep.errors import StagingError

PARTS = ("stage adopt", "stage", "adopt", "undo", "edit", "edit undo", "touch", "reject", "gc")
STEPS = st.lists(st.sampled_from(PARTS), max_size=9).map(lambda parts: " ".join(parts).split())


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_a_persons_words_outlive_every_order_of_steps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    fsync, os.fsync = os.fsync, lambda _: None  # the machine does not lose power here
    try:
        Story(World(tmp_path_factory.mktemp("w")).fill()).go_through(steps)
    finally:
        os.fsync = fsync


class Story:
    """One memory file. `own` are the person's words; `earlier` the texts that undoing comes back to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.own = [self.text]
        self.earlier: list[str] = []

    @property
    def text(self) -> str:
        return self.world.memory.read_text("utf-8")

    def go_through(self, steps: list[str]) -> None:
        for number, step in enumerate(steps):
            before = self.text
            try:
                getattr(self, step)(number)
            except StagingError:
                assert self.text == before
            if step not in ("adopt", "undo", "edit"):
                assert self.text == before
            assert all(words in self.text for words in self.own), steps[: number + 1]
        assert not list(self.world.project.rglob(".adopt-transaction.json"))
        assert not list(self.world.project.rglob(".tmp*"))

    def stage(self, number: int) -> None:
        self.world.stage(None, self.text + f"- learned {number}\n")

    def adopt(self, _: int) -> None:
        before = self.text
        night = staging.latest_pending(self.world.project, cfg=self.world.cfg)
        if night and staging.adopt(night, cfg=self.world.cfg):
            self.earlier.append(before)

    def undo(self, _: int) -> None:
        staging.undo(self.world.project, cfg=self.world.cfg)
        assert self.text == self.earlier.pop()

    def edit(self, number: int) -> None:
        self.own.append(f"mine {number}\n")
        self.world.memory.write_text(self.text + self.own[-1], "utf-8")

    def touch(self, _: int) -> None:
        os.utime(self.world.memory, (2e9, 2e9))

    def reject(self, _: int) -> None:
        night = staging.latest_pending(self.world.project, cfg=self.world.cfg)
        if night:
            staging.reject(night, cfg=self.world.cfg)

    def gc(self, _: int) -> None:
        staging.gc(self.world.project, keep=1, cfg=self.world.cfg)
