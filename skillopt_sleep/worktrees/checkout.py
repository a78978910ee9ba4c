"""Fresh checkouts: each commit is copied once from the person's repository, then checked out as often as is needed."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from skillopt_sleep.worktrees.git import LONG_SECONDS, Git
from skillopt_sleep.worktrees.repository import Repository
from skillopt_sleep.worktrees.scratch import Scratch


class Seeds:
    """Copies of single commits, made when they are first asked for. Safe to use from several threads."""

    def __init__(self, repository: Repository, scratch: Scratch) -> None:
        self._repository, self._scratch = repository, scratch
        self._made: dict[str, Path] = {}
        self._lock = threading.Lock()

    def of(self, commit: str) -> Path:
        """The folder of a repository that holds this commit and nothing later. Raises GitFailed."""
        with self._lock:
            if commit not in self._made:
                folder = self._scratch.new("seed") / "git"
                self._repository.copy_commit(commit, folder)
                self._made[commit] = folder
            return self._made[commit]


def check_out(seed: Path, tree: Path) -> None:
    """Make a checkout of a seed's commit in `tree`, a new folder. Raises GitFailed."""
    place_git_dir(seed, tree)
    git = Git(tree, git_dir=tree / ".git", tree=tree)
    git.ask("checkout-index", "--all", "--force", "--index", seconds=LONG_SECONDS)


def place_git_dir(seed: Path, tree: Path) -> None:
    """Make `tree` a repository at the seed's commit, without its files."""
    tree.mkdir(parents=True)
    shutil.copytree(seed, tree / ".git")


def put_memory(tree: Path, name: Path, memory: str) -> None:
    """Make the file `name` of a checkout hold `memory`; a blank memory is no file. What git says of it stays quiet.

    A link there is replaced. Raises OSError where a folder on the way is none.
    """
    file = inner_folder(tree, name.parent) / name.name
    git = Git(tree, git_dir=tree / ".git", tree=tree)
    if file.is_dir() and not file.is_symlink():
        raise OSError(f"{name} is a folder")
    file.unlink(missing_ok=True)
    if memory.strip():
        file.write_bytes(memory.encode("utf-8", "replace"))
    git.ask("update-index", "--skip-worktree", "--", name.as_posix(), fine=(128,))  # it may be unknown to git
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "exclude").write_text(f"/{_pattern(name)}\n", encoding="utf-8")


def inner_folder(tree: Path, name: Path) -> Path:
    """The folder `name` of a checkout, made where it is missing.

    Raises OSError where a link or a file stands in its place or on the way: it could lead out of the checkout.
    """
    at = tree
    for part in name.parts:
        at = at / part
        if at.is_symlink() or part in ("..", "/"):
            raise OSError(f"{name} leads through a link")
        at.mkdir(exist_ok=True)
    return at


def _pattern(name: Path) -> str:
    return "".join(f"\\{char}" if char in "*?[\\ " else char for char in name.as_posix())
