"""The person's commands, run on the changed files in a second checkout, shut in by the sandbox: no network, no secrets.

What they need of the project beside its commits, such as installed packages, is linked in and can be read; what an
attempt left that git ignores is not there.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges import Undecidable
from skillopt_sleep.show import clip, plain_line
from skillopt_sleep.vendored.errors import ConfigError
from skillopt_sleep.vendored.utils.process import ProcessResult
from skillopt_sleep.vendored.utils.removal import remove_tree
from skillopt_sleep.vendored.utils.sandbox import Limits, run_code
from skillopt_sleep.worktrees.checkout import inner_folder
from skillopt_sleep.worktrees.git import Git, find_git
from skillopt_sleep.worktrees.hidden import hidden_places
from skillopt_sleep.worktrees.work import Outcome, said_last

NOT_STARTED = (126, 127)
_RUN = 'PATH="$1${1:+:}$PATH"; export PATH; cd -- "$2" || exit 126; exec sh -c "$3"'
_SYSTEM = (
    *("/usr/share", "/usr/local/share", "/usr/include", "/usr/local/include", "/usr/local/go", "/etc/passwd"),
    *("/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/os-release", "/etc/ssl"),
)
_RESERVED = 2**46
_LEAST_FREE = 64 * 1024**2
_LATE = "did not end within"


@dataclass(frozen=True, slots=True)
class Commands:
    """How commands are run. `project`: the live one; `links`: what of it is linked in; `readable`: further folders."""

    project: Path
    links: tuple[Path, ...]
    readable: tuple[Path, ...]
    seconds: float

    def link(self, folder: Path) -> None:
        """Link what the commands need into the project's folder of a checkout. Raises OSError."""
        for name in self.links:
            place = inner_folder(folder, name.parent) / name.name
            if place.is_dir() and not place.is_symlink():
                remove_tree(place)
            place.unlink(missing_ok=True)
            place.symlink_to(self.project / name)

    def run(self, command: str, *, folder: Path, room: Path) -> Outcome:
        """Run one in `folder`; of the file system it can write `room` alone, which holds that folder.

        A command that does not end in time, or that takes more memory or space than there is for it, fails. Raises
        Undecidable for one that cannot be started, and for one that fails on a full disk.
        """
        ran = self._run(command, folder, room)
        note = said_last("\n".join(filter(None, (ran.stdout.strip(), ran.stderr.strip()))))
        if ran.code in NOT_STARTED:
            raise Undecidable(f"The command {_named(command)} cannot be started: {plain_line(note) or 'no word'}.")
        if ran.code != 0 and shutil.disk_usage(room).free < _LEAST_FREE:
            raise Undecidable(f"The command {_named(command)} failed on a disk that is nearly full.")
        if ran.timed_out:
            note = f"{_LATE} {self.seconds / 60:g} minutes. {note}".strip()
        return Outcome("command", command, ran.code == 0, note)

    def check(self, command: str, *, folder: Path, room: Path, source: str = "replay_checks") -> None:
        """Find out whether a command starts and ends in time. Raises UsageProblem with its `source` and what to do."""
        try:
            outcome = self.run(command, folder=folder, room=room)
        except Undecidable as error:
            raise UsageProblem(
                f"{source}: {error} It sees the repository's files and the system's programs: name ignored "
                "folders of the project that it needs in replay_links, other folders in replay_readable."
            ) from error
        if not outcome.passed and outcome.note.startswith(_LATE):
            raise UsageProblem(
                f"{source}: the command {_named(command)} {plain_line(outcome.note)} Raise replay_minutes, or "
                "name a quicker one."
            )

    def _run(self, command: str, folder: Path, room: Path) -> ProcessResult:
        linked = [self.project / name for name in self.links]
        programs = [place for path in (*linked, *self.readable) for place in _programs_of(path)]
        argv = ["sh", "-c", _RUN, "sh", os.pathsep.join(map(str, programs)), str(folder), command]
        wanted = [*linked, *self.readable, *map(Path, _SYSTEM)]
        wanted += [*filter(None, map(_base_of, (*linked, *self.readable)))]
        wanted += [Path(name) for name in (find_git(), Git(room).line("--exec-path")) if name]
        try:
            return run_code(
                argv,
                folder=room,
                readable=[path for path in wanted if path.exists()],
                limits=self._limits(),
                require=True,
            )
        except (OSError, ConfigError) as error:
            raise Undecidable(f"The command {_named(command)} cannot be run ({error}).") from error

    def _limits(self) -> Limits:
        return Limits(
            cpu_seconds=int(8 * self.seconds) + 1,
            memory_bytes=4 * 1024**3,
            address_bytes=_RESERVED,
            file_bytes=1024**3,
            processes=512,
            wall_seconds=self.seconds,
            output_bytes=256 * 1024,
            disk_bytes=4 * 1024**3,
            open_files=4096,
        )


def commands_of(config: SleepConfig) -> Commands:
    """How the settings want commands run.

    Raises UsageProblem for a link that is no folder or file of the project, or leads to what is hidden from agents.
    """
    project = config.project
    links = [Path(name) for name in config.replay_links]
    for text, link in zip(config.replay_links, links, strict=True):
        if not text.strip() or link.is_absolute() or not link.parts or ".." in link.parts or ".git" in link.parts:
            raise UsageProblem(f"replay_links: {text!r} is no path inside of the project, such as `node_modules`.")
        if not (project / link).exists():
            raise UsageProblem(f"replay_links: {project} has no {text!r}; make it, or take it out of the list.")
        if _shows_hidden(config, project / link):
            raise UsageProblem(
                f"replay_links: {text!r} leads to {(project / link).resolve()}, which agents must not see."
            )
    readable = [paths.expand(path) for path in config.replay_readable]
    missing = next((path for path in readable if not path.exists()), None)
    if missing is not None:
        raise UsageProblem(f"replay_readable: there is no {missing}; take it out of the list.")
    return Commands(project, tuple(links), tuple(readable), 60.0 * float(config.replay_minutes))


def _shows_hidden(config: SleepConfig, link: Path) -> bool:
    """Whether a link, which a repository may bring with it, leads to what is hidden from agents or is around it."""
    leads = link.resolve()
    hidden = (path.resolve() for path in hidden_places(config))
    return any(leads.is_relative_to(path) or path.is_relative_to(leads) for path in hidden)


def _named(command: str) -> str:
    return repr(clip(plain_line(command), 120))


def _programs_of(path: Path) -> list[Path]:
    return [place for place in (path / "bin", path / ".bin") if place.is_dir()]


def _base_of(path: Path) -> Path | None:
    """The Python that a virtual environment is made from, which its own one leads to."""
    if not (path / "pyvenv.cfg").is_file():
        return None
    base = (path / "bin" / "python").resolve().parent.parent
    return base if len(base.parts) > 2 else None
