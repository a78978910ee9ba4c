"""The person's repository: which commit was the newest when, what lies in it, copies that hold nothing later."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sleep.worktrees.repos import START, STEP, Repo, run_git, snapshot

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.worktrees import open_workshop
from skillopt_sleep.worktrees.git import GitFailed
from skillopt_sleep.worktrees.repository import DEPTH, Repository, find_repository


def found(repo: Repo) -> Repository:
    return find_repository(repo.root)


def test_the_newest_commit_that_is_not_younger(repo: Repo) -> None:
    there = found(repo)
    assert there.commit_at(START + STEP) == repo.commits[1]
    assert there.commit_at(START + STEP - 0.5) == repo.commits[0]
    assert there.commit_at(START + 99 * STEP) == repo.commits[-1]
    for when in (START - 1, 0, -5, float("nan"), float("inf")):
        assert there.commit_at(when) == ""


def test_a_branch_counts_when_it_is_there_and_only_its_own_line(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "feature/x", repo.commits[0])
    side = repo.commit({"side.txt": "1"})
    repo.git("checkout", "-q", "trunk")
    merged = START + 9 * STEP
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "feature/x", GIT_COMMITTER_DATE=f"{merged} +0000")
    there = found(repo)
    assert there.commit_at(merged - 1) == repo.commits[2]
    assert there.commit_at(merged - 1, "feature/x") == side
    assert there.commit_at(merged - 1, "gone") == repo.commits[2]


NO_BRANCHES = (
    *("--all", "-n1", "--output=/tmp/x", "../../HEAD", "trunk~1", "trunk..x", "@{-1}", "a\nb", "a\0b", "trunk:a.txt"),
    *("$(touch x)", ";touch x", "refs/heads/trunk", "HEAD", "trunk^{tree}", "é" * 3000, "\ud800"),
)


def test_a_branch_of_a_transcript_is_a_name_and_nothing_else(repo: Repo) -> None:
    repo.git("tag", "v1", repo.commits[0])
    before, there = snapshot(repo.root), found(repo)
    for branch in NO_BRANCHES:
        assert there.commit_at(START + 9 * STEP, branch) == repo.commits[-1], branch
    assert snapshot(repo.root) == before


def test_a_revision_becomes_a_full_name_or_a_problem(repo: Repo) -> None:
    repo.git("tag", "-a", "v1", "-m", "words", repo.commits[0])
    there = found(repo)
    assert there.resolve("v1") == repo.commits[0]
    assert there.resolve("HEAD") == there.resolve(repo.commits[2][:10]) == there.resolve("trunk") == repo.commits[2]
    for wrong in ("", " ", "gone", "--all", "-h", "HEAD:a.txt", "HEAD^{tree}", "f" * 40, "a\nb", "a\0", "\ud800"):
        with pytest.raises(UsageProblem, match="no commit"):
            there.resolve(wrong)


def test_a_touched_file_lies_inside_by_its_name(repo: Repo, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(repo.root, target_is_directory=True)
    top, there = str(repo.root), find_repository(link)
    assert there.inside("a.txt", top) == there.inside(f"{top}/a.txt", "") == "a.txt"
    assert there.inside("../a.txt", f"{top}/src") == there.inside(f"{link}/a.txt", "/") == "a.txt"
    assert there.inside("src/not there.py", str(link)) == "src/not there.py"
    outside = ["../x", "/etc/passwd", f"{top}x/a.txt", top, f"{top}/..", "", "a\0b", ".git/config", f"{top}/sub/.GIT/x"]
    assert [there.inside(path, top) for path in outside] == [None] * len(outside)
    assert there.inside("a.txt", "src") is None


def test_a_copy_has_the_commit_and_its_near_past_and_nothing_else(repo: Repo, tmp_path: Path) -> None:
    for name in ("later branch", "later tag", "stash"):
        (repo.root / name).write_text(name)
        repo.git("add", "-A")
        if name == "stash":
            repo.git("stash", "-q")
            continue
        repo.git("commit", "-q", "-m", name)
        repo.git(*(("branch", "b") if name == "later branch" else ("tag", "-a", "v9", "-m", "x")))
    later = [repo.git("rev-parse", name) for name in ("b", "v9", "v9^{commit}", "refs/stash", "b:later branch")]
    (repo.root / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch /tmp/ran\n")
    before = snapshot(repo.root)
    copy = tmp_path / "copies" / "one"
    found(repo).copy_commit(repo.commits[1], copy)
    assert snapshot(repo.root) == before
    assert run_git(copy, "log", "--all", "--format=%H").split() == [repo.commits[1], repo.commits[0]]
    assert run_git(copy, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    objects = run_git(copy, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert not set(later) & set(objects)
    assert repo.commits[2] not in objects
    assert run_git(copy, "fsck", "--full", "--lost-found", "--no-dangling") == ""
    assert run_git(copy, "remote") == ""
    assert not (copy / "hooks").exists()
    assert not (copy / "objects" / "info" / "alternates").exists()
    assert str(repo.root) not in "".join(
        path.read_text("utf-8", "replace") for path in copy.iterdir() if path.is_file()
    )


def test_the_past_is_bounded(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "long", 1)
    script = "".join(
        f"commit refs/heads/trunk\ncommitter A <a@b> {START + number} +0000\ndata 1\nx\n"
        f"{f'from refs/heads/trunk^0{chr(10)}' if number == 1 else ''}M 644 inline n.txt\ndata {len(str(number))}\n"
        f"{number}\n"
        for number in range(1, 2 * DEPTH)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repo.root, input=script, text=True, check=True)
    found(repo).copy_commit(repo.git("rev-parse", "trunk"), tmp_path / "copy")
    assert run_git(tmp_path / "copy", "rev-list", "--count", "--all") == str(DEPTH)


def test_a_commit_that_is_not_there_cannot_be_copied(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="fetch"):
        found(repo).copy_commit("f" * 40, tmp_path / "copy")


def linked_worktree(tmp_path: Path) -> tuple[Path, Path]:
    repo = Repo(tmp_path / "main")
    repo.git("worktree", "add", "-q", "-b", "w", "../work tree")
    return tmp_path / "work tree", repo.root / ".git"


def submodule(tmp_path: Path) -> tuple[Path, Path]:
    inner, outer = Repo(tmp_path / "inner"), Repo(tmp_path / "outer")
    outer.git("submodule", "add", "-q", str(inner.root), "lib")
    return outer.root / "lib", outer.root / ".git" / "modules" / "lib"


def shallow_clone(tmp_path: Path) -> tuple[Path, Path]:
    repo = Repo(tmp_path / "far")
    run_git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo.root}", "near")
    return tmp_path / "near", tmp_path / "near" / ".git"


def borrowing_clone(tmp_path: Path) -> tuple[Path, Path]:
    repo = Repo(tmp_path / "lender")
    run_git(tmp_path, "clone", "-q", "--shared", str(repo.root), "borrower")
    return tmp_path / "borrower", repo.root / ".git" / "objects"


def odd_name(tmp_path: Path) -> tuple[Path, Path]:
    repo = Repo(tmp_path / "ünï %41 'q\" $x *?[1]:~")
    return repo.root, repo.root / ".git"


@pytest.mark.parametrize("make", [linked_worktree, submodule, shallow_clone, borrowing_clone, odd_name])
def test_repositories_of_every_kind(make: Callable[[Path], tuple[Path, Path]], tmp_path: Path) -> None:
    root, history = make(tmp_path)
    before = snapshot(tmp_path)
    there = find_repository(root)
    assert there.root == root
    assert {root, history} <= set(there.private)
    there.copy_commit(there.resolve("HEAD"), tmp_path / "copy")
    assert run_git(tmp_path / "copy", "cat-file", "-p", "HEAD:a.txt") == "2"
    shutil.rmtree(tmp_path / "copy")
    after = snapshot(tmp_path)
    assert {path: about[-1] for path, about in after.items()} == {path: about[-1] for path, about in before.items()}


def test_a_repository_of_longer_names(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r", 2, "--object-format=sha256")
    there = found(repo)
    assert there.commit_at(START) == repo.commits[0]
    there.copy_commit(repo.commits[0], tmp_path / "copy")
    assert run_git(tmp_path / "copy", "rev-parse", "HEAD") == repo.commits[0]


def test_a_project_may_be_a_folder_of_the_repository(repo: Repo) -> None:
    there = find_repository(repo.root / "src" / "deep")
    assert (there.root, there.folder) == (repo.root, Path("src/deep"))
    assert there.inside("../../a.txt", str(repo.root / "src" / "deep")) == "a.txt"


def test_what_is_no_repository_is_refused_in_one_sentence(tmp_path: Path, repo: Repo) -> None:
    plain, empty, bare = tmp_path / "plain", tmp_path / "empty", tmp_path / "bare"
    for folder in (plain, empty, bare):
        folder.mkdir()
    run_git(empty, "init", "-q")
    run_git(bare, "init", "-q", "--bare")
    told = ((plain, "in no git repository"), (bare, "a bare repository; a project folder"), (empty, "no commit yet"))
    for folder, words in told:
        with pytest.raises(UsageProblem, match=words):
            find_repository(folder)
    with pytest.raises(UsageProblem, match="in no git repository"):
        find_repository(tmp_path / "gone")


def test_files_that_lie_elsewhere_are_refused(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    repo.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(UsageProblem, match=r"core\.worktree"):
        find_repository(repo.root)


@pytest.mark.parametrize("way", ["file", "ext", "ssh"])
def test_what_a_partial_clone_lacks_is_fetched_from_nowhere(repo: Repo, tmp_path: Path, way: str) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    clone, ran, program = tmp_path / "clone", tmp_path / "ran", tmp_path / "evil"
    run_git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{repo.root}", str(clone))
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\nexec git-upload-pack \"$@\"\n")
    program.chmod(0o755)
    address = {"file": f"file://{repo.root}", "ext": f"ext::{program}", "ssh": "ssh://there/r"}[way]
    settings = {"remote.origin.url": address, "remote.origin.uploadpack": program, f"protocol.{way}.allow": "always"}
    for key, value in (settings | {"core.sshCommand": program}).items():
        run_git(clone, "config", key, str(value))
    there = find_repository(clone)
    with pytest.raises(GitFailed):
        there.copy_commit(repo.commits[0], tmp_path / "copy")
    with pytest.raises(UsageProblem):
        there.resolve("1" * 40)
    assert not ran.exists()


def test_a_repository_that_holds_the_home_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repo.root / "src"))
    with pytest.raises(UsageProblem, match="holds your home"):
        open_workshop(repo.config())


def test_no_program_of_the_repository_runs(repo: Repo, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "uploadpack.packObjectsHook", "core.alternateRefsCommand",
                "core.sshCommand", "core.askPass", "diff.external", "filter.x.smudge", "gpg.program"):  # fmt: skip
        repo.git("config", key, str(program))
    for hook in ("pre-auto-gc", "post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(program, repo.root / ".git" / "hooks" / hook)
    shutil.copy(program, repo.root / "git")
    there = found(repo)
    there.copy_commit(there.commit_at(START + STEP), tmp_path / "copy")
    assert not ran.exists()
