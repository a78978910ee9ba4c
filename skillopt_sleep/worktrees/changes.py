"""What an agent changed in a checkout, told by a repository of ours that lies outside of it.

The checkout's own repository is never asked: its settings are the agent's by then. Files are found by looking, links
are not followed, folders called `.git` are passed over, and git gets the names of those that changed. So no program
that the agent may have named anywhere is run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.worktrees.git import LONG_SECONDS, Git
from skillopt_sleep.worktrees.repository import new_git_dir

MOST_PATCH = 2 * 1024**2
_MOST_BYTES = 64 * 1024**2  # of changed files together, before and after
_MOST_ENTRIES = 20_000
_MOST_LOOKED_AT = 200_000  # with those that git ignores
_MOST_DEPTH = 32
_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")
Marks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """The changes: `files`, sorted, and `diff`, unified, unredacted."""

    files: tuple[str, ...]
    diff: str


class Changes:
    """What becomes of a checkout from now on.

    `folder` is a new one, outside of it, for a repository of ours. `memory` is part of what was there before; the files
    and folders `skipped` are not looked at.
    """

    def __init__(
        self, seed: Path, tree: Path, folder: Path, object_format: str, *, memory: Path, skipped: Iterable[Path] = ()
    ) -> None:
        self._tree, self._folder = tree, folder
        folder.mkdir()
        new_git_dir(folder, object_format)
        (folder / "objects" / "info").mkdir(exist_ok=True)
        (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(seed / "objects") + b"\n")
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "attributes").write_text("* !diff\n", encoding="utf-8")  # no file is kept out of the diff
        (folder / "index").write_bytes((seed / "index").read_bytes())
        self._git = Git(folder, git_dir=folder, tree=tree)
        self._skipped = self._submodules() | {path.as_posix() for path in skipped}
        self._add([memory.as_posix()])
        self._base = self._git.ask("write-tree").strip()
        self._before = {name: _marks(tree / name) for name in self._all_files()}

    def take(self) -> Changed:
        """What is different now. Raises CallFailed (refused) for more than can be looked at, and GitFailed."""
        changed, gone = self._look()
        self._check_size(changed, gone)
        self._remove(gone)
        self._add(changed)
        end = self._git.ask("write-tree").strip()
        files = self._git.ask("diff-tree", "-r", "-z", "--name-only", "--no-renames", self._base, end).split("\0")
        if self._diff(end, "--binary", "--full-index").stat().st_size > MOST_PATCH:
            raise _too_large(f"a patch of more than {MOST_PATCH:,} bytes")
        diff = self._diff(end).read_bytes().decode("utf-8", "replace")
        return Changed(tuple(sorted(filter(None, files))), diff)

    def put_files(self, tree: Path) -> None:
        """Write the files as they are now to `tree`, where a fresh checkout is to be. Raises GitFailed."""
        git = Git(self._folder, git_dir=self._folder, tree=tree)
        git.ask("checkout-index", "--all", "--force", seconds=LONG_SECONDS)

    def _all_files(self) -> list[str]:
        found: list[str] = []
        waiting = [""]
        while waiting:
            entries = list(self._entries(waiting))
            found += [name for name, is_folder in entries if not is_folder]
            waiting = [name for name, is_folder in entries if is_folder]
        return found

    def _look(self) -> tuple[list[str], list[str]]:
        """(files that are new or other than before, files that are gone). What git ignores is not new."""
        folders = {parent for name in self._before for parent in _parents(name)}
        changed: list[str] = []
        seen: set[str] = set()
        waiting = [""]
        for _ in range(_MOST_DEPTH):
            new: dict[str, bool] = {}
            ahead: list[str] = []
            for name, is_folder in self._entries(waiting):
                if not is_folder and name in self._before:
                    seen.add(name)
                    changed += [name] if _marks(self._tree / name) != self._before[name] else []
                elif is_folder and name in folders:
                    ahead.append(name)
                else:
                    new[name] = is_folder
            if len(new) > _MOST_LOOKED_AT:
                raise _too_large(f"more than {_MOST_LOOKED_AT:,} new files")
            kept = self._not_ignored(new)
            changed += [name for name in kept if not new[name]]
            waiting = [*ahead, *(name for name in kept if new[name])]
            if len(changed) > _MOST_ENTRIES or len(waiting) > _MOST_ENTRIES:
                raise _too_large(f"more than {_MOST_ENTRIES:,} files")
            if not waiting:
                return changed, [name for name in self._before if name not in seen]
        raise _too_large(f"folders more than {_MOST_DEPTH} deep")

    def _entries(self, folders: Iterable[str]) -> Iterable[tuple[str, bool]]:
        """(name, is a folder) of what lies in folders. What is no file, link or folder is removed."""
        for folder in folders:
            place = self._tree / folder
            place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRWXU)
            with os.scandir(place) as found:
                for entry in list(found):
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
                        Path(entry.path).unlink()
                    elif entry.name.lower() != ".git" and name not in self._skipped:
                        yield name, stat.S_ISDIR(mode)

    def _not_ignored(self, names: Iterable[str]) -> list[str]:
        listed = list(names)
        if not listed:
            return []
        text = _joined(f"./{name}" for name in listed)  # a bare name could be taken for a pattern
        told = self._git.ask("check-ignore", "--no-index", "-z", "--stdin", stdin=text, fine=(1,))
        ignored = set(told.split("\0"))
        return [name for name in listed if f"./{name}" not in ignored]

    def _check_size(self, changed: Iterable[str], gone: Iterable[str]) -> None:
        after = sum((self._tree / name).lstat().st_size for name in changed)
        before = sum(_size(self._before[name]) for name in (*changed, *gone) if name in self._before)
        if max(before, after) > _MOST_BYTES:
            raise _too_large(f"more than {_MOST_BYTES:,} bytes of changed files")

    def _add(self, names: list[str]) -> None:
        if not names:
            return
        for name in names:
            place = self._tree / name
            if place.is_file() and not place.is_symlink():
                place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRUSR)
        arguments = ("--add", "--remove", "--replace", "-z", "--stdin")
        self._git.ask("update-index", *arguments, stdin=_joined(names), seconds=LONG_SECONDS)

    def _remove(self, names: list[str]) -> None:
        if names:
            self._git.ask("update-index", "--force-remove", "-z", "--stdin", stdin=_joined(names))

    def _diff(self, end: str, *how: str) -> Path:
        file = self._folder / "changes.diff"
        self._git.ask("diff-tree", "-r", "-p", *_DIFF, *how, f"--output={file}", self._base, end, seconds=LONG_SECONDS)
        return file

    def _submodules(self) -> set[str]:
        rows = self._git.ask("ls-files", "-z", "--stage").split("\0")
        return {row.partition("\t")[2] for row in rows if row.startswith("160000 ")}


def _marks(path: Path) -> Marks:
    """What changes when a file does; () when it is not there. Nobody can set the time of the last change of state."""
    try:
        found = path.lstat()
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _size(marks: Marks) -> int:
    return marks[1] if marks else 0


def _parents(name: str) -> Iterable[str]:
    parts = name.split("/")[:-1]
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _joined(names: Iterable[str]) -> str:
    text = "".join(f"{name}\0" for name in names)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise CallFailed("The attempt made a file whose name is not UTF-8, which cannot be compared.", kind="refused")
    return text


def _too_large(what: str) -> CallFailed:
    return CallFailed(f"The attempt changed too much to be judged: {what}.", kind="refused")
