"""What waits for a person, as the command line tells it: proposals turned down, prompts, nights that were stopped."""

from __future__ import annotations

import signal
import sys
import time

import pytest
from sleep.night_world import Machine, answer, persona, write_tasks

from skillopt.testing import LoopbackServer


def test_what_was_turned_down_is_adopted_only_by_its_name(machine: Machine) -> None:
    path = write_tasks(machine.base / "t.json", persona())
    folder = machine.json("run", "--backend", "mock", "--tasks-file", str(path))["staging_dir"]
    before = machine.live()
    machine.json("reject")
    refused = machine.json("adopt", code=2)
    assert refused["error"] == "invalid_selection"
    assert f"adopt --staging {folder}" in refused["message"]
    assert machine.live() == before
    assert machine.json("adopt", "--staging", folder)["updated_paths"] == [str(machine.skill)]


def test_what_was_undone_and_then_turned_down_is_turned_down(machine: Machine) -> None:
    path = write_tasks(machine.base / "t.json", persona())
    machine.json("run", "--backend", "mock", "--tasks-file", str(path))
    for action in ("adopt", "undo", "reject"):
        machine.json(action)
    before = machine.live()
    assert "was turned down" in machine.json("adopt", code=2)["message"]
    assert machine.live() == before


def test_status_tells_of_prompts_that_wait_and_not_of_an_interruption(machine: Machine) -> None:
    waiting = machine.json("run", "--backend", "handoff", code=3)
    told = machine.json("status")["handoff_pending"]
    assert told == {"count": waiting["handoff_pending"], "prompts": waiting["prompts"]}
    out = machine.run("status")[1]
    assert f"night 1: {told['count']} prompts wait for an answer" in out
    assert "interrupted" not in out


def test_a_night_that_measured_nothing_shows_no_score(machine: Machine, server: LoopbackServer) -> None:
    code, out, _ = machine.run("run", "--max-calls", "1")
    assert (code, len(server.requests)) == (0, 1)
    assert "held-out not measured => no decision" in out
    assert "not measured" in machine.run("status")[1]
    assert "- Held-out score: not measured" in (machine.nights()[-1] / "report.md").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
def test_a_night_that_is_told_to_end_cleans_up_and_says_so(machine: Machine) -> None:
    with LoopbackServer(answer, latency=60) as running:
        machine.configure(backend="azure_openai", model="m", azure_endpoint=running.url)
        night = machine.start("run", TMPDIR=str(machine.base))
        while not running.requests and night.poll() is None:
            time.sleep(0.01)
        night.send_signal(signal.SIGTERM)
        out, err = night.communicate(timeout=50)
    assert (night.returncode, out) == (130, b"")
    assert b"Interrupted. The same command goes on" in err
    assert machine.json("status")["interrupted_night"] == 1


def test_in_a_folder_of_the_project_the_commands_name_the_project(machine: Machine) -> None:
    path = write_tasks(machine.base / "t.json", persona())
    machine.json("run", "--backend", "mock", "--tasks-file", str(path))
    inside = machine.project / "src" / "deep"
    inside.mkdir(parents=True)
    hint = f"there are nights of {machine.project}: pass --project {machine.project}"
    assert hint in machine.run("status", "--project", str(inside))[1]
    assert hint in machine.run("adopt", "--project", str(inside))[2]
    assert "there are nights of" not in machine.run("status", "--project", str(machine.base))[1]


def test_what_the_person_s_own_prompts_lack_is_told(machine: Machine) -> None:
    machine.configure()
    (machine.state_dir / "prompts.json").write_text('{"reflekt": "x"}')
    path = write_tasks(machine.base / "t.json", persona())
    assert any(
        "unknown prompt 'reflekt'" in note
        for note in machine.json("run", "--backend", "mock", "--tasks-file", str(path))["notes"]
    )
