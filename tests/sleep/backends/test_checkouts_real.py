"""Whole attempts in real checkouts: git, bubblewrap, and small programs in the place of the agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.backends import CallCache, get_backend
from skillopt_sleep.config import load_config
from skillopt_sleep.errors import CallFailed, UsageProblem
from skillopt_sleep.types import TaskRecord
from skillopt_sleep.worktrees import Workshop, open_workshop

AGENT = """#!{python} -IS
import json, os, pathlib, sys
argv, name = sys.argv[1:], {name!r}
if name == "codex" and argv[0] != "exec":
    print("[]")
    raise SystemExit
prompt = sys.stdin.read()
seen = {{}}
for place in {places!r}:
    try:
        with open(place) as stream:
            seen[place] = stream.read()
    except OSError as error:
        seen[place] = type(error).__name__
    try:
        with open(place, "a") as stream:
            stream.write("EVIL")
        os.chmod(place, 0o777)
    except OSError:
        pass
for folder in {folders!r}:
    try:
        pathlib.Path(folder, "evil.txt").write_text("EVIL")
    except OSError:
        pass
here = pathlib.Path("notes.txt")
here.write_text(here.read_text().replace("one", "two"))
pathlib.Path("new").mkdir()
pathlib.Path("new/file.txt").write_text("new\\n" + ("WORLD" if "HELLO" in prompt else ""))
pathlib.Path(os.environ["HOME"], "." + name, "state.json").write_text("refreshed")
said = json.dumps({{"cwd": os.getcwd(), "seen": seen, "tmp": sorted(os.listdir("/tmp"))}})
if name == "claude":
    print(json.dumps({{"type": "result", "result": said, "usage": {{"input_tokens": 10, "output_tokens": 5}}}}))
else:
    print(json.dumps({{"type": "item.completed", "item": {{"type": "agent_message", "text": said}}}}))
    print(json.dumps({{"type": "turn.completed", "usage": {{"input_tokens": 10, "output_tokens": 5}}}}))
