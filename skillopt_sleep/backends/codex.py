"""Codex's command line: one run of `codex exec` a call, without an agent's powers.

It works read-only in a new, empty folder, keeps no session of it, reads no project's documents, and its own tools are
off. Its sign-in and its own configuration (`CODEX_HOME`) apply, but for what it would start there: tool servers, hooks,
plugins, the program to notify. The answer comes back in a file that belongs to this
attempt alone, the tokens as events; error output is never taken for an answer. In a checkout it edits files and runs
commands in its own sandbox, without network, inside the pen of the checkout (see `codex_checkout`).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends import codex_checkout
from skillopt_sleep.backends.agents import Agent
from skillopt_sleep.backends.cli import CliBackend
from skillopt_sleep.backends.faults import asks_to_sign_in, fault_from_words, not_signed_in
from skillopt_sleep.backends.programs import (
    SERVER,
    Program,
    StandIns,
    find_program,
    json_events,
    secrets_of,
    work_folder,
)
from skillopt_sleep.backends.wire import Outgoing, Reply
from skillopt_sleep.vendored.utils.codex_home import as_flags, closing, codex_source
from skillopt_sleep.vendored.utils.process import ProcessResult, child_environment

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Workspace

PATH_VARIABLE = "SKILLOPT_SLEEP_CODEX_PATH"
ENVIRONMENT = ("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")
FLAGS = ("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never", "--sandbox", "read-only")
"""What every run is given, before its settings."""

FEATURES_OFF = (
    *("shell_tool", "unified_exec", "view_image", "image_generation", "multi_agent", "goals"),
    *("apps", "plugins", "hooks", "memories"),
)
"""What Codex can do beyond answering, and shall not."""

PROGRAM = Program("The codex command line", "codex_path", "run `codex login`, or set CODEX_API_KEY")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


class CodexBackend(CliBackend):
    """Attempts, grades and edits by Codex. Stand-in tools come to it from a server of ours that runs nothing.

    `project_dir` is taken for compatibility and not used: a score must not depend on the files of a project.
    """

    name = "codex"
    has_tools = True
    works_in_files = True
    timeout = 240.0

    def __init__(self, model: str = "", *, path: str = "", project_dir: str = "", **options: Any) -> None:  # noqa: ARG002
        super().__init__(model.strip() or os.environ.get("SKILLOPT_SLEEP_CODEX_MODEL", "").strip(), **options)
        self.path = find_codex(path)
        self._trial = codex_checkout.Trial()

    def check(self) -> None:
        """Find out whether the program is there."""
        PROGRAM.check(self.path)

    def send(self, outgoing: Outgoing) -> Reply:
        """One run of the program."""
        if outgoing.workspace is not None:
            return self._in_checkout(outgoing, outgoing.workspace)
        env = child_environment(*ENVIRONMENT)
        servers = PROGRAM.tool_servers(codex_source(self.path, env), env, seconds=outgoing.seconds)
        with work_folder("skillopt_sleep_codex_") as folder:
            work, answer = folder / "work", folder / "answer.txt"
            work.mkdir()
            stand_ins = StandIns(folder, outgoing.tools) if outgoing.tools else None
            result = PROGRAM.run(
                build_argv(self.path, self.model, work, answer, stand_ins, servers),
                stdin=outgoing.prompt,
                folder=work,
                env=env,
                seconds=outgoing.seconds,
            )
            said = answer.read_bytes().decode("utf-8", "replace") if answer.is_file() else ""
            called = stand_ins.called if stand_ins is not None else ()
        return parse_result(result, said, secrets_of(env), called)

    def _in_checkout(self, outgoing: Outgoing, workspace: Workspace) -> Reply:
        env = child_environment(*ENVIRONMENT)
        agent = Agent(PROGRAM, self.path, env, codex_checkout.homes(env), codex_checkout.KEPT, rooms=True)
        with workspace.open() as desk:
            self._trial.sandbox(agent, desk)
            servers = PROGRAM.tool_servers(codex_source(self.path, env), env, seconds=outgoing.seconds)
            argv = codex_checkout.build_argv(self.path, self.model, desk.folder, servers)
            result = agent.work(desk, argv, outgoing)
            return agent.done(desk, parse_result(result, "", secrets_of(env)))


def build_argv(
    path: str, model: str, work: Path, answer: Path, stand_ins: StandIns | None, servers: Sequence[str]
) -> list[str]:
    """The command line of one call; the final `-` says that the prompt comes on standard input.

    `servers`: the person's tool servers, which are switched off.
    """
    settings: dict[str, Any] = {
        "approval_policy": "never",
        "web_search": "disabled",
        "project_doc_max_bytes": 0,
        **{f"features.{feature}": False for feature in FEATURES_OFF},
    }
    if stand_ins is not None:
        command, *rest = stand_ins.command
        own = _free_name(servers)
        settings |= {f"mcp_servers.{own}.command": command, f"mcp_servers.{own}.args": rest}
    argv = [path, *FLAGS, "--cd", str(work), *as_flags(closing(servers, work))]
    for key, value in settings.items():
        argv += ["-c", f"{key}={json.dumps(value)}"]
    argv += ["-m", model] if model else []
    return [*argv, "--output-last-message", str(answer), "-"]


def _free_name(taken: Sequence[str]) -> str:
    """The name of our own server, other than any of the person's."""
    names = itertools.chain((SERVER,), (f"{SERVER}_{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def parse_result(result: ProcessResult, answer: str, secrets: tuple[str, ...], called: tuple[str, ...] = ()) -> Reply:
    """The reply in the answer file, else in the last message among the events, or the failure that the run tells."""
    events = json_events(result.stdout)
    failure = _failure(events)
    if result.code or failure:
        words = failure or result.stderr.strip() or result.stdout.strip() or f"exit code {result.code}"
        raise fault_from_words(words, PROGRAM.who, fix=PROGRAM.fix, secrets=secrets)
    text = answer if answer.strip() else _last_message(events)
    notice = text if text or events else result.stdout or result.stderr
    if asks_to_sign_in(notice):
        raise not_signed_in(notice, PROGRAM.who, fix=PROGRAM.fix, secrets=secrets)
    prompt, completion = _usage(events)
    return Reply(text, prompt, completion, tools_called=called)


def find_codex(explicit: str = "") -> str:
    """Path of the program: the setting, the variable, PATH, npm's folders on Windows, the newest of nvm's versions."""
    chosen = find_program(explicit, PATH_VARIABLE, "")
    if chosen:
        return chosen
    on_path = shutil.which("codex")
    return on_path or next((str(path) for path in _installed(os.environ) if path.is_file()), "codex")


def _installed(environ: Mapping[str, str]) -> list[Path]:
    if os.name == "nt":
        roots = (("APPDATA", "npm"), ("USERPROFILE", "AppData/Roaming/npm"), ("NVM_HOME", ""))
        return [Path(environ[name]) / below / "codex.cmd" for name, below in roots if environ.get(name)]
    nvm = Path(environ.get("NVM_DIR") or "~/.nvm").expanduser() / "versions" / "node"
    versions = [path for path in nvm.glob("v*") if _VERSION.fullmatch(path.name)]
    newest_first = sorted(versions, key=lambda path: _numbers(path.name), reverse=True)
    return [path / "bin" / "codex" for path in newest_first]


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(version)
    return tuple(int(part) for part in match.groups()) if match else ()


def _last_message(events: Sequence[Mapping[str, Any]]) -> str:
    items = (event.get("item") for event in reversed(events) if event.get("type") == "item.completed")
    texts = (item.get("text") for item in items if isinstance(item, dict) and item.get("type") == "agent_message")
    return next((text for text in texts if isinstance(text, str)), "")


def _failure(events: Sequence[Mapping[str, Any]]) -> str:
    """What the last failure says; blank when the turn was completed. An error on the way may have been overcome."""
    for event in reversed(events):
        kind = event.get("type")
        if kind == "turn.completed":
            return ""
        if kind in ("turn.failed", "error"):
            error = event.get("error")
            inner = error.get("message") if isinstance(error, dict) else error
            return str(inner or event.get("message") or kind)
    return ""


def _usage(events: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """(prompt, completion) tokens of the completed turn; None where it tells none."""
    for event in reversed(events):
        data = event.get("usage") if event.get("type") == "turn.completed" else None
        if isinstance(data, dict):
            counts = [data.get(name) for name in ("input_tokens", "output_tokens")]
            known = [count if isinstance(count, int) and count >= 0 else None for count in counts]
            return known[0], known[1]
    return None, None
