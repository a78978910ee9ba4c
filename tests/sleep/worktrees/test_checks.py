"""The person's commands, run where they can do no harm."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sleep.worktrees.repos import Repo, snapshot

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges import Undecidable
from skillopt_sleep.worktrees import Workshop
from skillopt_sleep.worktrees.checks import Commands, commands_of

Shop = Callable[..., Workshop]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    folder = tmp_path / "room"
    (folder / "tree" / "sub").mkdir(parents=True)
    return folder


def commands(project: Path, *links: str, readable: tuple[Path, ...] = (), seconds: float = 60) -> Commands:
    return Commands(project, tuple(map(Path, links)), readable, seconds)


def test_a_command_passes_or_fails_and_its_end_is_kept(bubblewrap: None, repo: Repo, room: Path) -> None:
    ways, folder = commands(repo.root), room / "tree" / "sub"
    passed = ways.run('pwd && echo "$HOME" >&2 && echo "it is"', folder=folder, room=room)
    assert (passed.op, passed.passed) == ("command", True)
    assert passed.note.splitlines() == [str(folder), "it is", str(room)]
    failed = ways.run("yes line | head -5000; echo password=hunter2hunter2; exit 3", folder=folder, room=room)
    assert not failed.passed
    assert len(failed.note) < 1600
    assert "hunter2" not in failed.note
    assert not ways.run("kill -9 $$", folder=folder, room=room).passed


def test_what_cannot_be_started_is_not_decided(bubblewrap: None, repo: Repo, room: Path) -> None:
    (room / "tree" / "sub" / "plain").write_text("x")
    for command in ("no-such-program --x", "./plain", "exit 127"):
        with pytest.raises(Undecidable, match="cannot be started"):
            commands(repo.root).run(command, folder=room / "tree" / "sub", room=room)
    with pytest.raises(Undecidable, match="cannot be"):
        commands(repo.root).run("true", folder=room / "gone", room=room)


def test_a_failure_on_a_full_disk_is_not_decided(
    bubblewrap: None, repo: Repo, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(room)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1024))
    assert commands(repo.root).run("true", folder=room / "tree", room=room).passed
    with pytest.raises(Undecidable, match="nearly full"):
        commands(repo.root).run("false", folder=room / "tree", room=room)


def test_a_command_sees_and_changes_nothing_of_the_machine(bubblewrap: None, repo: Repo, room: Path) -> None:
    (repo.root / "node_modules" / ".bin").mkdir(parents=True)
    tool = repo.root / "node_modules" / ".bin" / "tool"
    tool.write_text("#!/bin/sh\necho tool\n")
    tool.chmod(0o755)
    ways, tree = commands(repo.root, "node_modules"), room / "tree"
    ways.link(tree)
    before = snapshot(repo.root)
    script = (
        f"tool; ls '{repo.root}'; test -e '{repo.root}/a.txt' && echo seen; ls node_modules/.bin;"
        " (echo x >node_modules/new) 2>/dev/null || echo closed; env | cut -d= -f1 | grep -v PWD | sort"
    )
    said = ways.run(script, folder=tree, room=room).note.split()
    assert said == ["tool", "node_modules", "tool", "closed", "HOME", "LANG", "PATH", "TMPDIR"]
    assert snapshot(repo.root) == before


def test_a_link_takes_the_place_of_what_an_attempt_put_there(repo: Repo, room: Path, tmp_path: Path) -> None:
    (repo.root / "web" / "node_modules").mkdir(parents=True)
    ways, tree, outside = commands(repo.root, "web/node_modules"), room / "tree", tmp_path / "outside"
    outside.mkdir()
    (tree / "web" / "node_modules" / "fake").mkdir(parents=True)
    ways.link(tree)
    ways.link(tree)
    assert (tree / "web" / "node_modules").readlink() == repo.root / "web" / "node_modules"
    (tree / "web" / "node_modules").unlink()
    (tree / "web").rmdir()
    (tree / "web").symlink_to(outside)
    with pytest.raises(OSError, match="link"):
        ways.link(tree)
    assert not list(outside.iterdir())


def test_a_command_that_does_not_end_fails(bubblewrap: None, repo: Repo, room: Path) -> None:
    outcome = commands(repo.root, seconds=1.5).run("echo start; sleep 60", folder=room / "tree", room=room)
    assert not outcome.passed
    assert outcome.note.startswith("did not end within 0.025 minutes.")


def test_programs_that_reserve_much_memory_and_open_many_files_run(
    bubblewrap: None, repo: Repo, room: Path, tmp_path: Path
) -> None:
    code = (
        "import mmap; reserved = mmap.mmap(-1, 1 << 36, flags=0x4022)\n"
        "print(len([open('/dev/null') for _ in range(2000)]))\n"
    )
    (room / "tree" / "big.py").write_text(code)
    base = Path(sys.executable).resolve().parent.parent
    ways = commands(repo.root, readable=(base,))
    outcome = ways.run(f"{Path(sys.executable).resolve()} -I -S big.py", folder=room / "tree", room=room)
    assert (outcome.passed, outcome.note) == (True, "2000")


def test_an_environment_of_python_brings_what_it_is_made_from(bubblewrap: None, repo: Repo, room: Path) -> None:
    place = repo.root / ".venv"
    (place / "bin").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text("home = x\n")
    other = repo.root.parent / "python"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python").write_text('#!/bin/sh\ncat "$(dirname "$0")/../../.venv/pyvenv.cfg"; echo ours $1\n')
    (other / "bin" / "python").chmod(0o755)
    (place / "bin" / "python").symlink_to(other / "bin" / "python")
    ways = commands(repo.root, ".venv")
    ways.link(room / "tree")
    assert "ours x" in ways.run("python x", folder=room / "tree", room=room).note


@pytest.mark.parametrize("link", ["", "/usr", "../x", "a/../../b", ".git", "gone", "."])
def test_links_are_places_of_the_project(repo: Repo, link: str) -> None:
    with pytest.raises(UsageProblem, match="replay_links"):
        commands_of(repo.config(replay_links=[link]))


def test_a_link_of_the_repository_shows_no_secrets(repo: Repo, tmp_path: Path) -> None:
    home, shared = Path("~").expanduser(), tmp_path / "shared"
    (home / ".ssh").mkdir(parents=True)
    shared.mkdir()
    for target in (home / ".ssh", home):
        (repo.root / "node_modules").symlink_to(target)
        with pytest.raises(UsageProblem, match="must not see"):
            commands_of(repo.config(replay_links=["node_modules"]))
        (repo.root / "node_modules").unlink()
    (repo.root / "node_modules").symlink_to(shared)
    assert commands_of(repo.config(replay_links=["node_modules"])).links == (Path("node_modules"),)


def test_a_readable_folder_that_is_missing_is_named(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"replay_readable.*gone"):
        commands_of(repo.config(replay_readable=[str(tmp_path / "gone")]))


def test_a_preflight_lets_failures_pass_and_names_what_does_not_start(
    repo: Repo, open_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_shop(repo)
    shop.preflight(repo.commits[0], ["grep -q 0 a.txt && test ! -e out", "false"])
    with pytest.raises(UsageProblem, match=r"no-such-thing.*replay_links.*replay_readable"):
        shop.preflight(repo.commits[0], ["true", "no-such-thing --now"])
    monkeypatch.setattr(shop, "_commands", replace(shop._commands, seconds=1.0))
    with pytest.raises(UsageProblem, match="replay_minutes"):
        shop.preflight(repo.commits[0], ["sleep 60"])
    with pytest.raises(UsageProblem, match="No checkout"):
        shop.preflight("f" * 40, ["true"])
