"""Small executables that play a command line, and write down how they were called.

cli = fake_claude(tmp_path, "Paris")
session = Session({"target": cli_role("claude_chat", cli)})
cli.calls[0].argv, cli.calls[0].stdin, cli.calls[0].environment
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from skillopt.testing import cli_actor
from skillopt.testing.roles import role as any_role
from skillopt.types import RoleConfig

CLAUDE_USAGE: Mapping[str, int] = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 5,
}


@dataclass(frozen=True, slots=True)
class CliTurn:
    """What the program does when it is called once.

    `files`: text to write into the file that the argument after a flag names. `flood`: bytes of noise after `stdout`.
    `daemons`: processes that it starts and leaves behind: own group, deaf to TERM. `hang`: it does not end. `leaves`:
    text to write into files of the working folder. `when`: the turn answers every call whose arguments or input hold
    these words, `sees`: and whose working folder holds all of these in its files; turns without both are played in
    order, and the last one again and again. `aside`: the call is counted among `FakeCli.asides` and not among `calls`.
    """

    stdout: str = ""
    stderr: str = ""
    code: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    flood: int = 0
    daemons: int = 0
    hang: bool = False
    leaves: Mapping[str, str] = field(default_factory=dict)
    when: str = ""
    sees: tuple[str, ...] = ()
    aside: bool = False


@dataclass(frozen=True, slots=True)
class CliCall:
    """How the program was called. `files`: what lay in its working folder then. `pids`: itself and its daemons."""

    number: int
    argv: tuple[str, ...]
    stdin: str
    cwd: str
    environment: Mapping[str, str]
    files: Mapping[str, str]
    pids: tuple[int, ...]

    def value(self, flag: str) -> str | None:
        """The argument after `flag`, or None when the flag was not given."""
        return self.argv[self.argv.index(flag) + 1] if flag in self.argv[:-1] else None


ASIDES: Mapping[str, tuple[CliTurn, ...]] = {
    "codex": (CliTurn("[]", when="mcp list --json", aside=True),),
    "copilot": (CliTurn('{"mcpServers": {}}', when="mcp list --json", aside=True),),
}
"""What a program of this name answers besides its script: that it has no tool servers."""


class FakeCli:
    """An executable `name` in `folder` that acts out `script`, and `ASIDES` where the script says nothing else.

    `path` is what a backend starts. It costs about 30 ms a call.
    """

    def __init__(self, folder: Path, name: str, script: CliTurn | Sequence[CliTurn] = CliTurn()) -> None:
        turns = [*([script] if isinstance(script, CliTurn) else script), *ASIDES.get(name, ())]
        self._folder = folder.resolve() / f"{name}-fake"
        self._folder.mkdir(parents=True)
        (self._folder / "script.json").write_text(json.dumps([asdict(turn) for turn in turns]), "utf-8")
        actor = self._folder.with_suffix(".py")
        actor.write_text(Path(cli_actor.__file__).read_text("utf-8"), "utf-8")
        self.path = _launcher(folder.resolve(), name, actor)

    @property
    def calls(self) -> tuple[CliCall, ...]:
        """All calls so far, in the order in which they came."""
        return self._recorded("call")

    @property
    def asides(self) -> tuple[CliCall, ...]:
        """All calls so far that were answered aside."""
        return self._recorded("aside")

    @property
    def survivors(self) -> tuple[int, ...]:
        """Ids of the processes of all calls that are still alive."""
        return tuple(pid for call in self.calls for pid in call.pids if _alive(pid))

    def _recorded(self, kind: str) -> tuple[CliCall, ...]:
        found = [json.loads(path.read_text("utf-8")) for path in sorted(self._folder.glob(f"*.{kind}"))]
        return tuple(CliCall(**{**data, "argv": tuple(data["argv"]), "pids": tuple(data["pids"])}) for data in found)


def cli_role(backend: str, cli: FakeCli, role: str = "target", *, model: str = "fake", **settings: Any) -> RoleConfig:
    """A role whose backend starts `cli`; `settings` win over what the backend's row says."""
    return any_role("", role, backend=backend, model=model, path=str(cli.path), **settings)


def claude_result(result: str = "ok", /, **fields: Any) -> str:
    """One line as Claude's command line prints it at its end. `fields` replace or add fields; None leaves one out."""
    event: dict[str, Any] = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": result,
        "session_id": "fake-session",
        "num_turns": 1,
        "duration_ms": 1200,
        "duration_api_ms": 1000,
        "stop_reason": "end_turn",
        "usage": dict(CLAUDE_USAGE),
        **fields,
    }
    kept = {name: value for name, value in event.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def fake_claude(folder: Path, reply: str | Mapping[str, Any] = "ok", **faults: Any) -> FakeCli:
    """A fake `claude` that answers `reply`: text, or an object as the structured output.

    `faults`: fields of `CliTurn` (`code`, `stderr`, `hang`, `daemons`, …; `stdout` replaces the whole output), and
    otherwise fields of the result event (`is_error`, `subtype`, `usage`, `stop_reason`, …).
    """
    turn_fields = {name: faults.pop(name) for name in tuple(faults) if name in CliTurn.__dataclass_fields__}
    if isinstance(reply, str):
        said = claude_result(reply, **faults)
    else:
        said = claude_result("", **{"structured_output": dict(reply), **faults})
    return FakeCli(folder, "claude", CliTurn(**{"stdout": said, **turn_fields}))


def _launcher(folder: Path, name: str, actor: Path) -> Path:
    """The file to start: the actor under the wanted name, with this interpreter."""
    if os.name == "nt":
        path = folder / f"{name}.cmd"
        path.write_text(f'@"{sys.executable}" -IS "{actor}" %*\r\n', "utf-8")
        return path
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{actor}" "$@"\n', "utf-8")
    path.chmod(0o755)
    return path


def _alive(pid: int) -> bool:
    """True for a process that runs; one that ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        if Path("/proc/self/stat").exists():
            return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
