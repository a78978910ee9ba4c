"""Whatever two nights of two projects note in whatever order, all of it is there in the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt_sleep.state import SleepState
from skillopt_sleep.types import TaskRecord

KINDS = ("harvest", "archive", "splits", "history", "rejected", "note", "cursor", "slow")
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([*KINDS, "save", "reload"]), st.integers(0, 3)), max_size=16
)
PROJECTS = ("/one", "/two")


@pytest.fixture(autouse=True)
def _no_flushing() -> Iterator[None]:
    fsync, os.fsync = os.fsync, lambda _: None  # the machine does not lose power here
    yield
    os.fsync = fsync


def note(state: SleepState, project: str, kind: str, number: int) -> None:
    if kind == "harvest":
        state.set_last_harvest(project, 1_700_000_000.0 + number)
    elif kind == "archive":
        state.add_to_archive([TaskRecord(f"t{number}", project, f"intent {number}")])
    elif kind == "splits":
        state.set_splits(project, {f"t{number}": "val"})
    elif kind == "history":
        state.record_night({"night": number, "project": project})
    elif kind == "rejected":
        state.add_rejected_edits(project, [{"target": "skill", "op": "add", "content": f"rule {number}"}])
    elif kind == "note":
        state.set_note(project, f"n{number}", {"value": number})
    elif kind == "cursor":
        state.set_cursor(f"s{number}", project, {"offset": number})
    else:
        state.set_slow_memory(f"guidance {number}", project)


def holds(state: SleepState, project: str, kind: str, number: int) -> bool:
    return {
        "harvest": lambda: state.last_harvest_for(project) is not None,
        "archive": lambda: f"t{number}" in [row["id"] for row in state.task_archive(project)],
        "splits": lambda: state.splits_for(project).get(f"t{number}") == "val",
        "history": lambda: {"night": number, "project": project} in state.history,
        "rejected": lambda: f"rule {number}" in [row["content"] for row in state.rejected_edits(project)],
        "note": lambda: state.note(project, f"n{number}") == {"value": number},
        "cursor": lambda: state.cursor(f"s{number}", project) == {"offset": number},
        "slow": lambda: state.slow_memory_for(project).startswith("guidance "),
    }[kind]()


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_all_of_it_is_there(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]]) -> None:
    path: Path = tmp_path_factory.mktemp("s") / "state.json"
    writers = [SleepState.load(path), SleepState.load(path)]
    saved: list[tuple[str, str, int]] = []
    open_: list[list[tuple[str, str, int]]] = [[], []]
    for who, kind, number in [*steps, (0, "save", 0), (1, "save", 0)]:
        if kind == "save":
            writers[who].save()
            saved += open_[who]
            open_[who] = []
        elif kind == "reload":
            writers[who], open_[who] = SleepState.load(path), []
        else:
            note(writers[who], PROJECTS[who], kind, number)
            open_[who].append((PROJECTS[who], kind, number))
    found = SleepState.load(path)
    assert [row for row in saved if not holds(found, *row)] == []
