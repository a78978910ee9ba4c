"""The person's repository, which is only read: its commits, its places, copies of its commits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.show import terminal_line
from skillopt_sleep.worktrees.git import LONG_SECONDS, SERVED, Git

DEPTH = 50
FULL_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with files. `root`: its top; `folder`: the project in it, relative; `alias`: another name of `root`.

    `private`: every folder that holds its files or its history, which may be several.
    """

    root: Path
    folder: Path
    alias: Path
    private: tuple[Path, ...]
    object_format: str = "sha1"

    def commit_at(self, when_epoch: float, branch: str = "") -> str:
        """The newest first-parent commit not younger than a time, of a branch if it is there, else of HEAD; or ""."""
        if not 0 < when_epoch < 2**40:
            return ""
        git, start = Git(self.root), "HEAD"
        name = f"refs/heads/{branch}"
        if branch and branch.isprintable() and git.line("check-ref-format", "--normalize", name) == name:
            start = name if git.line("rev-parse", "--verify", "--quiet", "--end-of-options", name) else start
        found = git.line(
            "rev-list", "-1", "--first-parent", f"--min-age={int(when_epoch)}", "--end-of-options", start, "--"
        )
        return found if FULL_NAME.fullmatch(found) else ""

    def resolve(self, rev: str) -> str:
        """The full name of a commit. Raises UsageProblem when there is none of that name."""
        found = ""
        if rev.strip() and rev.isprintable() and not rev.startswith("-"):
            found = Git(self.root).line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        if not FULL_NAME.fullmatch(found):
            raise UsageProblem(f"{self.root} has no commit {terminal_line(repr(rev), 80)}.")
        return found

    def has_folder(self, commit: str, folder: str) -> bool:
        """Whether a commit has a folder of this name, relative to the top; "" is the top."""
        name = PurePosixPath(folder.replace("\\", "/"))
        return not name.parts or Git(self.root).line("cat-file", "-t", f"{commit}:{name}") == "tree"

    def inside(self, path: str, cwd: str) -> str | None:
        """Where in the repository a file lies, judged by its name alone; None for one outside and for git's own."""
        if not path or "\0" in path or "\0" in cwd or not (path.startswith("/") or cwd.startswith("/")):
            return None
        plain = PurePosixPath(os.path.normpath(PurePosixPath(cwd) / path))
        for top in (self.root, self.alias):
            if plain.is_relative_to(top) and plain != PurePosixPath(top):
                inner = plain.relative_to(top)
                return None if any(part.lower() == ".git" for part in inner.parts) else str(inner)
        return None

    def copy_commit(self, commit: str, target: Path) -> None:
        """Make a repository with this commit, at most `DEPTH` generations of its past, and nothing else.

        It has one branch, no remote and no hook; its index is that of the commit. Submodules and files kept by Git LFS
        are not fetched. Raises GitFailed.
        """
        target.mkdir(parents=True)
        made = new_git_dir(target, self.object_format)
        made.ask(
            *("fetch", "--quiet", "--no-tags", f"--depth={DEPTH}", "--update-head-ok", f"--upload-pack={SERVED}"),
            *("--end-of-options", str(self.root), f"+{commit}:refs/heads/{_BRANCH}"),
            seconds=LONG_SECONDS,
        )
        (target / "FETCH_HEAD").unlink(missing_ok=True)
        made.ask("read-tree", commit, seconds=LONG_SECONDS)


def new_git_dir(folder: Path, object_format: str) -> Git:
    """A new repository in a folder that is there, without hooks, templates or files."""
    start = ("--quiet", "--bare", "--template=", f"--initial-branch={_BRANCH}", f"--object-format={object_format}")
    Git(folder).ask("init", *start, ".")
    settings = folder / "config"
    text = settings.read_text(encoding="utf-8").replace("bare = true", "bare = false\n\tlogAllRefUpdates = false")
    settings.write_text(f"{text}[gc]\n\tauto = 0\n", encoding="utf-8")
    return Git(folder, git_dir=folder)


def find_repository(project: Path) -> Repository:
    """The repository that a project lies in. Raises UsageProblem when there is none with files and a commit."""
    git = Git(project)
    top = git.line("rev-parse", "--show-toplevel") if project.is_dir() else ""
    if not top and project.is_dir() and git.line("rev-parse", "--is-bare-repository") == "true":
        raise UsageProblem(
            f"{project} is a bare repository; a project folder with files is needed (or use replay_mode mock)."
        )
    if not top:
        raise UsageProblem(f"{project} is in no git repository; replay_mode worktree needs one (or use mock).")
    if not git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
        raise UsageProblem(f"{top} has no commit yet; replay_mode worktree needs one (or use mock).")
    root = Path(top)
    if not project.resolve().is_relative_to(root.resolve()):
        raise UsageProblem(
            f"The repository of {project} keeps its files in {top} (core.worktree); use replay_mode mock."
        )
    folder = project.resolve().relative_to(root.resolve())
    alias = project.parents[len(folder.parts) - 1] if folder.parts else project
    kind = git.line("rev-parse", "--show-object-format") or "sha1"
    return Repository(root, folder, alias, _private(git, root), kind)


def _private(git: Git, root: Path) -> tuple[Path, ...]:
    """The repository's folders: this and other worktrees, git's own, and the stores that it borrows objects from."""
    common = _absolute(git, "--git-common-dir")
    listed = git.line("worktree", "list", "--porcelain").splitlines()
    others = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
    found = [root, _absolute(git, "--git-dir"), common, *others, *_borrowed(common / "objects")]
    return tuple(dict.fromkeys(path.resolve() for path in found))


def _absolute(git: Git, what: str) -> Path:
    return (git.folder / git.ask("rev-parse", what).removesuffix("\n")).resolve()


def _borrowed(objects: Path) -> list[Path]:
    found: list[Path] = []
    waiting = [objects]
    while waiting:
        listed = waiting.pop() / "info" / "alternates"
        if not listed.is_file():
            continue
        for line in listed.read_bytes().decode("utf-8", "surrogateescape").splitlines():
            place = (listed.parent.parent / line).resolve() if line and not line.startswith("#") else objects
            if place not in (objects, *found):
                found.append(place)
                waiting.append(place)
    return found
