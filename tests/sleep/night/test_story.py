"""The whole story: sessions, a dry run, a night, a look, an adoption, and everything as it was after undo."""

from __future__ import annotations

import json
from pathlib import Path

from sleep.night_world import RULE, Machine, kind_of, persona, prompt_of, write_tasks
from sleep.worlds import claude_lines, sessions, write

from skillopt.testing import LoopbackServer


def test_from_twenty_sessions_to_an_adopted_rule_and_back(machine: Machine, server: LoopbackServer) -> None:
    sessions(machine.home, 10, project=str(machine.project), first=10)
    before = machine.live()
    dry = machine.json("dry-run")
    assert dry["accepted"]
    assert dry["staging_dir"] == ""
    assert machine.state()["night"] == 0
    assert machine.nights() == []
    paid = len(server.requests)

    done = machine.json("run")
    assert done["accepted"]
    assert done["status"] == "completed"
    assert (done["night"], done["n_sessions"]) == (1, 20)
    assert [edit["content"] for edit in done["edits"]] == [RULE]
    assert len(server.requests) == paid, "what the dry run paid for is not paid again"
    assert machine.live() == before

    status = machine.json("status")
    assert status["has_managed_proposal"]
    assert status["history_tail"][0]["status"] == "completed"
    code, shown, _ = machine.run("diff")
    assert code == 0
    assert f"+- {RULE}" in shown
    assert machine.live() == before

    adopted = machine.json("adopt")
    assert adopted["updated_paths"] == [str(machine.skill)]
    assert RULE in machine.skill.read_text()
    assert machine.memory.read_bytes() == before[str(machine.memory)][0]
    machine.json("undo")
    assert machine.live() == before


def test_the_same_with_the_mock_backend_and_a_tasks_file(machine: Machine) -> None:
    before = machine.live()
    tasks = write_tasks(machine.base / "tasks.json", persona())
    words = ("--backend", "mock", "--tasks-file", str(tasks))
    assert machine.json("dry-run", *words)["accepted"]
    done = machine.json("run", *words)
    assert done["accepted"]
    assert round(done["baseline"], 3) == 0.333
    assert done["candidate"] == 1.0
    assert done["n_accepted_edits"] == 2
    assert done["tasks_reviewed"] is False
    assert machine.state()["projects"][str(machine.project)].get("last_harvest") is None
    machine.json("adopt")
    assert machine.live() != before
    machine.json("undo")
    assert machine.live() == before


def test_a_second_night_has_nothing_to_do_and_a_new_session_is_all_that_the_third_sees(
    machine: Machine, server: LoopbackServer
) -> None:
    machine.json("run")
    again = machine.json("run")
    assert (again["night"], again["n_sessions"], again["status"]) == (2, 0, "no_tasks")
    assert again["staging_dir"] == ""
    sessions(machine.home, 1, project=str(machine.project), first=10)
    third = machine.json("run")
    assert (third["night"], third["n_sessions"]) == (3, 1)


def test_nothing_secret_leaves_the_machine_or_reaches_a_file(machine: Machine, server: LoopbackServer) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    folder = machine.home / ".claude" / "projects" / "x"
    text = f"Deploy the reports page, the token is {secret} and nothing else"
    write(folder / "s.jsonl", claude_lines([text, "nope"], session="s9", project=str(machine.project)))
    machine.json("run")
    assert not any(secret in prompt_of(request.body) for request in server.requests)
    for path in [*machine.state_dir.rglob("*"), *machine.project.rglob("*")]:
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_the_evidence_of_a_night_goes_with_it(machine: Machine, server: LoopbackServer) -> None:
    folder = Path(machine.json("run")["staging_dir"])
    events = [json.loads(row) for row in (folder / "evidence.jsonl").read_text().splitlines()]
    stages = [(row["stage"], row["event"]) for row in events]
    assert stages[0] == ("cycle", "start")
    assert stages[-1] == ("cycle", "end")
    for wanted in (("harvest", "session"), ("mine", "task_ready"), ("gate", "decision"), ("stage", "staged")):
        assert wanted in stages
    assert [row["seq"] for row in events] == list(range(1, len(events) + 1))
    assert {kind_of(prompt_of(request.body)) for request in server.requests} >= {"mine", "attempt", "judge", "reflect"}
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
