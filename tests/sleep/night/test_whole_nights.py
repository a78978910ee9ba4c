"""What must hold of every night, whatever it learns: what it shows, what it writes, and who can read that."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sleep.night_world import KEY, RULE, Machine, answer, kind_of, persona, prompt_of, write_tasks
from sleep.worlds import claude_lines, write

from skillopt.testing import LoopbackServer
from skillopt.testing.faults import status
from skillopt_sleep.evidence import read_events

ROOT = Path(__file__).parents[3]
SPLITS = {"val_fraction": 0.5, "gate_min_val": 1}  # whatever the hash of a temporary path makes of them


@contextmanager
def serving(
    machine: Machine, reply: Callable[[Mapping[str, Any]], str] = answer, *, faults: Any = (), **settings: Any
) -> Iterator[LoopbackServer]:
    with LoopbackServer(reply, faults=list(faults)) as server:
        machine.configure(
            **{"backend": "azure_openai", "model": "m", "azure_endpoint": server.url, **SPLITS, **settings}
        )
        yield server


def files_of(machine: Machine) -> list[Path]:
    """Everything that the program keeps for itself: state, staging, handoff."""
    roots = [machine.state_dir, machine.project / ".skillopt-sleep", machine.project / ".skillopt-sleep-handoff"]
    return [path for root in roots if root.exists() for path in (root, *root.rglob("*"))]


def holding(machine: Machine, words: str) -> list[str]:
    return [str(path) for path in files_of(machine) if path.is_file() and words.encode() in path.read_bytes()]


def test_harvest_shows_what_the_night_works_with(machine: Machine) -> None:
    with serving(machine, llm_mine=False, val_fraction=0.01, test_fraction=0.98):
        shown = machine.json("harvest")["tasks"]
        folder = Path(machine.json("run")["staging_dir"])
    ready = [event for event in read_events(folder / "evidence.jsonl") if event["event"] == "task_ready"]
    assert [(row["task_id"], row["split"]) for row in ready] == [(row["id"], row["split"]) for row in shown]
    assert "test" in {row["split"] for row in shown}


def test_a_secret_in_a_proposal_is_in_no_output_and_in_no_file(machine: Machine) -> None:
    secret = "ghp_" + "q7W8e9R0" * 5

    def leaking(body: Mapping[str, Any]) -> str:
        kind = kind_of(prompt_of(body))
        if kind == "reflect":
            return json.dumps([{"op": "add", "content": f"Use the token {secret}.", "rationale": secret},
                               {"op": "add", "content": RULE, "rationale": f"as in {secret}"}])  # fmt: skip
        if kind == "judge":
            return json.dumps({**json.loads(answer(body)), "reason": f"it says {secret}"})
        return answer(body)

    with serving(machine, leaking):
        shown = [text for words in (["run", "--json"], ["diff"], ["status"], ["status", "--json"])
                 for text in machine.run(*words)[1:]]  # fmt: skip
    assert RULE in shown[0]
    assert not [text for text in shown if secret in text]
    assert holding(machine, secret) == []
    machine.json("adopt")
    assert secret not in machine.skill.read_text()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
@pytest.mark.parametrize("backend", ["azure_openai", "handoff"])
def test_every_file_of_a_night_is_private(machine: Machine, backend: str) -> None:
    before = os.umask(0)
    try:
        with serving(machine, backend=backend):
            machine.json("dry-run", code=3 if backend == "handoff" else 0)
            machine.json("run", code=3 if backend == "handoff" else 0)
            if backend != "handoff":
                machine.json("adopt")
                machine.json("undo")
        machine.json("harvest", "--output", str(machine.state_dir / "tasks.json"))
    finally:
        os.umask(before)
    (machine.state_dir / "config.json").chmod(0o600)  # the test wrote it
    modes = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in files_of(machine)}
    assert len(modes) > 8
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077 and "/backup/" not in path} == {}


def test_preferences_reach_the_reflection_and_the_evidence(machine: Machine) -> None:
    wish = "no emoji, short"
    with serving(machine) as server:
        folder = Path(machine.json("run", "--preferences", wish)["staging_dir"])
        asked = [text for request in server.requests if kind_of(text := prompt_of(request.body)) == "reflect"]
    assert asked
    assert all(wish in text for text in asked)
    began = read_events(folder / "evidence.jsonl")[0]
    assert (began["event"], began["config"]["preferences"]) == ("start", wish)


def test_no_file_of_a_night_holds_a_key(machine: Machine) -> None:
    with serving(machine) as server:
        machine.json("dry-run")
        machine.json("run", "--auto-adopt")
        assert all(request.headers.get("Authorization") == f"Bearer {KEY}" for request in server.requests)
    assert holding(machine, KEY) == []
    assert KEY not in machine.skill.read_text()


def test_an_error_that_repeats_the_key_shows_it_nowhere(machine: Machine) -> None:
    faults = [status(401, body=json.dumps({"error": {"message": f"bad header Authorization: Bearer {KEY}"}}))] * 9
    with serving(machine, faults=faults):
        shown = [text for words in (["run"], ["run", "--json"], ["status"], ["status", "--json"])
                 for text in machine.run(*words)[1:]]  # fmt: skip
    assert any("401" in text for text in shown)
    assert not [text for text in shown if KEY in text]
    assert holding(machine, KEY) == []


def test_tasks_of_other_projects_change_this_project_s_memory_in_no_way(machine: Machine) -> None:
    """Also where the memory is all that may change."""
    with serving(machine, evolve_skill=False):
        alone = machine.json("dry-run")
    assert {edit["target"] for edit in alone["edits"]} == {"memory"}
    other = claude_lines(["Summarise the quarterly numbers of the bakery", "nope"], session="o1", project="/w/bakery")
    write(machine.home / ".claude" / "projects" / "-w-bakery" / "o1.jsonl", other)
    with serving(machine, evolve_skill=False, auto_adopt=True):
        done = machine.json("run", "--scope", "all")
    assert (done["n_sessions"], done["edits"], done["adopted"]) == (11, [], False)
    assert RULE not in machine.memory.read_text()


def test_reserved_tasks_are_scored_once_and_only_where_there_are_some(machine: Machine) -> None:
    machine.configure(backend="mock")
    counts = []
    for reserved in (0, 2):
        tasks = persona()
        for task in tasks[:reserved]:
            task.split = "test"
        done = machine.json("run", "--tasks-file", str(write_tasks(machine.base / "t.json", tasks)))
        events = read_events(Path(done["staging_dir"]) / "evidence.jsonl")
        counts.append([event["n_test"] for event in events if event["event"] == "held_out_score"])
    assert counts == [[], [2]]


def test_text_survives_a_machine_that_is_not_set_to_utf_8(machine: Machine) -> None:
    """Every command with a locale that knows ASCII only, and with a warning for each file without an encoding."""
    name = "日本語の規則: é ü"
    machine.memory.write_text(f"# {name}\n", encoding="utf-8")
    records = claude_lines([f"{name} について書いてください", "nope"], session="s9", project=str(machine.project))
    write(machine.home / ".claude" / "projects" / "x" / "s9.jsonl", records)
    tasks = persona()
    for task in tasks:
        task.intent += f" {name}"
    path = machine.base / "t.json"
    path.write_text(json.dumps([task.to_dict() for task in tasks], ensure_ascii=False), encoding="utf-8")
    machine.configure(backend="mock")
    flags = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-X", "utf8=0"]
    given = ["--tasks-file", str(path), "--preferences", "kürzer"]
    for words in (["harvest"], ["run", "--plan", *given], ["dry-run", *given], ["run", *given], ["status"], ["diff"],
                  ["adopt"], ["undo"]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, *flags, "-m", "skillopt_sleep", words[0], "--project", str(machine.project), *words[1:]],
            env={
                "PATH": os.environ["PATH"],
                **machine.environment,
                "LC_ALL": "C",
                "PYTHONCOERCECLOCALE": "0",
            },
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr.decode("utf-8", "replace"))
        assert b"EncodingWarning" not in done.stderr
    assert machine.memory.read_text(encoding="utf-8") == f"# {name}\n"
    (folder,) = machine.nights()
    assert name in (folder / "evidence.jsonl").read_text(encoding="utf-8")
