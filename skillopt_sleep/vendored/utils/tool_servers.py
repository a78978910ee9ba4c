# A copy of skillopt/utils/tool_servers.py, made by scripts/vendor.py: change the original, then run that.
"""Which tool servers (MCP) a person has configured for a command line, so that a run of ours can switch them off.

A program starts them outside of any sandbox, and a model may call them. Each program is asked once in a process, and
again when a file that configures them has changed.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep.vendored.utils.removal import scratch_folder

ASKING_SECONDS = 60.0
"""How long a program may take to tell its servers."""


class ServersUnknownError(Exception):
    """A program does not tell its servers although some may be configured; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a program printed when it was asked, or, when it failed, its words as a message may show them."""

    output: str = ""
    fault: str = ""


Ask = Callable[[Sequence[str], Path], Told]
"""Runs a command line in an empty folder, for at most `ASKING_SECONDS`. What it raises goes through."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the servers of a program come from.

    `who`: the program as a message calls it. `key`: what tells it from others: its path, its home. `question`: the
    command line that lists them when run in a folder. `read`: their names in what that prints; None when it is not
    what is expected. `files`: files and folders that can configure servers. `may_have`: whether they seem to.
    """

    who: str
    key: tuple[str, ...]
    question: Callable[[Path], list[str]]
    read: Callable[[str], tuple[str, ...] | None]
    files: tuple[Path, ...]
    may_have: Callable[[Path], bool]


_Stamp = tuple[tuple[str, int, int], ...]
_LOCK = threading.Lock()
_KNOWN: dict[tuple[str, ...], tuple[_Stamp, tuple[str, ...]]] = {}


def servers_of(source: Source, ask: Ask) -> tuple[str, ...]:
    """The names of all servers of a program, those that are switched off included.

    None when it cannot tell and nothing is configured. Raises ServersUnknownError when something is.
    """
    stamp = _stamp(source.files)
    with _LOCK:
        known = _KNOWN.get(source.key)
        if known is None or known[0] != stamp:
            known = stamp, _asked(source, ask)
            _KNOWN[source.key] = known
        return known[1]


def resolved(program: str, path: str | None) -> str:
    """The file that a program's name means on `path`, for `Source.key`."""
    return shutil.which(program, path=path) or program


def _asked(source: Source, ask: Ask) -> tuple[str, ...]:
    with scratch_folder("skillopt_servers_") as folder:
        told = ask(source.question(folder), folder)
    names = None if told.fault else source.read(told.output)
    if names is not None:
        return names
    configured = next((path for path in source.files if source.may_have(path)), None)
    if configured is None:
        return ()
    raise ServersUnknownError(
        f"{source.who} does not tell which tool servers (MCP) are configured in {configured} "
        f"({told.fault or 'its list has another form'}), so they cannot be switched off for this run; update "
        f"{source.who}, or remove them there."
    )


def _stamp(files: Sequence[Path]) -> _Stamp:
    seen = []
    for path in files:
        with contextlib.suppress(OSError):
            state = path.stat()
            seen.append((str(path), state.st_mtime_ns, state.st_size))
    return tuple(seen)
