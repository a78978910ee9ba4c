"""The night that a scheduler starts: hardly any environment, the settings of the job, and no silent end."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from skillopt_sleep import scheduled
from skillopt_sleep.cli import main as command_line
from skillopt_sleep.config import load_config
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.experiments.personas import persona_tasks
from skillopt_sleep.locks import night_lock
from skillopt_sleep.schedule import last_night, list_scheduled, schedule
from skillopt_sleep.schedule.job import job_folder, read_job
from skillopt_sleep.tasks_file import make_tasks_payload, write_tasks_file

Night = Callable[..., int]


@pytest.fixture
def night(machine, as_cron: Callable[[str], list[str]]) -> Night:
    """Runs the one scheduled line as cron does: from the home, with HOME and a short PATH and nothing else."""

    def run(**more: str) -> int:
        (command,) = as_cron(list_scheduled()[0])
        env = {"HOME": str(machine.home), "PATH": "/usr/bin:/bin", "LOGNAME": "tester", "SHELL": "/bin/sh", **more}
        return subprocess.run(["/bin/sh", "-c", command], cwd=machine.home, env=env).returncode

    return run


def log(machine) -> str:
    return (machine.project / ".skillopt-sleep" / "cron.log").read_text()


def test_a_whole_night_runs_from_the_crontab(machine, night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = machine.home / "tasks.json"
    write_tasks_file(tasks, make_tasks_payload(persona_tasks("researcher"), project=str(machine.project)))
    config = load_config(invoked_project=str(machine.project), backend="mock", managed_skill_name="papers")
    done, message = schedule(machine.project, config=config, extra=f"--tasks-file {shlex.quote(str(tasks))}")
    assert done, message
    assert night() == 0, log(machine)
    assert "scheduled night of" in log(machine)
    assert "0.333 -> 1.000" in log(machine)
    last = last_night(machine.project)
    assert last is not None
    assert (last.exit_code, last.failed) == (0, False)
    (proposed,) = (machine.project / ".skillopt-sleep" / "staging").glob("*/proposed_SKILL.md")
    assert "name: papers" in proposed.read_text()  # the job's setting was used
    assert command_line(["status", "--project", str(machine.project)]) == 0
    assert "waits: " in capsys.readouterr().out


def test_without_a_key_the_next_morning_shows_it(
    machine, night: Night, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # C238
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com")
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "api_key")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "only-in-the-shell-12345")
    done, message = schedule(machine.project, backend="azure_openai")
    assert done, message
    assert "AZURE_OPENAI_API_KEY" in message
    assert night() != 0
    assert "AZURE_OPENAI_API_KEY" in log(machine)
    last = last_night(machine.project)
    assert last is not None
    assert last.failed
    assert "AZURE_OPENAI_API_KEY" in last.message
    command_line(["status", "--project", str(machine.project)])
    assert "AZURE_OPENAI_API_KEY" in capsys.readouterr().out


def test_overlapping_nights_skip_the_second(machine, night: Night) -> None:  # C239
    schedule(machine.project, backend="mock")
    state_dir = load_config(invoked_project=str(machine.project)).state_dir
    with night_lock(state_dir):
        assert night() == 2
    assert f"process {os.getpid()}" in log(machine)
    last = last_night(machine.project)
    assert last is not None
    assert last.exit_code == 2
    assert "holds the lock" in last.message


def test_a_home_of_ones_own_is_the_home_of_the_night(
    machine, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:  # C11
    monkeypatch.setenv("SKILLOPT_SLEEP_HOME", str(machine.home / "elsewhere"))
    schedule(machine.project, backend="mock")
    assert night() == 0, log(machine)
    last = last_night(machine.project)
    assert last is not None
    assert last.exit_code == 0
    assert (machine.home / "elsewhere" / "state.json").is_file()
    assert not (machine.home / ".skillopt-sleep").exists()


def test_the_environment_of_the_shell_reaches_the_night(machine, monkeypatch: pytest.MonkeyPatch) -> None:  # C238
    monkeypatch.setenv("PATH", os.environ["PATH"] + ":/opt/agents/bin")
    monkeypatch.setenv("CODEX_HOME", "/data/codex")
    schedule(machine.project, backend="codex")
    job = read_job(job_folder(machine.project) / "job.json")
    secrets = machine.home / ".skillopt-sleep" / "env"
    secrets.write_text("# keys\nexport OPENAI_API_KEY='from file'\n\nCODEX_HOME=/ignored\n")
    secrets.chmod(0o600)
    for name in ("CODEX_HOME", "OPENAI_API_KEY", "SKILLOPT_SLEEP_HOME", "SKILLOPT_SLEEP_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/from/cron")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://cron")
    with mock.patch.dict(os.environ):
        scheduled.apply_environment(job)
        path = os.environ["PATH"].split(":")
        assert path.index("/opt/agents/bin") < path.index("/from/cron")
        assert len(path) == len(set(path))
        assert os.environ["CODEX_HOME"] == "/data/codex"
        assert os.environ["OPENAI_API_KEY"] == "from file"
        assert os.environ["OPENAI_BASE_URL"] == "http://cron"
        assert load_config().get("backend") == "codex"


def test_secrets_that_others_can_read_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("A_KEY=very secret\n")
    file.chmod(0o640)
    with pytest.raises(UsageProblem, match="chmod 600"):
        scheduled.read_env(file)
    file.write_text("A_KEY=very secret\nnot a line\n")
    file.chmod(0o600)
    with pytest.raises(UsageProblem, match=":2: expected NAME=value") as caught:
        scheduled.read_env(file)
    assert "very secret" not in str(caught.value)
    assert scheduled.read_env(tmp_path / "none") == {}


def test_a_missing_job_is_told(machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduled.main([str(machine.home / "gone.json"), "run"]) == 2
    assert "schedule it again" in capsys.readouterr().err
    assert scheduled.main([]) == 2


def test_the_command_line_schedules_and_lists(machine, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--project", str(machine.project), "--backend", "claude", "--source", "codex", "--model", "m-2"]
    assert command_line(["schedule", *words, "--hour", "5", "--auto-adopt"]) == 0
    out = capsys.readouterr().out
    assert "every day at 05:17" in out
    assert "model m-2, sessions of codex" in out
    assert "adopted without asking" in out
    assert f"--project {machine.project} --scope invoked --backend claude --auto-adopt" in list_scheduled()[0]
    assert command_line(["schedule", *words, "--hour", "24"]) == 1
    assert "0 to 23" in capsys.readouterr().err
    assert command_line(["unschedule", "--project", str(machine.project)]) == 0
    assert list_scheduled() == []


def test_scheduling_says_when_the_program_of_the_night_is_not_there(
    machine, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["schedule", "--project", str(machine.project), "--backend", "claude"]
    assert command_line(words) == 0
    assert "As things are the night would stop: The claude command line cannot be started" in capsys.readouterr().out
    machine.tool("claude", "#!/bin/sh\n")
    assert command_line(words) == 0
    assert "would stop" not in capsys.readouterr().out


def test_scheduling_says_what_a_night_in_checkouts_lacks(machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.tool("claude", "#!/bin/sh\n")
    words = ["schedule", "--project", str(machine.project), "--backend", "claude", "--replay-mode", "worktree"]
    assert command_line(words) == 0
    headline, _, told = capsys.readouterr().out.partition("As things are the night would stop: ")
    assert "backend claude, sessions of claude, coding tasks in checkouts." in headline
    assert "replay_mode worktree needs" in told
