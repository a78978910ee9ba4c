"""What the backends that run a command line have in common: one run in an empty folder, its faults, its JSON lines.

The prompt goes in as standard input, never as an argument. The child gets an allow-list of this process's environment,
and its whole family ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.backends import tool_server
from skillopt_sleep.backends.completions import TOOL_RESULT, function_names, tool_about
from skillopt_sleep.backends.faults import ProviderFault, shown
from skillopt_sleep.vendored.utils.cancel import CancelToken
from skillopt_sleep.vendored.utils.process import ProcessResult, run_process
from skillopt_sleep.vendored.utils.tool_servers import ASKING_SECONDS, ServersUnknownError, Source, Told, servers_of

SERVER = "replay"
_SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "HEADERS")
_LAST_WORDS = 300


class Late(ProviderFault):
    """The program was ended at the end of its time."""


@dataclass(frozen=True, slots=True)
class Program:
    """How messages speak of a command line: `who` it is, the `setting` of its path, and the `fix` for signing in."""

    who: str
    setting: str
    fix: str

    def check(self, path: str) -> None:
        """Find out whether it could be started. Raises ProviderFault (setup)."""
        if shutil.which(path) is None:
            raise self._not_there("there is no such program")

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str,
        folder: Path,
        env: Mapping[str, str],
        seconds: float,
        cancel: CancelToken | None = None,
    ) -> ProcessResult:
        """Run it once; its exit code is for the caller to judge.

        Raises ProviderFault: setup when it cannot be started, transient (Late) at the end of the time; and
        InterruptedRunError when `cancel` was cancelled.
        """
        try:
            result = run_process(argv, cwd=folder, env=env, stdin=stdin, timeout=seconds, cancel=cancel)
        except OSError as error:
            raise self._not_there(error.strerror or type(error).__name__) from error
        if result.timed_out:
            said = shown((result.stderr.strip() or result.stdout.strip())[-_LAST_WORDS:], secrets_of(env))
            words = f" Its last words: {said}" if said else ""
            raise Late(f"{self.who} did not answer within {seconds:.3g} s and was ended.{words}", detail=said)
        return result

    def tool_servers(self, source: Source, env: Mapping[str, str], *, seconds: float) -> tuple[str, ...]:
        """The names of the tool servers that the person has configured; the program is asked once in a process.

        Raises ProviderFault (setup) when it does not tell them, though there are some, and as `run` does.
        """

        def ask(argv: Sequence[str], folder: Path) -> Told:
            result = self.run(argv, stdin="", folder=folder, env=env, seconds=min(seconds, ASKING_SECONDS))
            words = result.stderr.strip() or result.stdout.strip() or f"exit code {result.code}"
            return Told(fault=shown(words, secrets_of(env))) if result.code else Told(result.stdout)

        try:
            return servers_of(source, ask)
        except ServersUnknownError as unknown:
            raise ProviderFault(str(unknown), kind="setup") from None

    def _not_there(self, reason: str) -> ProviderFault:
        return ProviderFault(
            f"{self.who} cannot be started ({reason}). Install it, or set {self.setting} to the path of the program.",
            kind="setup",
        )


def secrets_of(env: Mapping[str, str]) -> tuple[str, ...]:
    """The values in a child's environment that no message may show."""
    return tuple(value for name, value in env.items() if name.upper().endswith(_SECRET_ENDINGS))


@contextlib.contextmanager
def work_folder(prefix: str) -> Iterator[Path]:
    """An empty private folder, removed at the end whatever happens."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def json_events(text: str) -> list[dict[str, Any]]:
    """The JSON objects of an output: of the whole text, of each of its lines, or of lists on its lines."""
    return _objects(text) or [event for line in text.splitlines() for event in _objects(line)]


def _objects(text: str) -> list[dict[str, Any]]:
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]


class StandIns:
    """Stand-in tools of one run: a server on standard input and output that answers every call with the same text.

    It runs nothing and reads nothing. `folder` holds its list of tools and its record of calls, and is not the folder
    that the model's program works in.
    """

    def __init__(self, folder: Path, tools: Sequence[str]) -> None:
        self._names = function_names(tools)
        self._list, self._record = folder / "tools.json", folder / "calls.jsonl"
        listed = [{"name": name, "description": tool_about(tool)} for name, tool in self._names.items()]
        self._list.write_text(json.dumps({"tools": listed, "result": TOOL_RESULT}), encoding="utf-8")

    @property
    def command(self) -> list[str]:
        """What starts the server."""
        return [sys.executable, "-I", "-S", str(Path(tool_server.__file__)), str(self._list), str(self._record)]

    @property
    def functions(self) -> list[str]:
        """The names of the tools as the model sees them."""
        return list(self._names)

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that were called, by their own names, in the order of their first call."""
        if not self._record.is_file():
            return ()
        rows = json_events(self._record.read_text(encoding="utf-8", errors="replace"))
        names = (self._names.get(str(row.get("name"))) for row in rows)
        return tuple(dict.fromkeys(name for name in names if name is not None))


def find_program(explicit: str, variable: str, name: str) -> str:
    """Path of a program: the setting, else the environment's `variable`, else its bare name (looked up on PATH)."""
    chosen = explicit.strip() or os.environ.get(variable, "").strip()
    if not chosen:
        return name
    return str(paths.expand(chosen)) if Path(chosen).name != chosen else chosen
