"""Real repositories for tests of checkouts."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.types import TaskRecord

START, STEP = 1_700_000_000, 1_000
IGNORED = "out/\nnode_modules/\n*.log\n"


_MADE: dict[tuple[int, tuple[str, ...]], tuple[Path, tuple[str, ...]]] = {}


class Repo:
    """A repository whose commit number `n` was made at `START + n * STEP` and has `n` in a.txt."""

    def __init__(self, root: Path, commits: int = 3, *options: str) -> None:
        self.root, self.commits = root, list[str]()
        if (commits, options) in _MADE:
            stored, known = _MADE[commits, options]
            shutil.copytree(stored, root)
            self.commits += known
            return
        self._make(commits, options)
        stored = Path(tempfile.mkdtemp(prefix="skillopt-test-repo-")) / "repo"
        atexit.register(shutil.rmtree, stored.parent, ignore_errors=True)
        shutil.copytree(root, stored)
        _MADE[commits, options] = (stored, tuple(self.commits))

    def _make(self, commits: int, options: tuple[str, ...]) -> None:
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "trunk", "--template=", *options)
        (self.root / ".git" / "hooks").mkdir()
        for number in range(commits):
            files = {"a.txt": f"{number}\n", "CLAUDE.md": f"committed {number}\n", ".gitignore": IGNORED}
            self.commit(files | {"src/deep/b.py": "x = 1\n", "bin.dat": "\0\1"}, f"change {number}")

    def git(self, *arguments: str, **variables: str) -> str:
        return run_git(self.root, *arguments, **variables)

    def commit(self, files: dict[str, str], words: str = "change") -> str:
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text, encoding="utf-8")
        self.git("add", "-A")
        when = f"{START + len(self.commits) * STEP} +0000"
        self.git("commit", "-q", "-m", words, GIT_COMMITTER_DATE=when, GIT_AUTHOR_DATE=when)
        self.commits.append(self.git("rev-parse", "HEAD"))
        return self.commits[-1]

    def config(self, folder: str = "", **settings: Any) -> SleepConfig:
        return SleepConfig(
            {"invoked_project": str(self.root / folder), "backend": "mock", "replay_mode": "worktree", **settings}
        )

    def task(self, commit: str = "", folder: str = "", checks: list[tuple[str, str]] | None = None) -> TaskRecord:
        rows = [{"op": op, "arg": arg} for op, arg in checks or []]
        place = {"commit": commit or self.commits[-1], "folder": folder}
        return TaskRecord("t1", str(self.root), "do it", judge={"checks": rows}, workspace=place)


def run_git(folder: Path, *arguments: str, **variables: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **variables}
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder: kind and rights, time of the last change, content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        about = path.lstat()
        content: object = path.readlink() if path.is_symlink() else b""
        if stat.S_ISREG(about.st_mode):
            content = path.read_bytes()
        found[str(path)] = (about.st_mode, about.st_mtime_ns, about.st_ctime_ns, content)
    return found
