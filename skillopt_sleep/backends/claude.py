"""Claude Code's command line: one prompt in, one answer out, nothing of the user's own set-up in between.

It runs in an empty folder without settings, hooks, memory, servers, commands or built-in tools, and keeps no session
of it, which the next harvest would find. In a checkout it has the tools that read and edit files there, and no shell.
Its output is one JSON result, so that errors and tokens are told as such.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends.agents import Agent
from skillopt_sleep.backends.cli import CliBackend
from skillopt_sleep.backends.faults import ProviderFault, asks_to_sign_in, fault_from_words, not_signed_in, shown
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
from skillopt_sleep.vendored.utils.process import ProcessResult, child_environment

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Workspace

DEFAULT_MODEL = "sonnet"
PATH_VARIABLE = "SKILLOPT_SLEEP_CLAUDE_PATH"
FLAGS: tuple[tuple[str, ...], ...] = (
    ("-p",),
    ("--output-format", "json"),
    ("--permission-mode", "dontAsk"),
    ("--tools", ""),
    ("--strict-mcp-config",),
    ("--disable-slash-commands",),
    ("--no-session-persistence",),
    ("--setting-sources", ""),
    ("--exclude-dynamic-system-prompt-sections",),
)
"""What every run is given. `--bare` joins them when there is an API key: with a subscription it could not sign in."""

FILE_TOOLS = ("Read", "Edit", "Write", "Glob", "Grep")
"""What it has in a checkout. A shell could send files away, because the program itself needs the network."""

IN_FOLDER = ("Read(./**)", "Edit(./**)")
"""What it may do with them; writing counts as editing, searching as reading, and links count as what they lead to."""

KEPT = (
    *("settings.json", "settings.local.json", "CLAUDE.md", "agents", "commands", "hooks", "output-styles", "plugins"),
    *("rules", "skills"),
)
"""What of its home stays as it is whatever a run does."""

_OWN_RETRIES = "CLAUDE_CODE_MAX_RETRIES"
_ISOLATION = {
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    _OWN_RETRIES: "0",  # whoever called decides about another attempt
}
_KEY = "ANTHROPIC_API_KEY"
_OWN = (
    *(_KEY, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_GIT_BASH_PATH"),
)
_CLOUDS: Mapping[str, tuple[str, ...]] = {  # handed down only when their switch is on
    "CLAUDE_CODE_USE_BEDROCK": (
        *("AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL"),
    ),
    "CLAUDE_CODE_USE_VERTEX": (
        *("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS"),
        "ANTHROPIC_VERTEX_BASE_URL",
    ),
}
_OFF = ("", "0", "false", "no", "off")
_DECLINED = re.compile(r"unable to respond to this request[^\n]{0,80}\busage policy", re.IGNORECASE)
_CUT = ("max_tokens", "model_context_window_exceeded")
PROGRAM = Program("The claude command line", PATH_VARIABLE, f"run `claude` and sign in with /login, or set {_KEY}")


class ClaudeBackend(CliBackend):
    """Attempts, grades and edits by Claude Code. Stand-in tools come to it from a server of ours that runs nothing."""

    name = "claude"
    has_tools = True
    works_in_files = True

    def __init__(self, model: str = "", *, path: str = "", **options: Any) -> None:
        chosen = model.strip() or os.environ.get("SKILLOPT_SLEEP_CLAUDE_MODEL", "").strip() or DEFAULT_MODEL
        super().__init__(chosen, **options)
        self.path = find_program(path, PATH_VARIABLE, "claude")

    def check(self) -> None:
        """Find out whether the program is there."""
        PROGRAM.check(self.path)

    def send(self, outgoing: Outgoing) -> Reply:
        """One run of the program."""
        if outgoing.workspace is not None:
            return self._in_checkout(outgoing, outgoing.workspace)
        env = environment(os.environ)
        with work_folder("skillopt_sleep_claude_") as folder:
            work = folder / "work"
            work.mkdir()
            stand_ins = StandIns(folder, outgoing.tools) if outgoing.tools else None
            result = PROGRAM.run(
                build_argv(self.path, self.model, folder, stand_ins, bare=_KEY in env),
                stdin=outgoing.prompt,
                folder=work,
                env=env,
                seconds=outgoing.seconds,
            )
            called = stand_ins.called if stand_ins is not None else ()
        return parse_result(result, secrets_of(env), called)

    def _in_checkout(self, outgoing: Outgoing, workspace: Workspace) -> Reply:
        env = environment(os.environ)
        env.pop(_OWN_RETRIES)  # a run of many requests shall not fail with the first that does
        agent = Agent(PROGRAM, self.path, env, homes(env), KEPT, cloud_credentials(env))
        with workspace.open() as desk:
            result = agent.work(desk, checkout_argv(self.path, self.model), outgoing)
            return agent.done(desk, parse_result(result, secrets_of(env)))


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the program needs to sign in and to reach its service, and no other key."""
    clouds = [switch for switch in _CLOUDS if environ.get(switch, "").strip().lower() not in _OFF]
    names = (*_OWN, *clouds, *(name for switch in clouds for name in _CLOUDS[switch]))
    return child_environment(*names, **_ISOLATION)


