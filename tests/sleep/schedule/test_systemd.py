"""Scheduling with timers of systemd, against a `systemctl` of the test's own."""

from __future__ import annotations

import re
import subprocess

import pytest

from skillopt_sleep.schedule import list_scheduled, schedule, unschedule


@pytest.fixture
def timers(bare, monkeypatch: pytest.MonkeyPatch):
    """A machine with systemd and without cron."""
    monkeypatch.setenv("PATH", f"{bare.tools}:/usr/bin:/bin")
    bare.add_systemctl()
    return bare


def units(machine) -> dict[str, str]:
    folder = machine.home / ".config" / "systemd" / "user"
    return {path.suffix: path.read_text() for path in sorted(folder.glob("*"))}


def log(machine) -> list[str]:
    return (machine.tools / "systemctl.log").read_text().splitlines()


def test_a_timer_is_written_and_started_and_removed_again(timers) -> None:
    done, message = schedule(timers.project, backend="claude", hour=4, minute=5, via="systemd")
    assert done, message
    assert "Added the timer" in message
    assert "OnCalendar=*-*-* 04:05:00\nPersistent=true" in units(timers)[".timer"]
    name = re.search(r"skillopt-sleep-[0-9a-f]{20}\.timer", message)[0]
    assert log(timers) == ["--user daemon-reload", f"--user enable --now {name}"]
    (line,) = list_scheduled()
    assert "04:05" in line
    assert str(timers.project) in line
    done, message = unschedule(timers.project)
    assert done
    assert "Removed the timer" in message
    assert units(timers) == {}
    assert log(timers)[2:] == [f"--user disable --now {name}", "--user daemon-reload"]


@pytest.mark.parametrize("name", ["a b", "it's", 'qu"ote', "100%n", "$HOME", "a\\b"])
def test_every_argument_survives_systemd_and_shell(timers, name: str) -> None:
    project = timers.make_project(name)
    fake = project / "py$thon"
    fake.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n')
    fake.chmod(0o755)
    done, message = schedule(project, backend="claude", python=str(fake), via="systemd")
    assert done, message
    subprocess.run(as_systemd(units(timers)[".service"]), check=True, cwd="/")
    words = (project / ".skillopt-sleep" / "cron.log").read_text().splitlines()
    assert words[3:] == ["run", "--project", str(project), "--scope", "invoked", "--backend", "claude"]


def test_a_timer_that_cannot_be_started_leaves_nothing(timers) -> None:
    timers.set("no-bus")
    done, message = schedule(timers.project, backend="claude", via="systemd")
    assert not done
    assert "Failed to connect to bus" in message
    assert units(timers) == {}
    assert not list((timers.home / ".skillopt-sleep").glob("jobs/*/job.json"))


def test_a_failed_change_keeps_the_timer_that_runs(timers) -> None:
    schedule(timers.project, backend="claude", via="systemd")
    before = units(timers)
    timers.set("no-bus")
    assert not schedule(timers.project, backend="claude", hour=5, via="systemd")[0]
    assert units(timers) == before


def test_hand_edits_of_a_unit_are_kept_beside(timers) -> None:
    schedule(timers.project, backend="claude", via="systemd")
    (service,) = (timers.home / ".config" / "systemd" / "user").glob("*.service")
    service.write_text(service.read_text() + "Nice=19\n")
    _, message = schedule(timers.project, backend="claude", via="systemd")
    (copy,) = (timers.home / ".skillopt-sleep" / "backups").glob("*.service.before")
    assert str(copy) in message
    assert "Nice=19" in copy.read_text()


def test_a_project_is_scheduled_at_one_place(machine) -> None:
    machine.add_systemctl()
    schedule(machine.project, backend="claude")
    done, message = schedule(machine.project, backend="claude", via="systemd")
    assert done
    assert "Removed 1 line of the crontab" in message
    assert len(list_scheduled()) == 1
    _, message = schedule(machine.project, backend="claude", via="cron")
    assert "Removed the timer" in message
    assert len(list_scheduled()) == 1


def as_systemd(service: str) -> list[str]:
    """The words of ExecStart as systemd reads them: quotes, then specifiers, then variables."""
    text = re.search(r"^ExecStart=(.*)$", service, re.MULTILINE)[1]
    program, option, quoted = text.split(" ", 2)
    assert quoted[0] == quoted[-1] == '"'
    unquoted = re.sub(r"\\(.)", r"\1", quoted[1:-1])
    for mark in "%$":
        assert mark not in unquoted.replace(mark * 2, ""), "systemd would replace this"
        unquoted = unquoted.replace(mark * 2, mark)
    return [program, option, unquoted]
