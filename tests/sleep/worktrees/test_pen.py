"""What an agent at work can write, and what it cannot see."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sleep.worktrees.conftest import NO_ROOM
from sleep.worktrees.repos import Repo

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.vendored.utils.process import ProcessResult, child_environment, run_process
from skillopt_sleep.vendored.utils.sandbox import BUBBLEWRAP, available
from skillopt_sleep.worktrees.hidden import hidden_places
from skillopt_sleep.worktrees.pen import Pen, make_pen, run_penned
from skillopt_sleep.worktrees.repository import find_repository


@pytest.fixture
def pen(repo: Repo, tmp_path: Path) -> Pen:
    """A pen for the repository, in which /tmp is the machine's: the places of these tests lie there."""
    if BUBBLEWRAP not in available():
        pytest.skip(NO_ROOM)
    folder = tmp_path / "pen"
    folder.mkdir()
    hidden = (*find_repository(repo.root).private, *hidden_places(repo.config()))
    return replace(make_pen(hidden, folder), own=())


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A checkout in a place that is hidden itself."""
    folder = tmp_path / "home" / ".skillopt-sleep" / "worktrees" / "x" / "my tree"
    folder.mkdir(parents=True)
    return folder


def run(pen: Pen, desk: Path, script: str, *arguments: object, **places: list[Path]) -> str:
    argv = pen.around(["sh", "-c", script, "sh", *map(str, arguments)], folder=desk, **places)
    done = subprocess.run(argv, cwd=desk, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_the_checkout_is_written_and_the_rest_is_not(pen: Pen, desk: Path, tmp_path: Path, repo: Repo) -> None:
    for place in (tmp_path, desk.parent, Path("/usr"), Path("/etc"), Path("/"), repo.root):
        said = run(pen, desk, 'pwd; echo x >mine && (echo x >"$1/new") 2>/dev/null || echo no', place)
        assert said == f"{desk}\nno\n"
        assert not (place / "new").exists()
    assert (desk / "mine").read_text() == "x\n"


def test_what_is_hidden_is_blank(pen: Pen, desk: Path, tmp_path: Path, repo: Repo) -> None:
    home = tmp_path / "home"
    secrets = [".ssh/id", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".npmrc", ".claude/projects/x.jsonl",
               ".codex/sessions/x", ".skillopt-sleep/state.json", ".claude.json", ".pi/x", ".cursor/x"]  # fmt: skip
    for name in (*secrets, "open.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("private")
    script = 'for file; do cat "$file" 2>/dev/null; done; ls -A "$HOME"/.ssh; echo end'
    assert run(pen, desk, script, *(home / name for name in secrets), repo.root / "a.txt") == "end\n"
    assert run(pen, desk, script, home / "open.txt") == "privateend\n"
    assert run(pen, desk, 'ls -A "$1"; test -e "$1/.git" || echo gone', repo.root) == "gone\n"


def test_an_agents_home_is_shown_without_its_transcripts(pen: Pen, desk: Path, tmp_path: Path) -> None:
    claude = tmp_path / "home" / ".claude"
    (claude / "projects" / "p").mkdir(parents=True)
    (claude / "projects" / "p" / "s.jsonl").write_text("private")
    (claude / "history.jsonl").write_text("private")
    (claude / ".credentials.json").write_text("needed ")
    script = 'cd "$1"; cat .credentials.json history.jsonl; ls projects; echo x >new; mkdir -p projects/q && echo ok'
    assert run(pen, desk, script, claude, writable=[claude]) == "needed ok\n"
    assert (claude / "new").exists()
    assert not (claude / "projects" / "q").exists()
    assert "needed" not in run(pen, desk, script, claude)
    assert run(pen, desk, "cat $1/.credentials.json; echo x >$1/new || echo no", claude, readable=[claude]).startswith(
        "needed "
    )


def test_what_is_shown_in_a_hidden_place_is_there(pen: Pen, desk: Path, repo: Repo, tmp_path: Path) -> None:
    inner = repo.root / "src"
    script = 'cat "$1/deep/b.py"; ls "$2"; (echo x >"$1/new") 2>/dev/null || echo no'
    assert run(pen, desk, script, inner, repo.root, readable=[inner, tmp_path / "gone"]) == "x = 1\nsrc\nno\n"
    linked = {desk / "node_modules": inner}
    argv = pen.around(["cat", "node_modules/deep/b.py"], folder=desk, linked=linked)
    assert subprocess.run(argv, cwd=desk, capture_output=True, text=True, check=True).stdout == "x = 1\n"


def test_a_private_place_for_temporary_files_does_not_hide_the_checkout(pen: Pen, desk: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("private")
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho x >"$TMPDIR/x"; echo x >here; ls -A /tmp; cat "$1"; id -u\n')
    program.chmod(0o755)
    argv = replace(pen, own=Pen(*(pen.start, (), pen.blank)).own).around(
        [str(program), str(tmp_path / "mine")], folder=desk
    )
    done = subprocess.run(argv, cwd=desk, capture_output=True, text=True, check=False)
    assert "private" not in done.stdout
    assert done.stdout.splitlines()[-1] == str(os.getuid())
    assert (desk / "here").exists()
    assert not Path("/tmp/x").exists()


def test_links_to_what_is_hidden_lead_to_nothing(pen: Pen, desk: Path, tmp_path: Path, repo: Repo) -> None:
    real = tmp_path / "keys"
    real.mkdir()
    (real / "id").write_text("private")
    (tmp_path / "home" / ".ssh").symlink_to(real)
    (desk / "link").symlink_to(repo.root)
    said = run(pen, desk, 'cat "$1/id" "$HOME/.ssh/id" link/a.txt /proc/1/root/"$1"/id 2>/dev/null; echo end', real)
    assert said == "end\n"


def test_no_process_and_no_socket_of_the_machine(pen: Pen, desk: Path, tmp_path: Path) -> None:
    script = "ls /proc | grep -c '^[0-9]'; ls -A /run; grep -c . /etc/resolv.conf >/dev/null && echo resolv"
    lines = run(pen, desk, script).splitlines()
    assert int(lines[0]) < 8
    assert not [line for line in lines[1:] if line not in ("resolv", "systemd", "current-system", "resolvconf")]
    code = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        f"print(libc.umount2({os.fsencode(desk.parents[2])!r}, 2), libc.mount(b'none', b'/mnt', b'tmpfs', 0, None))\n"
        f"print(os.path.exists({str(tmp_path / 'home/.ssh/id')!r}))\n"
    )
    argv = pen.around([sys.executable, "-I", "-S", "-c", code], folder=desk)
    assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "-1 -1\nFalse\n"


def test_the_machine_s_settings_are_not_written_by_root_either(pen: Pen, desk: Path) -> None:
    places = ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/proc/irq")
    script = 'for place; do test -w "$place" && echo "$place"; done; echo end'
    assert run(pen, desk, script, *places) == "end\n"
    argv = pen.around(["sh", "-c", script, "sh", *places], folder=desk, rooms=True)
    assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "end\n"


def test_no_service_is_reached_through_a_socket_in_the_file_system(pen: Pen, desk: Path, tmp_path: Path) -> None:
    place = tmp_path / "home" / "agent.sock"
    code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(place)!r})"
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(place))
        service.listen()
        argv = pen.around([sys.executable, "-I", "-S", "-c", code], folder=desk)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "refused" in done.stderr
    assert place.is_socket()


@pytest.mark.parametrize(("vanishing", "tries"), [(1, 2), (9, 3)])
def test_a_socket_that_vanishes_before_the_start_is_no_failure_of_the_run(
    pen: Pen, desk: Path, tmp_path: Path, vanishing: int, tries: int
) -> None:
    place, made, ended = tmp_path / "home" / "agent.sock", [], []

    def make() -> list[str]:
        if len(made) >= vanishing:
            made.append(pen.around(["sh", "-c", "echo done"], folder=desk))
        else:
            with socket.socket(socket.AF_UNIX) as service:
                service.bind(str(place))
                made.append(pen.around(["sh", "-c", "echo done"], folder=desk))
            place.unlink()
        return made[-1]

    def start(argv: Sequence[str]) -> ProcessResult:
        ended.append(run_process(argv, cwd=desk, env=child_environment(), timeout=60))
        return ended[-1]

    result = run_penned(make, start)
    assert len(ended) == len(made) == tries
    assert ended[0].stderr.startswith("bwrap: ")
    assert (result.code, result.stdout) == ((0, "done\n") if vanishing == 1 else (1, ""))


def test_what_a_program_says_is_not_taken_for_a_failure_of_the_pen() -> None:
    words = "bwrap: Can't do it"
    for code, out, err in ((1, "", "no"), (1, "x", words), (2, "", words), (0, "", words), (1, "", "bwrap: execvp x")):
        results = iter([ProcessResult(code, out, err)])  # asked for once
        assert run_penned(lambda: ["x"], lambda _, results=results: next(results)).stderr == err


def test_what_an_agent_keeps_in_memory_is_bounded(pen: Pen, desk: Path) -> None:
    if not pen.bounds:
        pytest.skip("this bubblewrap cannot bound it")
    argv = replace(pen, own=(Path("/dev/shm"),)).around(
        ["sh", "-c", "stat -fc '%b %S' /dev/shm; echo x >/dev/shm/x; echo x >/dev/null; touch /dev/x"], folder=desk
    )
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    blocks, size = map(int, done.stdout.split())
    assert blocks * size == 2 * 1024**3
    assert [line for line in done.stderr.splitlines() if "Read-only" not in line] == []
    assert "/dev/x" in done.stderr


def test_the_network_stays(pen: Pen, desk: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 20); print('there')"
        argv = pen.around([sys.executable, "-I", "-S", "-c", code], folder=desk)
        assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "there\n"


def test_a_machine_without_bubblewrap_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageProblem, match="bubblewrap"):
        make_pen((), tmp_path)


@pytest.mark.parametrize(
    "script", ["exit 1", 'for last; do :; done; shift $(($# - 7)); exec "$@"', "echo bwrap: no permission >&2; exit 1"]
)
def test_a_pen_that_does_not_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "pen"
    programs.mkdir()
    folder.mkdir()
    (programs / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UsageProblem, match="does not shut in"):
        make_pen((), folder)


def test_a_room_inside_of_the_pen_uncovers_nothing(pen: Pen, desk: Path, repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "home" / ".netrc").write_text("private")
    script = (
        'unshare -Urm sh -c \'umount "$1"; umount -l "$2"; mount --bind "$3" /mnt; cat /mnt/home/.netrc; ls /mnt/*/a*\''
        ' sh "$@" 2>/dev/null; cat "$1/a.txt" "$2" 2>/dev/null; echo end'
    )
    for rooms in (False, True):
        argv = pen.around(
            ["sh", "-c", script, "sh", *map(str, (repo.root, tmp_path / "home" / ".netrc", tmp_path))],
            folder=desk,
            rooms=rooms,
        )
        done = subprocess.run(argv, cwd=desk, capture_output=True, text=True, check=False)
        assert done.stdout == "end\n"


def test_secrets_that_a_variable_moves_are_hidden_too(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kube").write_text("private")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(("", str(tmp_path / "kube"), str(tmp_path / "gone"))))
    for harmless in ("HISTFILE", "NETRC", "DOCKER_CONFIG"):
        monkeypatch.setenv(harmless, {"HISTFILE": "/dev/null", "NETRC": "/"}.get(harmless, os.environ["HOME"]))
    hidden = set(hidden_places(repo.config()))
    assert {tmp_path / "settings" / "gh", tmp_path / "kube"} <= hidden
    assert not hidden & {Path("/dev/null"), Path("/"), Path(os.environ["HOME"]), tmp_path / "gone"}


def test_the_place_that_a_variable_names_is_hidden_too(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere")
    places = set(hidden_places(repo.config()))
    assert {Path("/elsewhere/projects"), Path("~/.claude/projects").expanduser()} <= places
