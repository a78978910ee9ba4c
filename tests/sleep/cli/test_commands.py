"""The command line: every exit code, one JSON document each, and nothing that a terminal would act on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sleep.night_world import RULE, Machine, answer, kind_of, persona, prompt_of, write_tasks
from sleep.worlds import claude_lines, sessions, write

from skillopt.testing import LoopbackServer
from skillopt_sleep.cli import main

RUN_KEYS = [
    *("night", "accepted", "gate_action", "no_edits_reason", "baseline", "candidate", "n_tasks", "n_sessions"),
    *("n_accepted_edits", "n_rejected_edits", "edits", "rejected_edits", "gate_no_regression", "gate_trials"),
    *("skill_groups", "notes", "staging_dir", "staged_skills", "adopted"),
]
EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\u202egnirts\u200b\x9b2J line\rover"


def mock_night(machine: Machine, *words: str, **meta: Any) -> tuple[str, ...]:
    path = write_tasks(machine.base / "t.json", persona(), **meta)
    return ("run", "--backend", "mock", "--tasks-file", str(path), *words)


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], ["fly"], ["run", "--no-such-flag"], ["run", "--lookback-hours", "soon"]])
def test_wrong_arguments_end_with_2_and_say_so_once(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize("words", [["fly"], ["run", "--no-such-flag"], ["run", "--backend", "cluade"]])
def test_wrong_arguments_are_one_document_in_json_mode(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert document["error"] == "usage"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-tasks", "0"), "argument --max-tasks: expected a whole number of at least 1, not '0'. "),
        (("--edit-budget", "0"), "argument --edit-budget: expected a whole number of at least 1, not '0'. "),
        (("--max-tasks", "ten"), "argument --max-tasks: expected a whole number of at least 1, not 'ten'. "),
        (("--max-sessions", "-1"), "argument --max-sessions: expected a whole number of at least 0, not '-1'. "),
        (("--replay-mode", "worktre"), "argument --replay-mode: expected 'mock' or 'worktree', not 'worktre' (did "),
        (("--scope", "every"), "argument --scope: expected 'all' or 'invoked', not 'every'. "),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(machine: Machine, words: tuple[str, ...], said: str) -> None:
    assert machine.json("run", *words, code=2)["message"].startswith(said)


def test_no_message_lists_an_empty_choice(machine: Machine) -> None:
    message = machine.json("run", "--backend", "zzz", code=2)["message"]
    assert message.endswith(", or empty.") or "''" not in message
    machine.configure(backend="mock", optimizer_backend="zzz")
    message = machine.json("run", code=2)["message"]
    assert "''" not in message
    assert message.endswith(", or empty.")


def test_no_sessions_asked_for_means_as_many_as_the_tasks_need(machine: Machine) -> None:
    machine.configure(backend="mock", max_sessions_per_night=2)
    assert machine.json("run", "--max-sessions", "0")["n_sessions"] == 10


def test_a_misspelt_backend_is_no_mock(machine: Machine) -> None:
    assert "did you mean 'claude'" in machine.json("run", "--backend", "cluade", code=2)["message"]


def test_a_backend_has_to_be_chosen(machine: Machine) -> None:
    assert "No backend is chosen" in machine.json("run", code=2)["message"]


def test_help_is_quick_and_lists_every_action() -> None:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "skillopt_sleep", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"]},
    )
    assert time.perf_counter() - began < 30
    for action in ("run", "dry-run", "status", "adopt", "harvest", "schedule", "unschedule", "undo", "diff", "recover"):
        assert action in done.stdout
    check = "import sys; sys.argv=['x','--help']\ntry:\n from skillopt_sleep.cli import main; main()\nfinally:\n "
    loaded = subprocess.run(
        [sys.executable, "-c", check + "assert not {'skillopt_sleep.night','yaml','sqlite3'} & set(sys.modules)"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"]},
    )
    assert loaded.returncode == 0, loaded.stderr


# --- run -------------------------------------------------------------------------------------------------------------


def test_a_night_is_one_document_with_its_keys_in_order(machine: Machine) -> None:
    code, out, err = machine.run(*mock_night(machine), "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert list(document)[: len(RUN_KEYS)] == RUN_KEYS
    assert list(document)[-2:] == ["tasks_file", "tasks_reviewed"]
    assert out.isascii()


def test_a_night_in_words(machine: Machine) -> None:
    code, out, _ = machine.run(*mock_night(machine), "--progress")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Night 1: 0 sessions, 12 tasks, completed"
    assert lines[1] == "held-out 0.333 -> 1.000 => accept_new_best (accepted=yes)"
    assert lines[2].startswith("+ [skill/add] ")
    assert any(line.startswith("staged: ") for line in lines)
    assert "skillopt-sleep adopt" in lines[-1]


def test_progress_goes_to_stderr_with_a_mark_on_each_line(machine: Machine) -> None:
    _, _, err = machine.run(*mock_night(machine), "--progress", "--json")
    assert err
    assert all(line.startswith("[sleep] ") for line in err.splitlines())


@pytest.mark.parametrize(
    "roles",
    [
        {"backend": "azure_openai"},
        {"backend": "mock", "optimizer_backend": "azure_openai"},
        {"backend": "mock", "target_backend": "azure_openai"},
        {"backend": "mock", "judge_backend": "azure_openai"},
    ],
)
@pytest.mark.parametrize("reviewed", [False, "true", 1, None])
def test_an_unreviewed_file_goes_to_no_real_backend_whichever_role_has_it(
    machine: Machine, roles: dict[str, str], reviewed: Any
) -> None:
    with LoopbackServer(answer) as server:
        machine.configure(azure_endpoint=server.url, **roles)
        path = write_tasks(machine.base / "t.json", persona(), reviewed=reviewed)
        for action in ("run", "dry-run"):
            assert "reviewed" in machine.json(action, "--tasks-file", str(path), code=2)["message"]
        assert server.requests == []


def test_a_bare_list_of_tasks_is_never_reviewed(machine: Machine, server: LoopbackServer) -> None:
    path = machine.base / "bare.json"
    path.write_text(json.dumps([task.to_dict() for task in persona()]))
    assert machine.json("run", "--tasks-file", str(path), code=2)["error"] == "usage"
    assert server.requests == []


@pytest.mark.parametrize("text", ["{", "[1]", '{"tasks": 3}', '{"tasks": [{"id": "x"}]}', None])
def test_a_broken_tasks_file_is_named_without_a_traceback(machine: Machine, text: str | None) -> None:
    path = machine.base / "broken.json"
    if text is not None:
        path.write_text(text)
    document = machine.json("run", "--backend", "mock", "--tasks-file", str(path), code=2)
    assert "broken.json" in document["message"]


def test_settings_are_checked_before_anything_else(machine: Machine) -> None:
    machine.configure(backend="mock", gate_metric="vibes")
    assert "gate_metric" in machine.json("run", code=2)["message"]
    machine.configure(backend="mock", val_fraction=0.7, test_fraction=0.4)
    assert "val_fraction" in machine.json("run", code=2)["message"]
    machine.configure(backend="mock", gate_metrik="hard")
    assert "did you mean 'gate_metric'" in machine.json("run", code=2)["message"]


def test_a_fault_of_the_program_is_a_document_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom \x1b[31m")

    monkeypatch.setattr("skillopt_sleep.cli_run.run_round", broken)
    document = machine.json(*mock_night(machine), code=1)
    assert document["error"] == "internal"
    code, out, err = machine.run(*mock_night(machine))
    assert (code, out) == (1, "")
    assert "RuntimeError: boom" in err
    assert "\x1b" not in err
    assert "Traceback" not in err


def test_a_damaged_state_is_set_aside_and_said(machine: Machine) -> None:
    machine.json(*mock_night(machine))
    (machine.state_dir / "state.json").write_text("{ not json")
    document = machine.json(*mock_night(machine), code=1)
    assert document["error"] == "state_broken"
    assert list(machine.state_dir.glob("state.json.corrupt-*"))


def test_a_folder_that_cannot_be_written_stops_the_night_before_it_spends(
    machine: Machine, server: LoopbackServer
) -> None:
    (machine.project / ".skillopt-sleep").write_text("a file where the folder belongs")
    assert machine.json("run", code=1)["error"] == "staging_refused"
    assert server.requests == []


# --- two nights ------------------------------------------------------------------------------------------------------


def test_of_two_nights_one_works_and_the_other_says_so(machine: Machine) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def slow(body: Mapping[str, Any]) -> str:
        arrived.set()
        go_on.wait(60)
        return answer(body)

    with LoopbackServer(slow) as server:
        machine.configure(
            backend="azure_openai", model="m", azure_endpoint=server.url, val_fraction=0.5, gate_min_val=1
        )
        first = machine.start("run", "--json")
        try:
            assert arrived.wait(60)
            document = machine.json("run", code=2)
            assert document["error"] == "night_busy"
            assert str(first.pid) in document["message"]
            assert machine.json("status")["running"]["pid"] == first.pid
        finally:
            go_on.set()
        out, err = first.communicate(timeout=60)
        assert first.returncode == 0, err
        assert json.loads(out)["accepted"]
        assert machine.json("status")["running"] is None


def test_a_night_that_is_really_killed_goes_on_with_the_same_command(machine: Machine) -> None:
    seen, killed = threading.Event(), threading.Event()
    count = 0

    def counting(body: Mapping[str, Any]) -> str:
        nonlocal count
        count += 1
        if count >= 17:
            seen.set()
            killed.wait(60)
        return answer(body)

    with LoopbackServer(counting) as server:
        machine.configure(
            backend="azure_openai", model="m", azure_endpoint=server.url, val_fraction=0.5, gate_min_val=1
        )
        first = machine.start("run")
        assert seen.wait(60)
        first.kill()
        first.communicate()
        killed.set()
        assert machine.json("status")["interrupted_night"] == 1
        assert machine.json("status")["running"] is None
        done = machine.json("run")
        assert (done["night"], done["accepted"]) == (1, True)
        prompts = [prompt_of(request.body) for request in server.requests]
        mined = [prompt for prompt in prompts if kind_of(prompt) == "mine"]
        assert len(mined) - len(set(mined)) <= 1


# --- what would leave the machine ------------------------------------------------------------------------------------


def test_a_plan_shows_what_would_be_sent_and_sends_nothing(machine: Machine, server: LoopbackServer) -> None:
    secret = "ghp_" + "x9Y8z7W6" * 5
    records = claude_lines([f"Deploy with {secret} please now", "nope"], session="s9", project=str(machine.project))
    write(machine.home / ".claude" / "projects" / "x" / "s9.jsonl", records)
    before = machine.state()
    plan = machine.json("run", "--plan")
    assert server.requests == []
    (provider,) = plan["providers"]
    prompts = [call["prompt"] for call in provider["calls"]]
    assert [kind_of(prompt) for prompt in prompts].count("mine") == 11
    assert plan["calls_at_most"] >= provider["n_calls"]
    assert secret not in json.dumps(plan)
    assert machine.state() == before
    assert machine.nights() == []
    machine.json("run")
    sent = {prompt_of(request.body) for request in server.requests}
    assert {prompt for prompt in prompts if kind_of(prompt) == "mine"} <= sent, "exactly what was shown was sent"
    assert len(server.requests) <= plan["calls_at_most"]


def test_the_plan_of_given_tasks_is_exact_and_needs_no_key(
    machine: Machine, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    path = write_tasks(machine.base / "t.json", persona())
    plan = machine.json("run", "--plan", "--tasks-file", str(path))
    assert plan["providers"][0]["n_calls"] == 12
    assert set(plan["calls_at_most_by_kind"]) <= {"attempt", "reflect", "slow_update"}
    assert server.requests == []
    code, out, _ = machine.run("run", "--plan", "--tasks-file", str(path))
    assert code == 0
    assert "Calls at most" in out
    assert "You are a person's assistant" in out


def test_harvest_preview_shows_only_what_mining_would_send(machine: Machine, server: LoopbackServer) -> None:
    shown = machine.json("harvest", "--preview")
    assert {call["kind"] for call in shown["providers"][0]["calls"]} == {"mine"}
    assert server.requests == []
    assert machine.json("run")["n_sessions"] == 10


# --- harvest ---------------------------------------------------------------------------------------------------------


def test_harvest_shows_what_run_would_see(machine: Machine, server: LoopbackServer) -> None:
    assert machine.json("harvest")["n_sessions"] == 10
    assert machine.json("harvest")["n_sessions"] == 10, "looking moves no cursor"
    machine.json("run")
    assert machine.json("harvest")["n_sessions"] == 0
    assert machine.json("harvest", "--all")["n_sessions"] == 10
    sessions(machine.home, 1, project=str(machine.project), first=10)
    shown = machine.json("harvest")
    assert (shown["n_sessions"], shown["reviewed"], shown["format"]) == (1, False, "skillopt_sleep.tasks.v1")


def test_a_harvested_file_can_be_reviewed_and_run(machine: Machine, server: LoopbackServer) -> None:
    path = machine.base / "out" / "tasks.json"
    written = machine.json("harvest", "--output", str(path))
    assert written["output"] == str(path)
    assert path.stat().st_mode & 0o077 == 0
    payload = json.loads(path.read_text())
    assert payload["reviewed"] is False
    machine.json("run", "--tasks-file", str(path), code=2)
    path.write_text(json.dumps({**payload, "reviewed": True}))
    done = machine.json("run", "--tasks-file", str(path))
    assert (done["tasks_reviewed"], done["n_tasks"]) == (True, 10)
    assert machine.json("harvest")["n_sessions"] == 10, "a night of given tasks passes over no session"


def test_harvest_in_words(machine: Machine) -> None:
    code, out, _ = machine.run("harvest")
    assert code == 0
    assert out.splitlines()[0] == "10 sessions, 10 tasks"
    assert all(line.startswith("[") for line in out.splitlines()[1:])


# --- status, adopt, undo ---------------------------------------------------------------------------------------------


def test_status_of_a_new_project(machine: Machine) -> None:
    document = machine.json("status")
    assert (document["night"], document["history_tail"], document["latest_staging"]) == (0, [], None)
    assert document["has_managed_proposal"] is False
    code, out, _ = machine.run("status")
    assert code == 0
    assert "nothing is staged" in out


def test_a_manifest_that_cannot_be_read_is_1_in_status(machine: Machine) -> None:
    folder = Path(machine.json(*mock_night(machine))["staging_dir"])
    (folder / "manifest.json").write_text("{")
    document = machine.json("status", code=1)
    assert "manifest.json" in document["staging_error"]
    assert machine.json("adopt", code=1)["error"] == "invalid_staging"


def test_failures_of_adopt_have_their_codes(machine: Machine) -> None:
    nothing = machine.json("adopt", code=1)
    assert nothing["error"] == "no_staging"
    assert set(nothing) == {"ok", "error", "message", "staging_dir"}
    folder = machine.json(*mock_night(machine))["staging_dir"]
    assert machine.json("adopt", "--skill", "a", "--legacy", code=2)["error"] == "invalid_selection"
    assert machine.json("adopt", "--skill", " ", code=2)["error"] == "invalid_selection"
    assert machine.json("adopt", "--all-skills", code=2)["error"] == "no_staged_skills"
    machine.skill.write_text("edited since")
    refused = machine.json("adopt", "--staging", folder, code=2)
    assert refused["error"] == "adoption_refused"
    assert refused["staging_dir"] == folder
    assert machine.skill.read_text() == "edited since"


def test_adopt_of_a_rejected_night_does_nothing_and_is_0(machine: Machine) -> None:
    path = write_tasks(machine.base / "plain.json", [task for task in persona() if task.tags.clear() is None])
    rejected = machine.json("run", "--backend", "mock", "--tasks-file", str(path))
    assert not rejected["accepted"]
    document = machine.json("adopt")
    assert (document["ok"], document["mode"], document["updated_paths"]) == (True, "legacy", [])


def test_undo_after_an_edit_is_refused_with_the_difference(machine: Machine) -> None:
    assert machine.json("undo", code=1)["error"] == "no_staging"
    machine.json(*mock_night(machine))
    machine.json("adopt")
    machine.skill.write_text(machine.skill.read_text() + "\nmy own later line\n")
    refused = machine.json("undo", code=2)
    assert refused["error"] == "undo_refused"
    assert "+my own later line" in refused["diff"]


def test_uncommitted_changes_of_a_document_are_warned_of_and_an_adoption_can_be_committed(machine: Machine) -> None:
    machine.configure(backend="mock", target_skill_path="skills/mine/SKILL.md")
    skill = machine.project / "skills" / "mine" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Mine\n")
    git = ["git", "-C", str(machine.project), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for name, value in (("user.name", "a"), ("user.email", "a@b")):
        subprocess.run([*git, "config", name, value], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "first"], check=True)
    skill.write_text("# Mine\n\nmy own change\n")
    machine.json(*mock_night(machine))
    document = machine.json("adopt", "--git-commit")
    assert document["updated_paths"] == [str(skill)]
    assert "not committed" in document["warnings"][0]
    assert len(document["commits"]) == 1


def test_recover_by_name(machine: Machine) -> None:
    assert machine.json("recover") == {"ok": True, "recovered": []}
    assert machine.run("recover")[1].strip() == "Nothing was interrupted."


def test_diff_of_nothing(machine: Machine) -> None:
    assert machine.json("diff", code=1)["error"] == "no_staging"
    machine.json(*mock_night(machine))
    machine.json("adopt")
    assert machine.run("diff")[1].strip() == "Adopting would change nothing."


# --- text of others --------------------------------------------------------------------------------------------------


def hostile(body: Mapping[str, Any]) -> str:
    if kind_of(prompt_of(body)) == "reflect":
        return json.dumps([{"op": "add", "content": f"{EVIL} rule", "rationale": EVIL}, {"op": "add", "content": RULE}])
    if kind_of(prompt_of(body)) == "judge":
        grade = json.loads(answer(body))
        return json.dumps({**grade, "reason": EVIL})
    return answer(body)


def test_hostile_text_never_reaches_the_terminal(machine: Machine) -> None:
    records = claude_lines([f"Please {EVIL} the report", "nope"], session="s9", project=str(machine.project))
    write(machine.home / ".claude" / "projects" / "x" / "s9.jsonl", records)
    with LoopbackServer(hostile) as server:
        machine.configure(
            backend="azure_openai", model="m", azure_endpoint=server.url, val_fraction=0.5, gate_min_val=1
        )
        for words in (["harvest"], ["run", "--plan"], ["dry-run", "--progress"], ["run", "--progress"], ["status"]):
            _, out, err = machine.run(*words)
            for text in (out, err):
                assert not set(text) & set("\x1b\x07\x9b\u202e\u200b\r"), words
            _, document, _ = machine.run(*words, "--json")
            assert document.isascii()
    for folder in machine.nights():
        report = (folder / "report.md").read_text()
        assert not set(report) & set("\x1b\x07\x9b\u202e\u200b\r")


def test_a_report_that_somebody_wrote_into_is_shown_as_text(machine: Machine) -> None:
    folder = Path(machine.json(*mock_night(machine))["staging_dir"])
    (folder / "report.md").write_text(f"# x\n{EVIL}\n")
    _, out, _ = machine.run("status")
    assert not set(out) & set("\x1b\x07\x9b\u202e\u200b\r")


# --- schedule --------------------------------------------------------------------------------------------------------


@pytest.fixture
def crontab(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    table, folder = machine.base / "crontab", machine.base / "bin"
    folder.mkdir()
    program = folder / "crontab"
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = "-l" ]; then [ -f {table} ] && cat {table} || {{ echo "no crontab for me" >&2; exit 1; }}\n'
        f"else cat > {table}; fi\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return table


def test_schedule_and_unschedule(machine: Machine, crontab: Path) -> None:
    code, out, err = machine.run("schedule", "--backend", "mock", "--hour", "4")
    assert code == 0, err
    assert str(machine.project) in out
    assert "skillopt-sleep (managed)" in crontab.read_text()
    document = machine.json("unschedule")
    assert (document["ok"], document["entries"]) == (True, [])


def test_a_wrong_time_is_refused_before_anything_is_written(machine: Machine, crontab: Path) -> None:
    code, _, err = machine.run("schedule", "--backend", "mock", "--hour", "24")
    assert code == 1
    assert "24" in err
    assert not crontab.exists()
    assert machine.run("schedule")[0] == 2, "a backend has to be chosen"
