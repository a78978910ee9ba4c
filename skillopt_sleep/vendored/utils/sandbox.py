# A copy of skillopt/utils/sandbox.py, made by scripts/vendor.py: change the original, then run that.
"""Runs code that nobody has read: shut in as well as this machine allows, bounded, and gone afterwards.

    result = run_python(script, folder=attempt, values={"INPUT_PATH": "…", "OUTPUT_PATH": "…"})

There are three strengths. `bubblewrap` and `namespaces` (the same by our own means) give the program a room of its own:
no network, no other processes, no files but `folder`, the system's libraries, this Python with its packages, and what
is named `readable`. `limits` bounds what the program uses and hides this process's environment, but hides neither the
files nor the network. Each is tried before it is trusted.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from skillopt_sleep.vendored.errors import ConfigError
from skillopt_sleep.vendored.utils.cancel import CancelToken
from skillopt_sleep.vendored.utils.process import ProcessResult, run_process
from skillopt_sleep.vendored.utils.sandbox_view import package_folders, view_of

__all__ = ["REMEDY", "Limits", "Sandbox", "Strength", "available", "python_argv", "run_code", "run_python", "strength"]

_LINUX, _WINDOWS = sys.platform == "linux", sys.platform == "win32"
REMEDY = (
    "install bubblewrap (`apt install bubblewrap`), or let users make namespaces"
    if _LINUX
    else "run in a Linux container with bubblewrap (`apt install bubblewrap`)"
)
_KEEPER, _ROOM, _DRIVER = (Path(__file__).with_name(f"sandbox_{name}.py") for name in ("keeper", "room", "driver"))
_REFUSED = 125  # how sandbox_room.py ends when there is no room
_TRY_SECONDS = 20.0
_TRIED = "shut in"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use.

    `cpu_seconds`: of each process. `memory_bytes`: of each process, and of all together. `file_bytes`: of one file.
    `disk_bytes`: of all that is added to the folder and the temporary file systems. `processes`: at a time.
    `wall_seconds`: from start to end. `output_bytes`: kept of each output, beginning and end. `address_bytes`: what a
    process may reserve, used or not (0: no more than `memory_bytes`, which stops it at once; runtimes such as V8, Go
    and the JVM reserve far more than they use). `open_files`: of each process.
    """

    cpu_seconds: int = 120
    memory_bytes: int = 2 * 1024**3
    file_bytes: int = 256 * 1024**2
    processes: int = 64
    wall_seconds: float = 120.0
    output_bytes: int = 1024**2
    disk_bytes: int = 1024**3
    address_bytes: int = 0
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Strength:
    """What a sandbox of this machine shuts out. `note`: what it does not, and how to mend that; else ""."""

    name: Literal["bubblewrap", "namespaces", "limits"]
    isolates_files: bool
    isolates_network: bool
    note: str = ""


