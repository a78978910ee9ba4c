"""Scheduling with cron, against a `crontab` of the test's own."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from skillopt_sleep.config import load_config
from skillopt_sleep.locks import FileLock
from skillopt_sleep.schedule import list_scheduled, schedule, unschedule
from skillopt_sleep.schedule.table import BEGIN, END, mark_of

USER = "# my jobs\nMAILTO=me\n0  1 * * *   backup.sh\n"


def test_schedule_says_what_it_did_and_does_it(machine) -> None:
    machine.table = USER
    done, message = schedule(machine.project, backend="claude", hour=4, minute=5)
    assert done, message
    assert "every day at 04:05" in message
    assert "backend claude" in message
    assert "only staged" in message
    assert machine.table.startswith(USER)
    (line,) = list_scheduled()
    assert line.startswith("5 4 * * *  ")
    assert line.endswith(mark_of(machine.project))
    assert f"--project {machine.project} --scope invoked --backend claude" in line
    done, message = unschedule(machine.project)
    assert done
    assert "Removed 1 line" in message
    assert machine.table == USER
    assert list_scheduled() == []


def test_message_and_job_know_about_auto_adopt(machine) -> None:  # C10
    _, message = schedule(machine.project, backend="claude", extra="--auto-adopt")
    assert "adopted without asking" in message
    assert "--auto-adopt" in list_scheduled()[0]


def test_the_job_keeps_the_resolved_settings(machine, monkeypatch: pytest.MonkeyPatch) -> None:  # C10
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-REALKEY1234567890")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2@proxy:3128")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com")
    config = load_config(
        invoked_project=str(machine.project),
        backend="codex",
        model="m-1",
        transcript_source="codex",
        codex_path="/opt/codex",
        gate_min_val=7,
    )
    done, message = schedule(machine.project, config=config)
    assert done, message
    (folder,) = (machine.home / ".skillopt-sleep" / "jobs").iterdir()
    kept = json.loads((folder / "config.json").read_text())
    assert kept["transcript_source"] == "codex"
    assert (kept["model"], kept["codex_path"], kept["gate_min_val"]) == ("m-1", "/opt/codex", 7)
    assert kept["claude_home"] == str(machine.home / ".claude")
    job = json.loads((folder / "job.json").read_text())
    assert job["environment"]["AZURE_OPENAI_ENDPOINT"] == "https://x.openai.azure.com"
    assert set(job["pass_through"]) == {"ANTHROPIC_API_KEY", "HTTPS_PROXY"}
    assert "ANTHROPIC_API_KEY" in message
    everything = "".join(path.read_text() for path in folder.iterdir()) + message + machine.table
    assert "REALKEY" not in everything
    assert "hunter2" not in everything
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "name", ["a b", "it's", 'qu"ote', "100%", "$HOME", "`x`;touch y", "-dash", "a&b|c>d", "é 日本", "a\\b"]
)
def test_every_argument_survives_cron_and_shell(machine, name: str, as_cron: Callable[[str], list[str]]) -> None:
    project = machine.make_project(name)
    fake = project / "py%thon"
    fake.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\npwd\n')
    fake.chmod(0o755)
    done, message = schedule(project, backend="claude", python=str(fake), extra="--preferences 'two words 50%'")
    assert done, message
    (line,) = list_scheduled()
    (command,) = as_cron(line)
    (project / ".skillopt-sleep").mkdir(exist_ok=True)
    subprocess.run(["/bin/sh", "-c", command], check=True, cwd="/", env={"HOME": "/", "PATH": "/usr/bin:/bin"})
    log = project / ".skillopt-sleep" / "cron.log"
    words = log.read_text().splitlines()
    assert words[:2] == ["-m", "skillopt_sleep.scheduled"]
    assert words[3:-1] == [
        *("run", "--project", str(project), "--scope", "invoked", "--backend", "claude"),
        *("--preferences", "two words 50%"),
    ]
    assert Path(words[-1], "skillopt_sleep").is_dir()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert not (project / "y").exists()


def test_a_project_that_is_gone_is_not_made_again(machine, as_cron: Callable[[str], list[str]]) -> None:
    schedule(machine.project, backend="claude")
    (command,) = as_cron(list_scheduled()[0])
    machine.project.rmdir()
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, cwd="/")
    assert ended.returncode != 0
    assert not machine.project.exists()


@pytest.mark.parametrize("extra", ["two\nlines", "unclosed 'quote", "bell\x07"])
def test_further_arguments_that_cannot_be_read_are_refused(machine, extra: str) -> None:
    done, message = schedule(machine.project, backend="claude", extra=extra)
    assert not done
    assert "further arguments" in message
    assert not (machine.tools / "table").exists()


@pytest.mark.parametrize(
    "time", [{"hour": 24}, {"hour": -1}, {"hour": "3"}, {"hour": 3.5}, {"hour": True}, {"minute": 60}, {"minute": None}]
)
def test_a_time_that_does_not_exist_is_refused_before_anything_is_written(machine, time: dict) -> None:  # C235
    done, message = schedule(machine.project, backend="claude", **time)
    assert not done
    assert "expected a whole number" in message
    assert not (machine.tools / "table").exists()
    assert not (machine.home / ".skillopt-sleep").exists()


def test_what_cannot_stand_on_a_line_is_refused(machine) -> None:
    for project in (machine.home / "a\nb", machine.home / "a\\%b"):
        project.mkdir()
        done, message = schedule(project, backend="claude")
        assert not done, message
    assert not schedule(machine.home / "nowhere", backend="claude")[0]
    assert not schedule(machine.project, backend="claude", python="/no/such/python")[0]
    assert not schedule(machine.project, backend="cluade")[0]
    assert not (machine.tools / "table").exists()


def test_a_command_that_cron_would_cut_is_refused(machine) -> None:
    project = machine.home.joinpath(*["d" * 200] * 4)
    project.mkdir(parents=True)
    done, message = schedule(project, backend="claude")
    assert not done
    assert "990 bytes" in message


def test_a_crontab_that_cannot_be_read_is_never_written(machine) -> None:  # C233, D9
    machine.table = USER
    machine.set("unreadable", "crontab: permission denied")
    for done, message in (schedule(machine.project, backend="claude"), unschedule(machine.project)):
        assert not done
        assert "permission denied" in message
    assert machine.table == USER
    assert not list((machine.home / ".skillopt-sleep").glob("jobs/*/job.json"))


@pytest.mark.parametrize("words", ["no crontab for tester", "crontab: can't open 'tester': No such file or directory"])
def test_no_crontab_yet_is_an_empty_one(machine, words: str) -> None:  # C233
    machine.set("absent", words)
    done, message = schedule(machine.project, backend="claude")
    assert done, message
    assert machine.table.startswith(BEGIN)


def test_bytes_that_are_no_text_stay(machine) -> None:
    (machine.tools / "table").write_bytes(b"# caf\xe9\n")
    done, message = schedule(machine.project, backend="claude")
    assert not done
    assert "UTF-8" in message
    assert (machine.tools / "table").read_bytes() == b"# caf\xe9\n"


def test_the_crontab_before_a_change_is_kept(machine) -> None:
    machine.table = USER
    _, message = schedule(machine.project, backend="claude")
    (copy,) = (machine.home / ".skillopt-sleep" / "backups").iterdir()
    assert str(copy) in message
    assert copy.read_text() == USER


def test_a_refused_crontab_changes_nothing(machine) -> None:
    machine.table = USER
    machine.set("refuses")
    done, message = schedule(machine.project, backend="claude")
    assert not done
    assert "bad minute" in message
    assert machine.table == USER


def test_what_was_written_is_read_back_and_put_right(machine) -> None:
    machine.table = USER
    machine.set("mangles")
    done, message = schedule(machine.project, backend="claude")
    assert not done
    assert "as it was before" in message
    assert machine.table == USER


def test_a_hand_edited_line_is_noticed_and_not_lost(machine) -> None:  # C229
    schedule(machine.project, backend="claude")
    machine.table = machine.table.replace("17 3 * * *", "17 3 * * 1-5")
    _, message = schedule(machine.project, backend="claude")
    assert "edited by hand; it was: 17 3 * * 1-5" in message
    kept = [path.read_text() for path in (machine.home / ".skillopt-sleep" / "backups").iterdir()]
    assert any("17 3 * * 1-5" in text for text in kept)
    assert "17 3 * * * " in machine.table


def test_lines_of_others_in_the_block_are_kept_and_named(machine) -> None:  # C229
    schedule(machine.project, backend="claude")
    machine.table = machine.table.replace(END, f"# mine\n5 5 * * * own\n{END}")
    _, message = schedule(machine.project, backend="claude", hour=5)
    assert "# mine; 5 5 * * * own" in message
    done, message = unschedule(all_projects=True)
    assert done
    assert machine.table == f"{BEGIN}\n# mine\n5 5 * * * own\n{END}\n"


def test_unschedule_leaves_other_projects_alone(machine) -> None:
    other = machine.make_project("other")
    schedule(machine.project, backend="claude")
    schedule(other, backend="codex")
    assert unschedule(machine.project)[0]
    (line,) = list_scheduled()
    assert "--backend codex" in line
    assert unschedule(all_projects=True)[0]
    assert machine.table == ""
    done, message = unschedule(other)
    assert done
    assert "Nothing was scheduled" in message


def test_without_any_scheduler_nothing_is_written(bare) -> None:
    done, message = schedule(bare.project, backend="claude")
    assert not done
    assert "crontab" in message
    assert not (bare.home / ".skillopt-sleep").exists()
    assert list_scheduled() == []


def test_two_changes_at_once_wait_for_each_other(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillopt_sleep.schedule.cron.LOCK_SECONDS", 0.0)
    with FileLock(machine.home / ".skillopt-sleep" / "locks" / "crontab.lock", "the crontab"):
        done, message = schedule(machine.project, backend="claude")
    assert not done
    assert str(os.getpid()) in message
    assert not list((machine.home / ".skillopt-sleep").glob("jobs/*/job.json"))


def test_a_failed_change_keeps_the_job_that_runs(machine) -> None:
    schedule(machine.project, backend="claude")
    machine.set("refuses")
    assert not schedule(machine.project, backend="codex", hour=5)[0]
    (file,) = (machine.home / ".skillopt-sleep").glob("jobs/*/config.json")
    assert json.loads(file.read_text())["backend"] == "claude"


def test_the_shell_line_reads_as_one_command(machine) -> None:
    schedule(machine.project, backend="claude")
    words = shlex.split(list_scheduled()[0], comments=True)
    assert words[5:7] == ["cd", str(machine.project)]


def test_without_a_backend_nothing_is_written(machine) -> None:  # V20
    done, message = schedule(machine.project, backend="")
    assert not done
    assert "No backend is chosen" in message
    roles = load_config(invoked_project=str(machine.project), target_backend="claude")
    assert not schedule(machine.project, backend="", config=roles)[0]
    assert not (machine.tools / "table").exists()


def test_a_list_of_projects_stays_in_the_settings(machine) -> None:
    config = load_config(invoked_project=str(machine.project), backend="claude", projects=["/p/a", "/p/b"])
    done, message = schedule(machine.project, config=config)
    assert done, message
    assert "--scope" not in list_scheduled()[0]
    (file,) = (machine.home / ".skillopt-sleep").glob("jobs/*/config.json")
    assert json.loads(file.read_text())["projects"] == ["/p/a", "/p/b"]