def build_argv(path: str, model: str, folder: Path, stand_ins: StandIns | None, *, bare: bool) -> list[str]:
    """The command line of one call. The prompt is not in it."""
    argv = [path, *(word for flag in FLAGS for word in flag), *(["--bare"] if bare else [])]
    if stand_ins is not None:
        command, *rest = stand_ins.command
        servers = folder / "servers.json"
        servers.write_text(json.dumps({"mcpServers": {SERVER: {"command": command, "args": rest}}}), encoding="utf-8")
        allowed = ",".join(f"mcp__{SERVER}__{name}" for name in stand_ins.functions)
        argv += ["--mcp-config", str(servers), "--allowedTools", allowed]
    return [*argv, "--model", model] if model else argv


def checkout_argv(path: str, model: str) -> list[str]:
    """The command line of one task in a checkout. Not `--bare`, which leaves out most tools for files."""
    argv = [path, *(word for flag in FLAGS if flag[0] != "--tools" for word in flag)]
    argv += ["--tools", ",".join(FILE_TOOLS), "--allowedTools", ",".join(IN_FOLDER)]
    return [*argv, "--model", model] if model else argv


def homes(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the program keeps its sign-in and its state."""
    named = env.get("CLAUDE_CONFIG_DIR", "").strip()
    return (Path(named).expanduser(),) if named else (Path.home() / ".claude", Path.home() / ".claude.json")


def cloud_credentials(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a cloud's sign-in lies, of those clouds that are switched on."""
    aws, google = Path.home() / ".aws", Path.home() / ".config" / "gcloud"
    named = env.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip()
    return (
        *((aws,) if "CLAUDE_CODE_USE_BEDROCK" in env else ()),
        *((Path(named) if named else google,) if "CLAUDE_CODE_USE_VERTEX" in env else ()),
    )


def parse_result(result: ProcessResult, secrets: tuple[str, ...], called: tuple[str, ...] = ()) -> Reply:
    """The reply in what the program printed, or the failure that it tells."""
    event = next((event for event in reversed(json_events(result.stdout)) if event.get("type") == "result"), None)
    if event is None:
        raise _no_result(result, secrets)
    text = str(event.get("result") or "")
    failed = bool(event.get("is_error")) or str(event.get("subtype") or "").startswith("error")
    if failed and _DECLINED.search(text):
        raise ProviderFault(f"{PROGRAM.who} declined: {shown(text, secrets)}", kind="refused", detail=text)
    prompt, completion = _usage(event)
    if failed or result.code:
        fault = _fault(_said(event, result), secrets)
        fault.tokens = (prompt or 0) + (completion or 0) or None
        raise fault
    if asks_to_sign_in(text) and not completion:
        raise not_signed_in(text, PROGRAM.who, fix=PROGRAM.fix, secrets=secrets)
    return Reply(text, prompt, completion, _model(event), called, str(event.get("stop_reason") or "") in _CUT)


def _no_result(result: ProcessResult, secrets: tuple[str, ...]) -> ProviderFault:
    said = result.stdout.strip()
    if asks_to_sign_in(said):
        return not_signed_in(said, PROGRAM.who, fix=PROGRAM.fix, secrets=secrets)
    if result.code:
        return _fault(result.stderr.strip() or said or f"exit code {result.code}", secrets)
    words = shown(said or result.stderr.strip(), secrets) or "nothing was printed"
    return ProviderFault(f"{PROGRAM.who} ended without a result: {words}", detail=words)


def _fault(words: str, secrets: tuple[str, ...]) -> ProviderFault:
    return fault_from_words(words, PROGRAM.who, fix=PROGRAM.fix, secrets=secrets)


def _said(event: Mapping[str, Any], result: ProcessResult) -> str:
    """What a failed result says: its status and text, its list of errors, its kind, and what stands on stderr."""
    errors = event.get("errors")
    listed = "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""
    kind = str(event.get("subtype") or "")
    said = str(event.get("result") or "") or listed or (kind if kind != "success" else "") or result.stderr.strip()
    status = event.get("api_error_status")
    return f"{f'HTTP {status} ' if isinstance(status, int) else ''}{said or f'exit code {result.code}'}"


def _usage(event: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """(prompt, completion) tokens; the prompt with what was read from the provider's cache and written to it."""
    counted = event.get("usage")
    if not isinstance(counted, Mapping):
        return None, None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = [counted.get(name, 0) for name in names]
    if not all(isinstance(count, int) and count >= 0 for count in counts) or "input_tokens" not in counted:
        return None, None
    return sum(counts[:3]), counts[3]


def _model(event: Mapping[str, Any]) -> str:
    used = event.get("modelUsage")
    return str(next(iter(used))) if isinstance(used, Mapping) and len(used) == 1 else ""
