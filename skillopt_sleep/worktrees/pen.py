"""The pen of an agent at work: it reads the machine, without what is hidden, and writes its checkout and its own home.

Made with bubblewrap. The network stays, because an agent needs its provider; so does what listens on this machine's
network, sockets with an abstract name among it. Sockets in the file system do not: a service behind one (containers,
keys, the session's bus) could act outside.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.show import terminal_line
from skillopt_sleep.vendored.utils.process import ProcessResult, child_environment, run_process

Kind = Literal["hidden", "own", "read", "written"]
_ORDER: tuple[Kind, ...] = ("hidden", "own", "read", "written")  # of two for one place, the later counts
_SECONDS = 30.0
_TRIES = 3
_SOCKETS = ("/run", "/var/run")
_NEEDED = ("/etc/resolv.conf", "/run/current-system")  # may lead into what `_SOCKETS` hides
_ALONE = (
    *("--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--cap-drop", "ALL"),
)
_SHOWN = ("--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc")
_NO_ROOMS, _SIZE = "--disable-userns", "--size"
_OWN_BYTES = 2 * 1024**3
_MACHINE = ("/proc/sys", "/proc/fs", "/proc/bus", "/proc/irq", "/proc/sysrq-trigger")  # root could write these
_BOUND_SOCKETS = Path("/proc/net/unix")
_TRY = """
test -s "$1" || test -e "$2/file" && exit 1
test -w /proc/sys/kernel/core_pattern && exit 1
(echo xx >"$1"; echo xx >"$2/new"; echo xx >"$2/file"; echo xx >"$3/new") 2>/dev/null
echo shut in >done
"""
_LEFT = ["blank", "desk", "live", "secret"]


@dataclass(frozen=True, slots=True)
class Mount:
    """What an agent finds at `path`: nothing (hidden), a folder of its own, or `source` to be written or read."""

    path: Path
    kind: Kind
    source: Path

    @property
    def is_blank(self) -> bool:
        """True where nothing of the machine is shown."""
        return self.kind in ("hidden", "own")


@dataclass(frozen=True, slots=True)
class Pen:
    """What shuts agents in.

    `start`: bubblewrap with its first options. `hidden`: files and folders, there or not. `blank`: an empty file of
    ours. `own`: folders in whose place an agent finds empty ones of its own, which lie in memory. `bounds`: options
    that bound each of these.
    """

    start: tuple[str, ...]
    hidden: tuple[Path, ...]
    blank: Path
    own: tuple[Path, ...] = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
    bounds: tuple[str, ...] = ()

    def around(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        writable: Iterable[Path] = (),
        readable: Iterable[Path] = (),
        linked: Mapping[Path, Path] | None = None,
        rooms: bool = False,
    ) -> list[str]:
        """The command that runs a program in `folder`. `linked`: what it reads, by where it finds it.

        `rooms`: it can make namespaces of its own, for a sandbox in this one.

        What is `writable` or `readable` and not there is passed over. Where two speak of one place, the one that shows
        more counts; what is hidden inside of a place that is shown stays hidden.
        """
        blanks = self._blanks()
        mounts = [*blanks, *_shown(readable, "read"), *_shown(writable, "written"), *_program(argv[0], blanks)]
        mounts += [Mount(at, "read", source) for at, source in (linked or {}).items()]
        mounts.append(Mount(folder, "written", folder))
        options = self._options(mounts)
        return [
            *(_with_rooms(self.start) if rooms else self.start),
            *options,
            "--chdir",
            str(folder),
            "--setenv",
            "TMPDIR",
            "/tmp",
            "--",
            *argv,
        ]

    def _blanks(self) -> list[Mount]:
        own = [Mount(path, "own", path) for path in self.own if path.is_dir() and not path.is_symlink()]
        needed = [path for path in (Path(name).resolve() for name in _NEEDED) if path.exists()]
        hidden = [path.resolve() for path in (*map(Path, _SOCKETS), *_bound_sockets(), *self.hidden) if path.exists()]
        return [
            *own,
            *(Mount(path, "hidden", path) for path in hidden),
            *(Mount(path, "read", path) for path in needed if any(path.is_relative_to(top) for top in _SOCKETS)),
        ]

    def _options(self, mounts: Iterable[Mount]) -> list[str]:
        """What is mounted, outer places first; what is blank is closed at the end, with all that lies in it there."""
        chosen: dict[Path, Mount] = {}
        options, closing = [], []
        for mount in sorted(mounts, key=lambda one: (len(one.path.parts), one.path, -_ORDER.index(one.kind))):
            around = next((chosen[place] for place in mount.path.parents if place in chosen), None)
            if mount.path in chosen or (mount.is_blank and around is not None and around.is_blank):
                continue
            chosen[mount.path] = mount
            path = str(mount.path)
            if not mount.is_blank:
                options += ["--bind" if mount.kind == "written" else "--ro-bind", str(mount.source), path]
            elif not mount.source.is_dir():
                options += ["--ro-bind", str(self.blank), path]
            else:
                options += [*(self.bounds if mount.kind == "own" else ()), "--tmpfs", path]
                open_to_all = mount.kind == "own" or (around is not None and around.kind == "written")
                closing += [] if open_to_all else ["--remount-ro", path]
        return [*options, *closing]


def make_pen(hidden: Iterable[Path], folder: Path) -> Pen:
    """The pen of this machine, tried in `folder`, an empty one. Raises UsageProblem when there is none that holds."""
    program = shutil.which("bwrap") if sys.platform == "linux" else None
    if program is None:
        raise UsageProblem(
            "replay_mode worktree needs Linux and bubblewrap, which shuts in the agent and the commands: install it "
            "(`apt install bubblewrap`), or set replay_mode to mock."
        )
    told = run_process([program, "--help"], cwd=folder, env=child_environment(), timeout=_SECONDS)
    alone = (*_ALONE, *((_NO_ROOMS,) if _NO_ROOMS in told.stdout else ()))
    blank = folder / "blank"
    blank.touch()
    start = (program, *alone, *_SHOWN, *_closed_settings())
    bounds = (_SIZE, str(_OWN_BYTES)) if _SIZE in told.stdout else ()
    pen = Pen(start, tuple(dict.fromkeys(hidden)), blank, bounds=bounds)
    said = _try(pen, folder)
    if said:
        raise UsageProblem(
            f"bubblewrap does not shut in on this machine ({said}); let users make namespaces, or set replay_mode to "
            "mock."
        )
    return pen


def run_penned(make: Callable[[], Sequence[str]], run: Callable[[Sequence[str]], ProcessResult]) -> ProcessResult:
    """Run a command of `Pen.around`; where bubblewrap itself failed, make it anew, at most twice, and run that.

    What it was to hide can have gone since the command was made, a socket for one, and then it has no place to hide.
    The result of the last try is whoever called's to judge.
    """
    result = run(make())
    for _ in range(_TRIES - 1):
        if not _says_bubblewrap(result):
            break
        result = run(make())
    return result


def _says_bubblewrap(result: ProcessResult) -> bool:
    """Whether only bubblewrap has spoken, of a place that it cannot make or find: no program was started then."""
    return result.code == 1 and not result.stdout and result.stderr.startswith("bwrap: Can't ")


def _try(pen: Pen, folder: Path) -> str:
    """What is wrong with a pen, found by trying it on stand-ins; "" when it holds."""
    secret, live, desk = folder / "secret", folder / "live", folder / "desk"
    for place in (live, desk):
        place.mkdir()
    for file in (secret, live / "file"):
        file.write_text("x", encoding="utf-8")
    trial = replace(pen, hidden=(*pen.hidden, secret, live))
    argv = ["/bin/sh", "-c", _TRY, "sh", *map(str, (secret, live, folder))]
    result = run_penned(
        lambda: trial.around(argv, folder=desk),
        lambda penned: run_process(penned, cwd=desk, env=child_environment(), timeout=_SECONDS),
    )
    untouched = [path.name for path in live.iterdir()] == ["file"] and (live / "file").stat().st_size == 1
    untouched = untouched and sorted(path.name for path in folder.iterdir()) == _LEFT and secret.stat().st_size == 1
    if untouched and (desk / "done").is_file():
        return ""
    return terminal_line(result.stderr.strip(), 200) or f"exit code {result.code}"


def _closed_settings() -> list[str]:
    """What of /proc is only read. Others than root cannot write it anyway, and then a room inside needs it whole."""
    names = _MACHINE if os.geteuid() == 0 else ()
    return [part for name in names for part in ("--ro-bind-try", name, name)]


def _bound_sockets() -> list[Path]:
    """The sockets of this machine's services that have a place in the file system."""
    try:
        lines = os.fsdecode(_BOUND_SOCKETS.read_bytes()).splitlines()
    except OSError:
        return []
    named = (Path(line[line.index(" /") + 1 :]) for line in lines if " /" in line)
    return [path for path in dict.fromkeys(named) if _is_socket(path)]


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except OSError:
        return False


def _with_rooms(start: Sequence[str]) -> list[str]:
    """Bubblewrap with leave to make namespaces inside; root needs one capability (of the pen's own) to map itself."""
    parts = [part for part in start if part != _NO_ROOMS]
    return [*parts, "--cap-add", "CAP_SETFCAP"] if os.geteuid() == 0 else parts


def _shown(given: Iterable[Path], kind: Kind) -> list[Mount]:
    real = (path.resolve() for path in given if path.exists())
    return [Mount(path, kind, path) for path in real]


def _program(name: str, blanks: Iterable[Mount]) -> list[Mount]:
    """The program itself where it lies in a place that is blank else."""
    found = Path(shutil.which(name) or ".")
    lost = found.is_absolute() and any(mount.is_blank and mount.path in found.parents for mount in blanks)
    return [Mount(found, "read", found.resolve())] if lost else []