BUBBLEWRAP = Strength("bubblewrap", isolates_files=True, isolates_network=True)
NAMESPACES = Strength("namespaces", isolates_files=True, isolates_network=True)
LIMITS = Strength(
    "limits",
    isolates_files=False,
    isolates_network=False,
    note=f"Code that a model wrote runs with {'a time limit' if _WINDOWS else 'limits'} only: it can read this user's "
    f"files, the expected answers among them, and reach the network; {REMEDY}.",
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs programs with one strength. Safe to use from several threads at a time."""

    strength: Strength

    def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        readable: Sequence[Path] = (),
        limits: Limits = Limits(),
        cancel: CancelToken | None = None,
        stdin: str = "",
    ) -> ProcessResult:
        """Run a program in `folder`, which is all that it can write, and its HOME and TMPDIR; see `run_code`."""
        place = folder.resolve(strict=True)
        result = run_process(
            self._command([str(part) for part in argv], folder, readable, limits),
            cwd=place if _WINDOWS else Path("/"),
            env={**_environment(place), **_windows_needs()},
            stdin=stdin,
            timeout=limits.wall_seconds,
            cancel=cancel,
            output_limit=limits.output_bytes,
        )
        if self.strength.isolates_files and _no_room(result):
            raise OSError(f"The sandbox could not be made: {result.stderr.strip()}")
        return result

    def _command(self, argv: list[str], folder: Path, readable: Sequence[Path], limits: Limits) -> list[str]:
        if _WINDOWS:
            return argv
        alone, place = self.strength.isolates_files, folder.resolve()
        order = asdict(limits) | {"argv": argv, "folder": str(place), "env": _environment(place), "alone": alone}
        order["spaces"] = ["/tmp", "/dev/shm"] if alone else []
        keeper = [*_plain_python(), str(_KEEPER), json.dumps(order)]
        if not alone:
            return keeper
        return _into_room(self.strength, keeper, folder, limits, [*readable, _KEEPER, _DRIVER])


def run_code(
    argv: Sequence[str],
    *,
    folder: Path,
    readable: Sequence[Path] = (),
    limits: Limits = Limits(),
    cancel: CancelToken | None = None,
    stdin: str = "",
    require: bool = False,
) -> ProcessResult:
    """Run a program in the strongest sandbox of this machine.

    `folder` is the only place that the program can write (and its working folder, HOME and TMPDIR); nothing outside of
    it is changed, and what is in it afterwards is the caller's. `python` is this interpreter with its packages. The
    environment holds PATH, HOME, LANG and TMPDIR. `code` is the exit code; 128 + N when signal N ended the program, 137
    with a line on standard error when a limit did, 126 or 127 when the program cannot be started; None at the end of
    `limits.wall_seconds` or the deadline of `cancel`. However it ends, nothing that it started runs on.

    Raises InterruptedRunError when `cancel` was cancelled; OSError when the sandbox cannot be made, FileNotFoundError
    when `folder` or something `readable` is not there; ConfigError when `require` is set and this machine has no
    sandbox that shuts out files and network.
    """
    box = _best(require=require)
    return box.run(argv, folder=folder, readable=readable, limits=limits, cancel=cancel, stdin=stdin)


def run_python(
    script: Path,
    *,
    folder: Path,
    values: Mapping[str, str] | None = None,
    readable: Sequence[Path] = (),
    limits: Limits = Limits(),
    cancel: CancelToken | None = None,
    require: bool = False,
) -> ProcessResult:
    """Run a Python file as it is, with the names `values` set beforehand; otherwise as `run_code`.

    `script` is the main module under its own name, with its own line numbers. Its exit code is Python's: 1 after an
    exception, whose traceback is on standard error.
    """
    box = _best(require=require)
    return box.run(
        python_argv(script, values), folder=folder, readable=[script, *readable], limits=limits, cancel=cancel
    )


def python_argv(script: Path, values: Mapping[str, str] | None = None) -> list[str]:
    """The program that runs a Python file with the names `values` set, to be run in a sandbox."""
    order = {"values": dict(values or {}), "packages": [str(folder) for folder in package_folders()]}
    start = [sys.executable, "-I", "-B", "-X", "utf8", str(_DRIVER)]
    return [*start, json.dumps(order), str(script.resolve())]


def strength() -> Strength:
    """The strongest sandbox of this machine; tried once."""
    return next(_working())


_TRYING = threading.Lock()


def available() -> tuple[Strength, ...]:
    """The sandboxes that work on this machine, the strongest first; tried once."""
    return tuple(_working())


def _working() -> Iterator[Strength]:
    for room in (BUBBLEWRAP, NAMESPACES) if _LINUX else ():
        with _TRYING:
            holds = _holds(room)
        if holds:
            yield room
    yield LIMITS


def _best(*, require: bool) -> Sandbox:
    best = strength()
    if require and not (best.isolates_files and best.isolates_network):
        raise ConfigError(f"This machine has no sandbox that shuts out files and network; {REMEDY}.")
    return Sandbox(best)


@functools.cache
def _holds(room: Strength) -> bool:
    """Try a room: the program must be able to write its folder, and neither to see a secret nor to reach a port."""
    if room is BUBBLEWRAP and not shutil.which("bwrap"):
        return False
    with tempfile.TemporaryDirectory(prefix="skillopt-sandbox-") as name, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        secret, folder = Path(name) / "secret", Path(name) / "folder"
        secret.write_text("", encoding="utf-8")
        folder.mkdir()
        code = (
            "import os, socket\n"
            f"seen = os.path.exists({str(secret)!r})\n"
            f"reached = socket.socket().connect_ex(('127.0.0.1', {server.getsockname()[1]})) == 0\n"
            f"if not seen and not reached: open('done', 'w').write({_TRIED!r})\n"
        )
        try:
            limits = Limits(wall_seconds=_TRY_SECONDS)
            Sandbox(room).run([*_plain_python(), "-c", code], folder=folder, limits=limits)
            return (folder / "done").read_text(encoding="utf-8") == _TRIED
        except OSError:
            return False


def _plain_python() -> list[str]:
    return [sys.executable, "-I", "-S"]


def _environment(folder: Path) -> dict[str, str]:
    """All variables that a program gets."""
    places = [str(Path(sys.executable).parent)]
    places += [] if _WINDOWS else ["/usr/local/bin", "/usr/bin", "/bin"]
    language = "C.UTF-8" if _LINUX else "en_US.UTF-8"
    return {"PATH": os.pathsep.join(places), "HOME": str(folder), "LANG": language, "TMPDIR": str(folder)}


def _windows_needs() -> dict[str, str]:
    """What no program can be started without on Windows."""
    names = ("SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT", "COMSPEC") if _WINDOWS else ()
    return {name: os.environ[name] for name in names if name in os.environ}


def _into_room(room: Strength, keeper: list[str], folder: Path, limits: Limits, readable: Sequence[Path]) -> list[str]:
    """The command that makes a room and starts the keeper in it."""
    view, place = view_of(*readable, folder=folder), str(folder.resolve())
    if room is NAMESPACES:
        plan = {
            "shown": [str(path) for path in view.paths],
            "links": [[str(path), leads] for path, leads in view.links.items()],
            "folder": place,
            "processes": limits.processes,
        }
        return [*_plain_python(), str(_ROOM), json.dumps(plan), *keeper]
    start = [*_bubblewrap(), "--die-with-parent", "--new-session", "--as-pid-1"]
    start += ["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", "--tmpfs", "/tmp"]
    for path, leads in view.links.items():
        start += ["--symlink", leads, str(path)]
    for path in view.paths:
        start += ["--ro-bind", str(path), str(path)]
    start += ["--bind", place, place, "--chdir", "/"]
    start += [part for place in ("/proc", "/dev", "/") for part in ("--remount-ro", place)]
    return [*start, "--", *keeper]


@functools.cache
def _bubblewrap() -> tuple[str, ...]:
    """The program and what makes a room of its own, with no rooms inside it where this version can forbid them."""
    program = shutil.which("bwrap") or "bwrap"
    told = run_process([program, "--help"], cwd=Path("/"), env={}, timeout=_TRY_SECONDS)
    inner = ("--unshare-user", "--disable-userns") if "--disable-userns" in told.stdout else ()
    return (program, "--unshare-all", *inner)


def _no_room(result: ProcessResult) -> bool:
    """True when the program was not started, because its room was refused."""
    lines = result.stderr.splitlines()
    refused = {_REFUSED: "sandbox: ", 1: "bwrap: "}.get(result.code or 0)
    return refused is not None and not result.stdout and len(lines) == 1 and lines[0].startswith(refused)