"""


def git(folder: Path, *argv: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "t", f"GIT_{who}_EMAIL": "t@example.org"}
    return subprocess.run(["git", *argv], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "notes.txt").write_text("one\n", "utf-8")
    (folder / "out").symlink_to(tmp_path)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "notes.txt").write_text("later\n", "utf-8")
    git(folder, "commit", "-q", "-am", "the future")
    (folder / "secret.txt").write_text("LIVE", "utf-8")
    return folder


@pytest.fixture
def workshop(project: Path, home: Path) -> Iterator[Workshop]:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("PRIVATE", "utf-8")
    for name in ("claude", "codex"):
        (home / f".{name}").mkdir()
    (home / ".claude" / "settings.json").write_text("{}", "utf-8")
    (home / ".claude" / "projects").mkdir()
    (home / ".claude" / "projects" / "s.jsonl").write_text("TRANSCRIPT", "utf-8")
    try:
        shop = open_workshop(load_config(backend="claude", replay_mode="worktree", invoked_project=str(project)))
    except UsageProblem as problem:
        pytest.skip(f"the sandbox bubblewrap does not work on this machine: {problem}")
    with shop:
        yield shop


@pytest.fixture
def coding(project: Path, workshop: Workshop, task: Callable[..., TaskRecord]) -> TaskRecord:
    commit = workshop.resolve("HEAD~1")
    checks = [
        {"op": "command", "arg": "grep -q WORLD new/file.txt"},
        {"op": "command", "arg": "test -e no-such-file"},
        {"op": "file_changed", "arg": "notes.txt"},
    ]
    judge = {"kind": "rule", "checks": checks}
    return task("HELLO", reference_kind="rule", judge=judge, workspace={"commit": commit, "folder": ""})


def agent(tmp_path: Path, project: Path, home: Path, name: str) -> Path:
    places = [
        *(project / "secret.txt", project / "notes.txt", home / ".ssh" / "id", home / ".claude" / "settings.json"),
        home / ".claude" / "projects" / "s.jsonl",
    ]
    folders = [project, tmp_path, home, home / ".ssh", "..", "out", "/etc", "/tmp"]
    program = tmp_path / "bin" / name
    program.parent.mkdir(exist_ok=True)
    real = {"places": [str(place) for place in places], "folders": [str(folder) for folder in folders]}
    program.write_text(AGENT.format(python=os.path.realpath(sys.executable), name=name, **real), "utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_an_agent_changes_its_checkout_and_nothing_else(
    tmp_path: Path, project: Path, home: Path, workshop: Workshop, coding: TaskRecord, name: str
) -> None:
    program = agent(tmp_path, project, home, name)
    settings: dict[str, Any] = {f"{name}_path": str(program), "cache": CallCache(tmp_path / "calls.jsonl")}
    backend = get_backend(name, **settings)
    backend.workshop = workshop
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file() and not path.is_symlink()}

    said, work = backend.attempt_in_checkout(coding, "", "")
    told = json.loads(said)
    assert sorted(work.files) == ["new/file.txt", "notes.txt"]
    assert "-one\n+two\n" in work.diff
    assert [check.passed for check in work.checks] == [True, False, True]
    assert told["cwd"] != str(project)
    assert not {"LIVE", "later\n", "PRIVATE", "TRANSCRIPT"} & set(told["seen"].values())
    after = {path: path.read_bytes() for path in project.rglob("*") if path.is_file() and not path.is_symlink()}
    assert after == before
    assert [path for path in tmp_path.rglob("evil.txt") if path.is_file()] == []
    assert (home / f".{name}" / "state.json").read_text("utf-8") == "refreshed"
    assert (home / ".claude" / "settings.json").read_text("utf-8") == "{}"
    assert (home / ".claude" / "projects" / "s.jsonl").read_text("utf-8") == "TRANSCRIPT"
    assert (home / ".ssh" / "id").read_text("utf-8") == "PRIVATE"

    program.unlink()
    again = get_backend(name, **{**settings, "cache": CallCache(tmp_path / "calls.jsonl")})
    again.workshop = workshop
    assert again.attempt_in_checkout(coding, "", "") == (said, work)


def test_transcripts_are_hidden_wherever_the_agent_lives(
    tmp_path: Path, project: Path, home: Path, coding: TaskRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    (own / "projects").mkdir(parents=True)
    (own / "projects" / "s.jsonl").write_text("TRANSCRIPT", "utf-8")
    (own / "credentials").write_text("SIGNED IN", "utf-8")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(own))
    program = tmp_path / "claude"
    program.write_text(
        "#!/bin/sh\ncat >/dev/null\nfor f in credentials projects/s.jsonl; do cat $CLAUDE_CONFIG_DIR/$f >>seen; done\n"
        """echo '{"type": "result", "result": "done", "usage": {"input_tokens": 1, "output_tokens": 1}}'\n""",
        "utf-8",
    )
    program.chmod(0o755)
    backend = get_backend("claude", claude_path=str(program))
    with open_workshop(load_config(backend="claude", replay_mode="worktree", invoked_project=str(project))) as shop:
        backend.workshop = shop
        _, work = backend.attempt_in_checkout(coding, "", "")
    assert "+SIGNED IN" in work.diff
    assert "TRANSCRIPT" not in work.diff


def test_only_a_program_with_a_sandbox_of_its_own_can_make_a_room_in_the_pen(
    workshop: Workshop, coding: TaskRecord
) -> None:
    with workshop.workspace(coding, "").open() as desk:
        room = ["bwrap", "--unshare-user", "--bind", "/", "/", "touch", "inside"]
        for rooms in (False, True):
            ran = subprocess.run(desk.penned(room, rooms=rooms), cwd=desk.folder, capture_output=True, check=False)
            assert (ran.returncode == 0, (desk.folder / "inside").exists()) == (rooms, rooms), ran.stderr


def test_an_agent_that_changes_nothing_and_says_so_has_answered(
    tmp_path: Path, home: Path, workshop: Workshop, coding: TaskRecord
) -> None:
    program = tmp_path / "claude"
    answer = json.dumps(
        {"type": "result", "result": "Nothing to do.", "usage": {"input_tokens": 1, "output_tokens": 1}}
    )
    program.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{answer}'\n", "utf-8")
    program.chmod(0o755)
    backend = get_backend("claude", claude_path=str(program))
    backend.workshop = workshop
    said, work = backend.attempt_in_checkout(coding, "", "")
    assert (said, work.files, work.diff) == ("Nothing to do.", (), "")
    assert [check.passed for check in work.checks] == [False, False, False]


def test_a_command_that_cannot_be_started_is_no_score(
    tmp_path: Path, project: Path, home: Path, workshop: Workshop, coding: TaskRecord
) -> None:
    coding.judge["checks"] = [{"op": "command", "arg": "no-such-program-anywhere"}]
    backend = get_backend("claude", claude_path=str(agent(tmp_path, project, home, "claude")))
    backend.workshop = workshop
    with pytest.raises(CallFailed, match="no-such-program-anywhere") as failure:
        backend.attempt_in_checkout(coding, "", "")
    assert not failure.value.fatal
    assert backend.tokens_used() == 15
