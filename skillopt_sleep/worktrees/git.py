"""The one way that this room runs git: with settings of ours alone, nothing of the person's and no network.

No hook, monitor, filter, credential helper or pager runs, whatever the repository's own settings say; a repository of
somebody else is read like one's own.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep.errors import SleepError
from skillopt_sleep.show import terminal_line
from skillopt_sleep.vendored.utils.process import run_process

QUICK_SECONDS, LONG_SECONDS = 60.0, 600.0
_MOST_OUTPUT = 64 * 1024**2
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.splitIndex=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.version=2",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
)
_SERVING = ("safe.directory=*", "core.fsmonitor=false", "uploadpack.allowAnySHA1InWant=true")
SERVED = " ".join(("GIT_ALLOW_PROTOCOL= git", *(f"-c {setting}" for setting in _SERVING), "upload-pack"))
"""The other side of a fetch, which gets none of the settings above; it fetches nothing itself, from wherever."""


class GitFailed(SleepError):
    """Git could not do what was asked; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Git:
    """Git for one folder. `git_dir` and `tree`: the repository and its files, where they are not to be looked for."""

    folder: Path
    git_dir: Path | None = None
    tree: Path | None = None

    def ask(self, *arguments: str, stdin: str = "", seconds: float = QUICK_SECONDS, fine: tuple[int, ...] = ()) -> str:
        """What git prints. Raises GitFailed for an exit code that is neither 0 nor `fine`, and at the end of time."""
        places = [f"--git-dir={self.git_dir}"] if self.git_dir else []
        places += [f"--work-tree={self.tree}"] if self.tree else []
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        argv = ["git", "--no-pager", "--no-replace-objects", *settings, *places, *arguments]
        try:
            result = run_process(
                argv,
                cwd=self.folder,
                env=_environment(protocols="file" if arguments[0] == "fetch" else ""),
                stdin=stdin,
                timeout=seconds,
                output_limit=_MOST_OUTPUT,
            )
        except (OSError, ValueError) as error:
            raise GitFailed(f"git cannot be run in {self.folder} ({error}).") from error
        if result.timed_out or result.truncated:
            what = f"did not end within {seconds:g} s" if result.timed_out else "printed too much"
            raise GitFailed(f"git {arguments[0]} {what} in {self.folder}.")
        if result.code != 0 and result.code not in fine:
            said = terminal_line(result.stderr.strip(), 300) or f"exit code {result.code}"
            raise GitFailed(f"git {arguments[0]} failed in {self.folder}: {said}")
        return result.stdout

    def line(self, *arguments: str) -> str:
        """The one line that git prints; "" where it fails."""
        try:
            return self.ask(*arguments).removesuffix("\n")
        except GitFailed:
            return ""


def find_git() -> str:
    """The program's path; "" when there is none."""
    return shutil.which("git", path=_path()) or ""


def _path() -> str:
    """PATH without places that depend on where one is: a repository may hold a program that is called git."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(place for place in places if Path(place).is_absolute())


def _environment(*, protocols: str) -> dict[str, str]:
    """All variables that git gets. `protocols`: by which it may fetch; a missing object is never fetched for itself."""
    return {
        "PATH": _path(),
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": protocols,
    }
