"""Whole nights whose tasks are done in fresh checkouts: a real repository, a real pen, a program that edits files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sleep.night.coding_world import CHECK, REQUESTS, RULE, Workplace, git, lacking
from sleep.night_world import Machine, write_tasks

from skillopt_sleep.state import SleepState
from skillopt_sleep.types import TaskRecord

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())
Make = Callable[..., Workplace]


@pytest.fixture
def make_place(make_machine: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch) -> Make:
    def make(**options: Any) -> Workplace:
        made = Workplace(make_machine(sessions_=0), **options)
        monkeypatch.setenv("SKILLOPT_SLEEP_CLAUDE_PATH", str(made.program))
        made.configure()
        return made

    return make


@pytest.fixture
def place(make_place: Make) -> Workplace:
    return make_place()


def coding_task(number: int, **more: Any) -> TaskRecord:
    return TaskRecord(
        **{
            "id": f"bump_{number}",
            "project": "",
            "intent": f"Bump the version of part number {number}",
            "reference_kind": "rule",
            "judge": {"kind": "rule", "checks": [{"op": "diff_contains", "arg": "- changed"}]},
            "split": "val" if number % 2 else "train",
            "workspace": {"commit": "HEAD", "folder": ""},
            **more,
        }
    )


def test_a_rule_that_makes_the_work_right_is_accepted_by_its_outcome(place: Workplace) -> None:
    before = place.live()
    _, out, told = place.machine.run("run", "--progress", "--json")
    done = json.loads(out)
    assert (done["status"], done["accepted"]) == ("completed", True), done
    works = [row for row in told.splitlines() if "in a checkout, " in row]
    assert len(works) == len(place.calls("work"))
    assert any(row.endswith("s: 2 files changed, 2 of 2 conditions hold") for row in works), works
    assert [edit["content"] for edit in done["edits"]] == [RULE]
    assert done["baseline"] < done["candidate"] == 1.0
    assert (done["usage"]["tasks_in_checkouts"], done["usage"]["tasks_in_text"]) == (4, 0)
    assert "Tasks done in a checkout: 4; answered in text: 0." in done["notes"]
    assert place.live() == before

    report = (Path(done["staging_dir"]) / "report.md").read_text(encoding="utf-8")
    assert "(replay: worktree)" in report
    assert "4 in a checkout, 0 answered in text" in report
    assert "app.py -> CHANGELOG.md, app.py" in report
    kinds = {line.split()[1] for line in place.calls("work")}
    assert kinds == {"plain", "ruled"}
    seen = {tuple(line.split()[2:]) for line in place.calls("work")}
    assert seen == {("0", "1", "0")}, "no live project, no transcript, one commit, no remote"
    assert "no line in CHANGELOG.md" in (Path(done["staging_dir"]) / "evidence.jsonl").read_text(encoding="utf-8")
    assert not list(place.machine.state_dir.rglob("CHANGELOG.md")), "no checkout is left behind"


def test_a_killed_night_runs_neither_agent_nor_commands_again(make_place: Make) -> None:
    place = make_place(requests=REQUESTS[:3])
    place.install(kills=True)
    with place.machine.start("run", SKILLOPT_SLEEP_CLAUDE_PATH=str(place.program)) as night:
        night.communicate(timeout=120)
    assert night.returncode == -9
    assert [line.split()[1] for line in place.calls("work")] == ["plain"] * 3
    (place.project / "check.sh").unlink()  # what would stop a night that tried its commands anew
    place.commit("second")
    before = place.live()
    done = place.machine.json("run")
    assert (done["night"], done["accepted"]) == (1, True), done
    assert "went on" in " ".join(done["notes"])
    assert {line.split()[1] for line in place.calls("work")[3:]} == {"ruled"}
    assert len(place.calls("mine")) == 3
    assert place.live() == before


def test_a_command_that_cannot_start_is_refused_before_any_call(place: Workplace) -> None:
    place.configure(replay_checks=["./check.sh", "no-such-program --all"])
    refused = place.machine.json("run", code=2)
    assert "no-such-program" in refused["message"]
    assert "replay_" in refused["message"]
    assert place.calls() == []
    assert place.machine.json("status")["interrupted_night"] is None
    texts = [coding_task(number, workspace={}, judge={}, reference_kind="rubric", split="") for number in range(2)]
    path = write_tasks(place.machine.base / "tasks.json", texts, reviewed=True)
    refused = place.machine.json("run", "--tasks-file", str(path), code=2)
    assert "no-such-program" in refused["message"], "coding tasks of earlier nights may help"
    place.check(CHECK.replace("grep", "exit 3; grep"))
    place.commit("a test that fails")
    place.configure()
    assert place.machine.json("dry-run", "--max-calls", "1")["status"] == "budget_spent", "a failing test is fine"


def test_nothing_that_a_session_or_a_model_says_is_run(make_place: Make) -> None:
    place = make_place(requests=("Bump the version", "Rename the parser"), evil=True)
    done = place.machine.json("run", "--max-calls", "40")
    assert done["n_tasks"] == 2
    assert done["usage"]["tasks_in_checkouts"] == 2, "a branch that is none is passed over"
    rows = next(iter(place.machine.state()["projects"].values()))["archive"]
    commands = [check["arg"] for row in rows for check in row["judge"]["checks"] if check["op"] == "command"]
    assert commands == ["./check.sh"] * 2
    assert not place.marker.exists()


def test_a_plan_runs_no_agent_and_no_command_and_says_what_an_agent_reads(place: Workplace) -> None:
    place.configure(llm_mine=False, replay_checks=["no-such-program"])
    before = place.live()
    plan = place.machine.json("run", "--plan")
    assert place.calls() == []
    [note] = [note for note in plan["notes"] if "checkout" in note]
    assert str(place.project) in note
    assert "claude" in note
    shown = [call for provider in plan["providers"] for call in provider["calls"] if call["kind"] == "attempt"]
    assert shown
    assert all("fresh checkout" in call["note"] for call in shown)
    assert plan["calls_at_most_by_kind"]["attempt"] > 0
    code, text, _ = place.machine.run("run", "--plan")
    assert code == 0
    assert f"in a fresh checkout of {place.project} at " in text
    assert place.live() == before


@pytest.mark.parametrize("setting", ["backend", "git", "none"])
def test_what_a_night_in_checkouts_lacks_is_said_before_anything_is_spent(place: Workplace, setting: str) -> None:
    if setting == "backend":
        place.configure(backend="azure_openai", model="m", azure_endpoint="http://localhost:1/v1")
        words = "claude or codex"
    elif setting == "git":
        (place.project / ".git").rename(place.machine.base / "git")
        words = "in no git repository"
    else:
        place.configure(replay_checks=[" "])
        words = "replay_checks: command needs a text"
    refused = place.machine.json("run", code=2)
    assert words in refused["message"]
    assert place.calls() == []
    assert "replay" in place.machine.json("status")["last_failure"]["message"]


def test_given_tasks_name_their_commit_and_their_own_conditions(place: Workplace) -> None:
    place.configure(replay_checks=[])
    tasks = [coding_task(number) for number in range(4)]
    path = write_tasks(place.machine.base / "tasks.json", tasks, reviewed=True)
    refused = place.machine.json("run", "--tasks-file", str(path), "--replay-mode", "mock", code=2)
    assert "--replay-mode worktree" in refused["message"]
    write_tasks(path, [*tasks, coding_task(9, workspace={"commit": "v9"})], reviewed=True)
    assert "bump_9" in place.machine.json("run", "--tasks-file", str(path), code=2)["message"]
    own = {"checks": [{"op": "command", "arg": "no-such-program"}]}
    write_tasks(path, [*tasks, coding_task(9, judge=own)], reviewed=True)
    refused = place.machine.json("run", "--tasks-file", str(path), code=2)
    assert refused["message"].startswith("Task bump_9: The command 'no-such-program' cannot be started")
    write_tasks(path, [*tasks, coding_task(9, workspace={"commit": "HEAD", "folder": "gone"})], reviewed=True)
    assert "has no folder 'gone'" in place.machine.json("run", "--tasks-file", str(path), code=2)["message"]
    assert place.calls() == []
    write_tasks(path, tasks, reviewed=True)
    done = place.machine.json("dry-run", "--tasks-file", str(path))
    assert done["accepted"], done
    assert (done["baseline"], done["candidate"]) == (0.0, 1.0)


def test_harvest_shows_the_tasks_that_a_night_does_in_checkouts(place: Workplace) -> None:
    place.session(9, "Explain how the cache works, please")
    out = place.machine.base / "tasks.json"
    found = place.machine.json("harvest", "--output", str(out))
    head = git(place.project, "rev-parse", "HEAD")
    assert {task["workspace"]["commit"] for task in found["tasks"]} == {head}
    assert json.loads(out.read_text(encoding="utf-8"))["tasks"][0]["judge"]["checks"][1]["arg"] == "./check.sh"
    plain = place.machine.json("harvest", "--replay-mode", "mock")
    assert all(task["workspace"] == {} for task in plain["tasks"])


def test_it_is_said_when_no_task_can_be_done_in_a_checkout(make_place: Make) -> None:
    place = make_place(requests=())
    for number, request in enumerate(REQUESTS):
        place.session(number, request, touched=False)
    assert "changed files of" in place.machine.run("harvest")[1]
    plan = place.machine.json("run", "--plan")
    assert "None of tonight's tasks is done in a checkout" in " ".join(plan["notes"])
    assert "0 of 4" not in " ".join(plan["notes"])
    done = place.machine.json("run")
    assert (done["usage"]["tasks_in_checkouts"], done["usage"]["tasks_in_text"]) == (0, 4)
    assert sum("None of tonight's tasks" in note for note in done["notes"]) == 1


def test_a_night_that_tries_nothing_did_none_of_its_tasks(place: Workplace) -> None:
    place.configure(gate_min_val=9)
    done = place.machine.json("run")
    assert (done["status"], done["n_tasks"]) == ("inconclusive", 4)
    assert (done["usage"]["tasks_in_checkouts"], done["usage"]["tasks_in_text"]) == (0, 0)
    text = (place.machine.nights()[-1] / "report.md").read_text(encoding="utf-8")
    assert "- Tasks (replayed): 4 (0), 0 in a checkout, 0 answered in text\n" in text


def test_commands_run_in_the_projects_folder_also_for_a_session_of_a_subfolder(make_place: Make) -> None:
    place = make_place(requests=())
    whole, place.project = place.project, place.project / "parts" / "one"
    place.project.mkdir(parents=True)
    (place.project / "x.py").write_text("x = 1\n", encoding="utf-8")
    for number, request in enumerate(REQUESTS):
        place.session(number, request)
    place.project = whole
    place.commit("a part")
    done = place.machine.json("run")
    assert done["usage"]["tasks_in_checkouts"] == 4
    assert (done["status"], done["n_errors"]) == ("completed", 0), done["notes"]


def test_tasks_whose_commit_is_gone_are_recalled_in_text_with_a_note(place: Workplace) -> None:
    place.configure(recall_k=2, holdout_recall=False, llm_mine=False, gate_mode="off")
    for number in range(4):
        place.session(number, "Explain how the cache works", touched=False)
    state = SleepState.load(place.machine.state_dir / "state.json")
    old = coding_task(7, project=str(place.project), intent="Explain how the index works", split="train")
    old.workspace["commit"] = "0" * 40
    state.add_to_archive([old])
    state.save()
    done = place.machine.json("dry-run")
    assert done["usage"]["tasks_in_checkouts"] == 0
    assert any("the commit to start from is not in this repository" in note for note in done["notes"]), done["notes"]
    assert place.calls("work") == []
    assert done["n_errors"] == 0
