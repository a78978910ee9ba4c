"""Attempts from end to end: a checkout, an agent in its pen, what it changed, what the commands say of that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sleep.worktrees.repos import Repo, run_git, snapshot

from skillopt_sleep.errors import CallFailed, UsageProblem
from skillopt_sleep.judges import Undecidable
from skillopt_sleep.worktrees import Desk, Outcome, Work, Workshop, open_workshop

Shop = Callable[..., Workshop]


def work(desk: Desk, script: str) -> str:
    done = subprocess.run(
        desk.penned(["sh", "-c", script]), cwd=desk.folder, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_an_attempt_from_end_to_end(repo: Repo, shop: Workshop) -> None:
    (repo.root / "later.txt").write_text("not committed")
    before = snapshot(repo.root)
    task = repo.task(
        repo.commits[1],
        "src",
        [("command", "grep -q 7 a.txt"), ("command", "test -e out"), ("file_changed", "**"),
         ("file_unchanged", "src/**"), ("diff_contains", "SEVEN"), ("contains", "not ours")],
    )  # fmt: skip
    space = shop.workspace(task, "under trial\n")
    with space.open() as desk:
        assert desk.folder.name == "src"
        script = (
            "cat ../CLAUDE.md; git status --short; git log --all --format=%H; git rev-parse -q --verify HEAD~5;"
            f" git cat-file -e {repo.commits[2]} 2>/dev/null || echo none; git reflog; git stash list; git remote;"
            " echo 7 seven >>../a.txt; mkdir ../out; echo x >../out/x"
        )
        assert work(desk, script).split() == ["under", "trial", repo.commits[1], repo.commits[0], "none"]
        done = desk.finish()
    assert done.files == ("a.txt",)
    assert "+7 seven" in done.diff
    assert [check.passed for check in done.checks] == [True, False, True, True, True]
    assert done.checks[2] == Outcome("file_changed", "**", True)
    assert Work.from_dict(done.to_dict()) == done
    assert snapshot(repo.root) == before
    assert not desk.folder.exists()


def test_nothing_done_is_no_error(repo: Repo, shop: Workshop) -> None:
    with shop.workspace(repo.task(checks=[("file_changed", "**")]), "").open() as desk:
        assert not (desk.folder / "CLAUDE.md").exists()
        assert desk.finish() == Work("", (), (Outcome("file_changed", "**", False),))


def test_secrets_of_a_diff_are_masked_but_the_commands_see_them(repo: Repo, shop: Workshop) -> None:
    key = "ghp_" + "a1B2" * 9
    with shop.workspace(
        repo.task(checks=[("command", f"grep -q {key} new"), ("diff_contains", key)]), ""
    ).open() as desk:
        (desk.folder / "new").write_text(f"{key}\n")
        done = desk.finish()
    assert key not in done.diff
    assert [check.passed for check in done.checks] == [True, True]


def test_the_agents_leftovers_do_not_reach_the_commands(repo: Repo, open_shop: Shop) -> None:
    (repo.root / "node_modules").mkdir()
    (repo.root / "node_modules" / "real").write_text("real\n")
    shop = open_shop(repo, replay_links=["node_modules"])
    check = "cat node_modules/real && test ! -e node_modules/fake && git config core.evil; test ! -e .git/hooks/x"
    with shop.workspace(repo.task(checks=[("command", check)]), "").open() as desk:
        said = work(
            desk, "cat node_modules/real; echo x >node_modules/real; git config core.evil yes; mkdir .git/hooks"
        )
        assert said.startswith("real\n")
        assert "Read-only" in said
        (desk.folder / "node_modules").mkdir(exist_ok=True)
        (desk.folder / "node_modules" / "fake").write_text("x")
        (desk.folder / ".gitignore").write_text("")
        done = desk.finish()
    assert done.files == (".gitignore",)
    assert done.checks[0].passed
    assert done.checks[0].note == "real"
    assert (repo.root / "node_modules" / "real").read_text() == "real\n"


def test_a_command_that_cannot_start_is_undecided_and_too_much_is_refused(repo: Repo, shop: Workshop) -> None:
    with (
        shop.workspace(repo.task(checks=[("command", "no-such-thing")]), "").open() as desk,
        pytest.raises(Undecidable),
    ):
        desk.finish()
    with shop.workspace(repo.task(), "").open() as desk:
        (desk.folder / "noise").write_bytes(os.urandom(3 * 1024**2))
        with pytest.raises(CallFailed, match="too much") as caught:
            desk.finish()
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param("rm check.sh", id="removed"),
        pytest.param("chmod -x check.sh", id="no program any more"),
        pytest.param("printf '#!/bin/sh\\r\\n' >check.sh", id="line ends"),
        pytest.param("printf '#!/bin/sh\\necho bwrap: no >&2; exit 1\\n' >check.sh", id="tells of no sandbox"),
    ],
)
def test_a_command_that_the_changes_keep_from_starting_fails(repo: Repo, shop: Workshop, spoil: str) -> None:
    (repo.root / "check.sh").write_text("#!/bin/sh\nexit 1\n")
    (repo.root / "check.sh").chmod(0o755)
    repo.commit({})
    task = repo.task(checks=[("command", "./check.sh"), ("command", "true")])
    with shop.workspace(task, "").open() as desk:
        work(desk, spoil)
        first, second = desk.finish().checks
    assert (first.passed, second.passed) == (False, True)
    assert "check.sh" in first.note


def test_a_folder_or_memory_that_leads_out_of_a_checkout_is_refused(
    repo: Repo, open_shop: Shop, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo.root / "src" / "deep" / "b.py").unlink()
    (repo.root / "src" / "deep").rmdir()
    (repo.root / "src" / "deep").symlink_to(outside)
    old = repo.commit({})
    (repo.root / "src" / "deep").unlink()
    repo.commit({"src/deep/b.py": "x = 1\n"})
    shop = open_shop(repo, "src/deep")
    with pytest.raises(CallFailed, match="link"), shop.workspace(repo.task(old, "a"), "memory").open():
        pass
    assert not list(outside.iterdir())
    for folder in ("..", "/etc", "a/../../b", "a\0b", ".git"):
        with pytest.raises(UsageProblem, match=r"workspace\.folder"):
            shop.workspace(repo.task(folder=folder), "")
    with pytest.raises(CallFailed, match="No checkout"), shop.workspace(repo.task("f" * 40), "").open():
        pass
    with pytest.raises(UsageProblem, match="no commit"):
        shop.workspace(repo.task("--all"), "")


def test_a_project_in_a_folder_has_its_own_memory(repo: Repo, open_shop: Shop) -> None:
    shop = open_shop(repo, "src/deep")
    with shop.workspace(repo.task(folder="src/deep"), "inner\n").open() as desk:
        assert (desk.folder / "CLAUDE.md").read_text() == "inner\n"
        assert (desk.folder / "../../CLAUDE.md").read_text() == "committed 2\n"
        assert desk.finish().files == ()


def test_commands_run_in_the_projects_folder_wherever_in_it_the_agent_worked(repo: Repo, open_shop: Shop) -> None:
    shop = open_shop(repo, "src")
    shop.preflight(repo.commits[-1], ["cat deep/b.py"])
    with shop.workspace(repo.task(folder="src/deep", checks=[("command", "test -e deep/new")]), "").open() as desk:
        (desk.folder / "new").write_text("x")
        assert [check.passed for check in desk.finish().checks] == [True]


def test_a_commit_is_asked_for_its_folders(repo: Repo, shop: Workshop) -> None:
    found = [shop.has_folder(repo.commits[0], name) for name in ("", ".", "src", "src/deep", "src\\deep")]
    assert all(found)
    assert not any(shop.has_folder(repo.commits[0], name) for name in ("a.txt", "gone", "src/deep/b.py", "../x"))


def test_identity_says_what_decides_about_the_work(repo: Repo, shop: Workshop, open_shop: Shop) -> None:
    task = repo.task(checks=[("command", "true")])
    first = shop.workspace(task, "memory")
    assert first.identity == shop.workspace(task, "other memory").identity
    assert first.identity == shop.workspace(repo.task("HEAD", checks=[("command", "true")]), "").identity
    same, other = [("command", "true")], [("command", "false")]
    others = [repo.task(repo.commits[0], "", same), repo.task(folder="src", checks=same), repo.task(checks=other)]
    assert len({shop.workspace(other, "").identity for other in others} | {first.identity}) == 4
    with open_shop(repo, replay_minutes=3) as longer:
        assert longer.workspace(task, "memory").identity != first.identity
    assert repo.commits[-1][:12] in first.about
    assert "\n" not in first.about


def test_several_attempts_at_a_time_keep_apart(repo: Repo, shop: Workshop) -> None:
    def attempt(number: int) -> Work:
        with shop.workspace(repo.task(repo.commits[number % 2]), "").open() as desk:
            work(desk, f"echo {number} >new; ls -A ../..")
            return desk.finish()

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(attempt, range(4)))
    assert [f"+{number}\n" in one.diff for number, one in enumerate(done)] == [True] * 4
    place = repo.config().state_dir / "worktrees"
    assert len([path for path in place.glob("*/*") if path.name.startswith("seed")]) == 2


def test_closing_removes_everything_however_it_is_closed_to_others(repo: Repo, open_shop: Shop) -> None:
    shop = open_shop(repo)
    place = repo.config().state_dir / "worktrees"
    with pytest.raises(RuntimeError), shop.workspace(repo.task(), "").open() as desk:
        inner = desk.folder / "closed" / "deep"
        inner.mkdir(parents=True)
        (inner / "x").write_text("x")
        inner.chmod(0)
        inner.parent.chmod(0o500)
        raise RuntimeError
    assert not desk.folder.exists()
    assert place.stat().st_mode & 0o077 == 0
    shop.close()
    shop.close()
    assert not list(place.iterdir())


def test_what_a_killed_night_left_is_removed_by_the_next_and_a_living_one_is_let_be(
    repo: Repo, open_shop: Shop, tmp_path: Path
) -> None:
    living = open_shop(repo)
    place = repo.config().state_dir / "worktrees"
    kept = {path.name for path in place.iterdir()}
    code = (
        "import sys, time\n"
        "from skillopt_sleep.config import SleepConfig\n"
        "from skillopt_sleep.worktrees.scratch import Scratch\n"
        "from pathlib import Path\n"
        f"scratch = Scratch(Path({str(place)!r}))\n"
        "(scratch.new('desk') / 'left').write_text('x')\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "up\n"
    assert len(list(place.iterdir())) == len(kept) + 2
    open_shop(repo).close()
    assert len(list(place.iterdir())) == len(kept) + 2
    killed.send_signal(signal.SIGKILL)
    killed.wait(20)
    killed.stdout.close()
    (place / "no lock").mkdir()
    open_shop(repo).close()
    assert {path.name for path in place.iterdir()} == kept
    with living.workspace(repo.task(), "").open() as desk:
        assert desk.finish().files == ()


def test_a_killed_agent_leaves_no_process(repo: Repo, shop: Workshop) -> None:
    token = f"{time.time_ns()}"
    with shop.workspace(repo.task(), "").open() as desk:
        argv = desk.penned(["sh", "-c", f"(setsid sleep 6{token} &) ; echo up; sleep 6{token}"])
        agent = subprocess.Popen(argv, cwd=desk.folder, stdout=subprocess.PIPE, text=True)
        assert agent.stdout is not None
        assert agent.stdout.readline() == "up\n"
        agent.kill()
        agent.communicate(timeout=20)
        until = time.monotonic() + 10
        while _lives(token) and time.monotonic() < until:
            time.sleep(0.01)
        assert not _lives(token)


def _lives(token: str) -> bool:
    found = False
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found = found or token.encode() in entry.read_bytes()
        except OSError:
            continue
    return found


def test_a_machine_without_git_is_told_so(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageProblem, match="needs git"):
        open_workshop(repo.config())


def test_a_linked_worktree_and_its_history_are_hidden(repo: Repo, open_shop: Shop, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "w", "../linked")
    linked = Repo.__new__(Repo)
    linked.root, linked.commits = tmp_path / "linked", repo.commits
    before = snapshot(tmp_path / "linked")
    shop = open_shop(linked)
    with shop.workspace(linked.task(linked.commits[0]), "").open() as desk:
        said = work(desk, f"echo x >new; test -e '{repo.root}/.git/HEAD' && echo seen; git log --all --format=%H")
        assert said.split() == [linked.commits[0]]
        assert desk.finish().files == ("new",)
    assert snapshot(tmp_path / "linked") == before
    assert run_git(repo.root, "worktree", "list", "--porcelain").count("worktree ") == 2
