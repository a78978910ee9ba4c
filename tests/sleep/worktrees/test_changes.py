"""What changed in a checkout is told whatever an agent has left there; nothing of that runs, hangs or leads astray."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from sleep.worktrees.repos import Repo, run_git, snapshot

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.worktrees.changes import Changed, Changes
from skillopt_sleep.worktrees.checkout import check_out, inner_folder, put_memory
from skillopt_sleep.worktrees.repository import find_repository

MEMORY = Path("CLAUDE.md")


class Bench:
    """A checkout of the last commit, with what changes in it."""

    def __init__(self, repo: Repo, place: Path, *, memory: str = "trial\n", skipped: tuple[Path, ...] = ()) -> None:
        self.place, self.tree = place, place / "tree"
        self.seed = place / "seed" / "git"
        there = find_repository(repo.root)
        there.copy_commit(repo.commits[-1], self.seed)
        check_out(self.seed, self.tree)
        put_memory(self.tree, MEMORY, memory)
        self.changes = Changes(
            self.seed, self.tree, place / "changes", there.object_format, memory=MEMORY, skipped=skipped
        )

    def take(self) -> Changed:
        return self.changes.take()

    def again(self, name: str = "again") -> Path:
        tree = self.place / name
        tree.mkdir()
        self.changes.put_files(tree)
        return tree


@pytest.fixture
def bench(repo: Repo, tmp_path: Path) -> Bench:
    return Bench(repo, tmp_path / "bench")


def test_a_fresh_checkout_has_the_files_and_no_changes(bench: Bench, repo: Repo) -> None:
    assert run_git(bench.tree, "rev-parse", "HEAD") == repo.commits[-1]
    assert run_git(bench.tree, "status", "--short") == ""
    assert (bench.tree / "a.txt").read_text() == "2\n"
    assert bench.take() == Changed((), "")


def test_changed_new_removed_and_binary_files_come_over(bench: Bench) -> None:
    tree = bench.tree
    (tree / "a.txt").write_bytes(b"caf\xe9\r\n")
    (tree / "bin.dat").write_bytes(bytes(range(256)))
    (tree / "new dir").mkdir()
    odd = 'new dir/a "b"\n\tü.txt'
    (tree / odd).write_text("x")
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o755)
    shutil.rmtree(tree / "src")
    (tree / "src").write_text("a file now")
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "empty").mkdir()
    changed = bench.take()
    assert changed.files == tuple(sorted(["a.txt", "bin.dat", odd, "run", "src", "src/deep/b.py", "link"]))
    assert "+/etc/passwd" in changed.diff
    again = bench.again()
    assert (again / "a.txt").read_bytes() == b"caf\xe9\r\n"
    assert (again / "bin.dat").read_bytes() == bytes(range(256))
    assert (again / odd).read_text() == "x"
    assert os.access(again / "run", os.X_OK)
    assert (again / "src").is_file()
    assert (again / "link").readlink() == Path("/etc/passwd")
    assert (again / "CLAUDE.md").read_text() == "trial\n"


def test_what_git_ignores_is_not_among_the_changes(bench: Bench) -> None:
    (bench.tree / "out" / "deep").mkdir(parents=True)
    (bench.tree / "out" / "deep" / "x.o").write_text("x")
    (bench.tree / "src" / "a.log").write_text("x")
    (bench.tree / "node_modules").symlink_to("/usr")
    (bench.tree / "kept").mkdir()
    (bench.tree / "kept" / ".gitignore").write_text("no*\n!now\n")
    for name in ("no", "now", "yes", ":(top)x", "*.txt", "-n"):
        (bench.tree / "kept" / name).write_text(name)
    files = bench.take().files
    assert files == ("kept/*.txt", "kept/-n", "kept/.gitignore", "kept/:(top)x", "kept/now", "kept/yes", "node_modules")


def test_the_memory_under_trial_is_no_change_and_the_agents_own_is_one(bench: Bench) -> None:
    (bench.tree / "CLAUDE.md").write_text("mine\n")
    changed = bench.take()
    assert changed.files == ("CLAUDE.md",)
    assert "-trial\n+mine\n" in changed.diff


@pytest.mark.parametrize(
    ("kind", "memory"),
    [("tracked", ""), ("tracked", " \n"), ("link", "new\n"), ("link", ""), ("absent", "new\n"), ("ignored", "new\n")],
)
def test_the_memory_file_is_what_is_under_trial(repo: Repo, tmp_path: Path, memory: str, kind: str) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("outside")
    if kind != "tracked":
        (repo.root / "CLAUDE.md").unlink()
    if kind == "link":
        (repo.root / "CLAUDE.md").symlink_to(outside)
    repo.commit({".gitignore": "CLAUDE.md\n"} if kind == "ignored" else {"z": kind + memory})
    bench = Bench(repo, tmp_path / "bench", memory=memory)
    file = bench.tree / "CLAUDE.md"
    assert (file.read_text() if file.exists() else "") == memory.strip() + "\n" * bool(memory.strip())
    assert not file.is_symlink()
    assert outside.read_text() == "outside"
    assert run_git(bench.tree, "status", "--short") == ""
    assert bench.take().files == ()


def test_no_folder_of_a_checkout_leads_out_of_it(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.mkdir()
    (tree / "link").symlink_to(outside)
    (tree / "file").write_text("x")
    for name in ("link", "link/x", "../outside", "file/x", "/etc"):
        with pytest.raises(OSError):
            inner_folder(tree, Path(name))
    assert inner_folder(tree, Path("new/folder")).is_dir()
    assert not list(outside.iterdir())


def test_settings_that_the_agent_wrote_run_nothing(bench: Bench, tmp_path: Path) -> None:
    ran, program = tmp_path / "ran", tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\ncat\n")
    program.chmod(0o755)
    keys = ("core.fsmonitor", "diff.external", "diff.x.command", "diff.x.textconv", "filter.x.clean", "filter.x.smudge",
            "filter.x.process", "core.hooksPath", "core.sshCommand", "merge.x.driver", "core.pager")  # fmt: skip
    for folder in (bench.tree, bench.tree / "nested"):
        folder.mkdir(exist_ok=True)
        run_git(folder, "init", "-q")
        for key in keys:
            run_git(folder, "config", key, str(program))
        (folder / ".git" / "hooks").mkdir(exist_ok=True)
        for hook in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"):
            shutil.copy(program, folder / ".git" / "hooks" / hook)
        (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (bench.tree / "a.txt").write_text("changed\n")
    (bench.tree / "nested" / "x.txt").write_text("x")
    changed = bench.take()
    assert changed.files == (".gitattributes", "a.txt", "nested/.gitattributes", "nested/x.txt")
    assert "+changed" in changed.diff
    assert (bench.again() / "nested" / "x.txt").read_text() == "x"
    assert not ran.exists()


def test_no_attribute_keeps_a_change_out_of_the_diff(bench: Bench) -> None:
    (bench.tree / ".gitattributes").write_text("* -diff binary\n")
    (bench.tree / "a.txt").write_text("seen\n")
    assert "+seen" in bench.take().diff


def test_a_broken_or_moved_repository_of_the_checkout_does_not_matter(bench: Bench, tmp_path: Path) -> None:
    shutil.rmtree(bench.tree / ".git")
    (bench.tree / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    (bench.tree / "src" / ".GIT").mkdir()
    (bench.tree / "src" / ".GIT" / "config").write_text("x")
    (bench.tree / "a.txt").write_text("changed\n")
    assert bench.take().files == ("a.txt",)


def test_pipes_hang_nothing_and_links_lead_nowhere(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "deep").mkdir()
    (outside / "deep" / "b.py").write_text("secret of the machine\n")
    shutil.rmtree(bench.tree / "src")
    (bench.tree / "src").symlink_to(outside)
    (bench.tree / "sub").mkdir()
    (bench.tree / ".gitignore").unlink()
    for name in ("pipe", ".gitignore", ".gitattributes", "sub/.gitignore", "sub/.gitattributes"):
        os.mkfifo(bench.tree / name)
    (bench.tree / "sub" / "new").write_text("new")
    before = snapshot(outside)
    changed = bench.take()
    assert changed.files == (".gitignore", "src", "src/deep/b.py", "sub/new")
    assert "secret of the machine" not in changed.diff
    assert (bench.again() / "src").is_symlink()
    assert snapshot(outside) == before


def test_closed_files_are_opened(bench: Bench) -> None:
    (bench.tree / "a.txt").write_text("changed\n")
    (bench.tree / "a.txt").chmod(0)
    (bench.tree / "src" / "deep").chmod(0)
    assert bench.take().files == ("a.txt",)


def test_too_much_is_refused_in_a_sentence(repo: Repo, tmp_path: Path) -> None:
    def sparse(tree: Path) -> None:
        with (tree / "huge").open("wb") as file:
            file.truncate(1024**3)

    def random(tree: Path) -> None:
        (tree / "noise").write_bytes(os.urandom(3 * 1024**2))

    def removed(tree: Path) -> None:
        (tree / "large").unlink()

    def nested(tree: Path) -> None:
        (tree / "/".join(["d"] * 300)).mkdir(parents=True)

    for number, (spoil, words) in enumerate(
        (
            (sparse, "bytes of changed files"),
            (random, "a patch of more than"),
            (nested, "deep"),
            (removed, "bytes of changed files"),
        )
    ):
        if spoil is removed:  # last: a checkout of so much takes a second
            with (repo.root / "large").open("wb") as file:
                file.truncate(65 * 1024**2)
            repo.commit({})
        bench = Bench(repo, tmp_path / str(number))
        spoil(bench.tree)
        with pytest.raises(CallFailed, match=f"too much.*{words}") as caught:
            bench.take()
        assert caught.value.kind == "refused"


def test_a_name_that_is_no_text_is_refused_when_it_is_new(repo: Repo, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (repo.root / name).write_text("old")
    repo.commit({})
    bench = Bench(repo, tmp_path / "bench")
    (bench.tree / "a.txt").write_text("changed")
    assert bench.take().files == ("a.txt",)
    (bench.tree / (name + "2")).write_text("new")
    with pytest.raises(CallFailed, match="not UTF-8"):
        bench.take()


def test_submodules_and_skipped_places_are_left_alone(repo: Repo, tmp_path: Path) -> None:
    inner = Repo(tmp_path / "inner", 1)
    repo.git("submodule", "add", "-q", str(inner.root), "lib")
    repo.commit({})
    bench = Bench(repo, tmp_path / "bench", skipped=(Path("vendor/x"),))
    assert not list((bench.tree / "lib").iterdir())
    for place in ("lib", "vendor/x"):
        (bench.tree / place).mkdir(parents=True, exist_ok=True)
        (bench.tree / place / "new").write_text("x")
    (bench.tree / "vendor" / "y").write_text("y")
    assert bench.take().files == ("vendor/y",)


def test_line_ends_that_the_repository_wants_are_no_change(repo: Repo, tmp_path: Path) -> None:
    repo.commit({".gitattributes": "*.bat text eol=crlf\n", "x.bat": "one\ntwo\n"})
    bench = Bench(repo, tmp_path / "bench")
    assert (bench.tree / "x.bat").read_bytes() == b"one\r\ntwo\r\n"
    (bench.tree / "x.bat").write_bytes(b"one\r\nthree\r\n")
    assert "-two\n+three\n" in bench.take().diff
    assert (bench.again() / "x.bat").read_bytes() == b"one\r\nthree\r\n"


def test_a_name_that_no_commit_can_have_is_passed_over(bench: Bench) -> None:
    (bench.tree / "git~1").mkdir()
    (bench.tree / "git~1" / "config").write_text("x")
    assert bench.take().files == ()
