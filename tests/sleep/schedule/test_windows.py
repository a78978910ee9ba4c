"""Scheduling with Windows tasks, against a `schtasks` of the test's own."""

from __future__ import annotations

import re

import pytest

from skillopt_sleep.schedule import list_scheduled, schedule, unschedule
from skillopt_sleep.schedule.windows import literal, task_name


@pytest.fixture
def tasks(bare, monkeypatch: pytest.MonkeyPatch):
    """A machine with the Task Scheduler."""
    monkeypatch.setenv("PATH", f"{bare.tools}:/usr/bin:/bin")
    bare.add_schtasks()
    return bare


def test_a_task_is_made_listed_and_deleted(tasks) -> None:
    done, message = schedule(tasks.project, backend="claude", hour=4, minute=5, via="windows")
    assert done, message
    name = task_name(tasks.project)
    assert re.fullmatch(r"SkillOpt-Sleep-[0-9a-f]{20}", name)
    assert name in message
    helper = tasks.project / ".skillopt-sleep" / "run.ps1"
    told = (tasks.tools / "schtasks.log").read_text().splitlines()
    command = f'powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{helper}"'
    create = ["/create", "/tn", name, "/tr", command, "/sc", "daily", "/st", "04:05", "/f"]
    assert told[: len(create)] == create
    (line,) = list_scheduled()
    assert line.startswith(name)
    assert unschedule(tasks.project)[0]
    assert list_scheduled() == []
    assert not helper.exists()


def test_the_script_holds_every_word_as_a_literal(tasks) -> None:
    project = tasks.make_project("it's ‘odd’ $env:X %P%")
    done, message = schedule(project, backend="claude", via="windows")
    assert done, message
    data = (project / ".skillopt-sleep" / "run.ps1").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    text = data.decode("utf-8-sig")
    assert "$ErrorActionPreference = 'Stop'\r\n" in text
    assert "'--project' '" + str(project).replace("'", "''").replace("‘", "‘‘").replace("’", "’’") + "'" in text
    assert text.endswith("exit $LASTEXITCODE\r\n")


def test_literals_are_doubled_quotes() -> None:
    assert literal("a'b") == "'a''b'"
    assert literal("a`b$c") == "'a`b$c'"


def test_a_double_quote_in_a_path_is_refused(tasks) -> None:
    project = tasks.make_project('a"b')
    done, message = schedule(project, backend="claude", via="windows")
    assert not done
    assert "double quote" in message
    assert not (tasks.tools / "tasks").exists()


def test_a_path_that_the_task_would_cut_is_refused(tasks) -> None:
    project = tasks.make_project("d" * 200)
    done, message = schedule(project, backend="claude", via="windows")
    assert not done
    assert "261 characters" in message


def test_the_night_writes_its_own_log_there(tasks) -> None:
    schedule(tasks.project, backend="claude", via="windows")
    (file,) = (tasks.home / ".skillopt-sleep").glob("jobs/*/job.json")
    assert "cron.log" in file.read_text()
    assert ">>" not in (tasks.project / ".skillopt-sleep" / "run.ps1").read_text()
