"""A live document in a git repository: warn about mixing edits, commit an adoption on request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillopt_sleep.errors import StagingError
from skillopt_sleep.vendored.utils.process import child_environment, run_process

_SECONDS = 10.0
# A repository's own settings must not make a mere look run its programs.
_QUIET = ("git", "-c", "core.fsmonitor=false", "--no-optional-locks", "--literal-pathspecs")


def uncommitted(files: Sequence[str | Path]) -> list[str]:
    """Those of `files` that git tracks and that hold changes which are not committed.

    A file outside of any repository, or a machine without git, gives nothing.
    """
    return [str(file) for file in files if _status(Path(file)) not in ("", "??")]


def git_notices(files: Sequence[str | Path]) -> list[str]:
    """A warning for each file whose uncommitted changes an adoption would be mixed with."""
    return [
        f"{file} has changes that are not committed; commit them first to keep them apart from what is adopted."
        for file in uncommitted(files)
    ]


def commit_adopted(files: Sequence[str | Path], message: str) -> list[str]:
    """Commit exactly these files, each in its own repository, and return the commits' hashes.

    Whatever else is staged there stays as it is; files outside of a repository are passed over. Raises StagingError
    with git's words when a commit fails; the adoption itself stands.
    """
    commits = []
    folders: dict[str, list[str]] = {}
    for file in map(Path, files):
        top = _git(file.parent, "rev-parse", "--show-toplevel").strip()
        if top and _status(file):
            folders.setdefault(top, []).append(str(file))
    for top, names in folders.items():
        folder = Path(top)
        _git(folder, "add", "--", *names, strict=True)
        _git(folder, "commit", "--quiet", "--message", message, "--only", "--", *names, strict=True)
        commits.append(_git(folder, "rev-parse", "HEAD", strict=True).strip())
    return commits


def _status(file: Path) -> str:
    """Git's two letters for a file; "" when it is clean, or not in a repository."""
    return _git(file.parent, "status", "--porcelain", "--ignored=no", "--", file.name)[:2].strip()


def _git(folder: Path, *arguments: str, strict: bool = False) -> str:
    try:
        result = run_process(
            [*_QUIET, *arguments],
            cwd=folder,
            env=child_environment(GIT_TERMINAL_PROMPT="0", GIT_EDITOR=os.devnull, LC_ALL="C"),
            timeout=_SECONDS,
        )
    except OSError as error:
        if strict:
            raise StagingError(f"git cannot be run ({error}).") from error
        return ""
    if result.code == 0:
        return result.stdout
    if strict:
        raise StagingError(f"git {arguments[0]} failed in {folder}: {result.stderr.strip() or 'no message'}")
    return ""
