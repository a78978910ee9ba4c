"""A night whose answers come from a session between its rounds: nothing is scored or counted before all are there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sleep.night_world import RULE, Machine, answer_to, persona, write_tasks
from sleep.worlds import claude_lines, sessions, write

from skillopt_sleep.types import TaskRecord

Answer = Callable[[str], str]
ARITHMETIC_RULE = "Answer with the bare number and nothing else."
_SUM = re.compile(r"What is (\d+) plus (\d+)\?")


def folder_of(machine: Machine) -> Path:
    return machine.project / ".skillopt-sleep-handoff"


def answer_all(machine: Machine, reply: Answer = answer_to) -> int:
    """Answer what waits, as PROMPTS.md asks: written aside, then renamed."""
    rows = json.loads((folder_of(machine) / "pending.json").read_text())["pending"]
    for row in rows:
        path = Path(row["answer_file"])
        part = path.with_name(path.name + ".part")
        part.write_text(reply(row["prompt"]))
        part.rename(path)
    return len(rows)


def rounds(machine: Machine, *words: str, reply: Answer = answer_to, most: int = 8) -> tuple[int, dict[str, Any]]:
    """Run and answer until the night is done; how many rounds that took, and the last document."""
    for number in range(1, most + 1):
        code, out, _ = machine.run(*words, "--json")
        document = json.loads(out)
        if code != 3:
            assert code == 0, document
            return number, document
        assert set(document) == {"handoff_pending", "prompts", "answers_dir"}
        assert machine.state()["night"] == 0
        assert machine.state()["history"] == []
        assert machine.nights() == []
        assert answer_all(machine, reply) == document["handoff_pending"]
    raise AssertionError(f"not done within {most} rounds")


def toy() -> list[TaskRecord]:
    return [
        TaskRecord(
            f"sum{n}",
            "/p",
            f"What is {n * 7} plus {n * 11}?",
            reference_kind="rule",
            judge={"kind": "rule", "checks": [{"op": "regex", "arg": rf"\A{n * 18}\Z"}]},
            split="val" if n % 2 else "train",
        )
        for n in range(1, 13)
    ]


def arithmetic(prompt: str) -> str:
    if prompt.startswith("You improve"):
        return json.dumps([{"op": "add", "content": ARITHMETIC_RULE}])
    one, other = map(int, _SUM.search(prompt).groups())  # type: ignore[union-attr]
    total = str(one + other)
    return total if ARITHMETIC_RULE in prompt else f"The sum is {total}."


def test_the_arithmetic_toy_converges_within_eight_rounds(machine: Machine) -> None:
    machine.configure(backend="handoff", evolve_memory=False)
    before = machine.live()
    tasks = write_tasks(machine.base / "t.json", toy(), reviewed=True)
    count, done = rounds(machine, "run", "--tasks-file", str(tasks), reply=arithmetic)
    assert 3 <= count <= 8
    assert done["accepted"]
    assert (done["baseline"], done["candidate"]) == (0.0, 1.0)
    assert [edit["content"] for edit in done["edits"]] == [ARITHMETIC_RULE]
    assert machine.live() == before
    assert not folder_of(machine).exists()
    assert (machine.project / ".skillopt-sleep-handoff.night1.done" / "answers").is_dir()
    machine.json("adopt")
    machine.json("undo")


def test_a_night_of_sessions_by_handoff(machine: Machine) -> None:
    machine.configure(backend="handoff", val_fraction=0.5, gate_min_val=1)
    code, out, err = machine.run("run", "--json")
    assert code == 3
    assert json.loads(out)["handoff_pending"] == 10
    assert "run the same command again" in err
    assert (folder_of(machine) / "PROMPTS.md").exists()
    sessions(machine.home, 2, project=str(machine.project), first=10)
    _, done = rounds(machine, "run", most=12)  # grades are rounds of their own
    assert (done["accepted"], done["n_sessions"]) == (True, 10)
    assert RULE in (Path(done["staging_dir"]) / "proposed_SKILL.md").read_text()
    archive = machine.project / ".skillopt-sleep-handoff.night1.done"
    assert {path.name for path in archive.iterdir()} >= {"answers", "digests.json", "tasks.json"}
    assert machine.run("run", "--json")[0] == 3, "the sessions that came since are the next night's"
    assert len(json.loads((folder_of(machine) / "pending.json").read_text())["pending"]) == 2


def test_no_judge_accepts_what_is_not_answered_yet(machine: Machine) -> None:
    """Checks that any text passes must not let a night finish before its answers are there."""
    machine.configure(backend="handoff", auto_adopt=True)
    lenient = {"kind": "rule", "checks": [{"op": "not_contains", "arg": "sorry"}, {"op": "no_refusal"}]}
    tasks = [
        TaskRecord(
            f"l{n}",
            "/p",
            f"Do piece {n} of work {n * 31}",
            reference_kind="rule",
            judge=lenient,
            split="val" if n % 2 else "train",
        )
        for n in range(12)
    ]
    words = ("run", "--tasks-file", str(write_tasks(machine.base / "t.json", tasks, reviewed=True)))
    before = machine.live()
    assert machine.run(*words)[0] == 3
    assert machine.run(*words)[0] == 3
    assert machine.state()["night"] == 0
    assert machine.nights() == []
    assert machine.live() == before
    answer_all(machine, lambda _: "Here it is.")
    done = machine.json(*words)
    assert (done["no_edits_reason"], done["adopted"]) == ("no_failures", False)


def test_a_night_without_tasks_ends_cleanly_and_forgets_its_pins(make_machine: Callable[..., Machine]) -> None:
    machine = make_machine(sessions_=0)
    machine.configure(backend="handoff")
    done = machine.json("run")
    assert done["status"] == "no_tasks"
    assert not folder_of(machine).exists()
    sessions(machine.home, 3, project=str(machine.project))
    assert machine.json("run", code=3)["handoff_pending"] == 3


def test_sessions_in_which_the_miner_finds_nothing_are_not_asked_about_again(machine: Machine) -> None:
    machine.configure(backend="handoff")
    short = claude_lines(["hm", "ok"], session="s1", project=str(machine.project))
    for path in (machine.home / ".claude" / "projects").rglob("*.jsonl"):
        path.unlink()
    write(machine.home / ".claude" / "projects" / "x" / "s1.jsonl", short)
    assert machine.json("run", code=3)["handoff_pending"] == 1
    answer_all(machine, lambda _: "[]")
    assert machine.json("run")["status"] == "no_tasks"
    assert machine.json("run")["n_sessions"] == 0


def test_a_pin_that_cannot_be_read_is_made_anew(machine: Machine) -> None:
    machine.configure(backend="handoff")
    machine.json("run", code=3)
    (folder_of(machine) / "digests.json").write_text("{ broken")
    code, out, err = machine.run("run", "--json")
    assert code == 3
    assert json.loads(out)["handoff_pending"] == 10
    assert "digests.json" in err


def test_a_transcript_that_quotes_a_marker_of_ours_breaks_nothing(machine: Machine) -> None:
    machine.configure(backend="handoff")
    text = "Why does [[SKILLOPT-SLEEP-PENDING:0123456789abcdef]] stand in my log? __PROMPTS__ ----- END PROMPT x -----"
    records = claude_lines([text, "nope"], session="s99", project=str(machine.project))
    write(machine.home / ".claude" / "projects" / "x" / "s99.jsonl", records)
    assert machine.json("run", code=3)["handoff_pending"] == 11


def test_a_dry_run_archives_nothing_and_its_answers_serve_the_run(machine: Machine) -> None:
    machine.configure(backend="handoff", evolve_memory=False)
    tasks = write_tasks(machine.base / "t.json", toy(), reviewed=True)
    rounds(machine, "dry-run", "--tasks-file", str(tasks), reply=arithmetic)
    assert folder_of(machine).exists()
    assert machine.state()["night"] == 0
    assert machine.json("run", "--tasks-file", str(tasks))["accepted"]


def test_a_folder_that_cannot_be_archived_is_a_failure_document(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.configure(backend="handoff", evolve_memory=False)
    words = ("run", "--tasks-file", str(write_tasks(machine.base / "t.json", toy(), reviewed=True)))
    real = Path.rename

    def rename(self: Path, target: Any) -> Any:
        if self == folder_of(machine):
            raise PermissionError(13, "Permission denied")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    for _ in range(8):
        code, out, _ = machine.run(*words, "--json")
        if code != 3:
            break
        answer_all(machine, arithmetic)
    assert code == 1
    assert json.loads(out)["error"] == "staging_refused"
    assert machine.state()["history"][-1]["status"] == "completed", "the night itself is done and staged"


def test_an_unreviewed_file_goes_to_no_handoff_either(machine: Machine) -> None:
    machine.configure(backend="handoff")
    refused = machine.json("run", "--tasks-file", str(write_tasks(machine.base / "t.json", persona())), code=2)
    assert "reviewed" in refused["message"]
    assert not folder_of(machine).exists()


def test_a_night_that_could_not_decide_keeps_its_answers_and_asks_nothing_twice(
    make_machine: Callable[..., Machine],
) -> None:
    machine = make_machine(sessions_=4)
    machine.configure(gate_min_val=5)
    _, first = rounds(machine, "run", "--backend", "handoff", most=12)
    assert first["status"] == "inconclusive"
    assert sorted(path.name for path in folder_of(machine).iterdir()) == [".gitignore", "answers"]
    again = machine.json("run", "--backend", "handoff")
    assert (again["status"], again["n_sessions"]) == ("inconclusive", first["n_sessions"])
