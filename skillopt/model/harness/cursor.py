"""Cursor's agent: `cursor-agent -p` in its workspace.

Without leave to edit files it works in its mode for questions; with it, only inside its sandbox. MCP servers are never
approved. Of what it prints only a sanitised form is kept: no prompt, no argument or result of a tool, no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from skillopt.errors import ConfigError
from skillopt.model.cli_chat import asks_to_sign_in, error_from_words, json_events, not_signed_in
from skillopt.model.harness.agent import Agent, AgentRun, Command, Job
from skillopt.model.harness.runner import complete_with
from skillopt.model.harness.workspace import Workspace
from skillopt.model.registry import setting_hint
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig
from skillopt.utils.process import ProcessResult, child_environment
from skillopt.utils.redact import MASK, redact

ENVIRONMENT = ("CURSOR_API_KEY",)
FLAGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "begin": ("-p", "--output-format", "stream-json", "--trust"),
        "folder": ("--workspace",),
        "sandbox": ("--sandbox",),
        "edit": ("--force",),
        "look": ("--mode", "ask"),
        "model": ("--model",),
        "more": ("--add-dir",),
    }
)
"""Every flag that is given to Cursor's agent."""

OMITTED = "[OMITTED]"
NO_JSON = "[OMITTED NON-JSON OUTPUT]"
_OMITTED_KEYS = frozenset({"args", "content", "filetext", "prompt", "result"})
_SECRET_KEYS = frozenset(
    {"accesstoken", "authorization", "cursorapikey", "password", "refreshtoken", "secret", "token"}
)
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]")


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of `cursor-agent -p` in a workspace. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(AGENT, call, role, ctx)


def build_command(job: Job) -> Command:
    """The command line of one attempt; the prompt is its standard input."""
    argv = [job.setting("path") or "cursor-agent", *FLAGS["begin"], *FLAGS["folder"], str(job.folder)]
    argv += [*FLAGS["sandbox"], _sandbox(job.role, job.workspace)]
    argv += FLAGS["edit"] if job.workspace.allow_file_edits else FLAGS["look"]
    argv += [*FLAGS["model"], job.model] if job.model else []
    for path in job.data_dirs:
        argv += [*FLAGS["more"], str(path)]
    return Command(tuple(argv), job.prompt)


def parse_result(job: Job, result: ProcessResult) -> ModelReply:
    """The text of the last result, empty when there is none, or the error that the run tells."""
    event = _last_result(result.stdout)
    text = event.get("result")
    if result.code or event.get("is_error") or str(event.get("subtype") or "").startswith("error"):
        told = str(text or event.get("error") or "").strip() or result.stderr.strip()
        suffix = f" (exit code {result.code})" if result.code else ""
        raise error_from_words(f"{told or 'it says no reason'}{suffix}", job.where)
    said = text if isinstance(text, str) else ""
    notice = said or result.stderr or ("" if event else result.stdout)
    if asks_to_sign_in(notice):
        raise not_signed_in(notice, job.where)
    return ModelReply(said)


def sanitize(output: str) -> str:
    """What was printed without anything that a person, a tool or the model said, and without secrets."""
    return "\n".join(_sanitized(output))


def check(role: RoleConfig, workspace: Workspace) -> None:
    """Refuse to let it edit without its sandbox. Raises ConfigError."""
    if workspace.allow_file_edits and _sandbox(role, workspace) == "disabled":
        raise ConfigError(
            "The task lets Cursor's agent edit files and its sandbox is disabled; refusing to combine --force with "
            f"that: set {setting_hint(role, 'sandbox')} to enabled."
        )


def summarize(job: Job, run: AgentRun) -> str:
    """The run in short: how it was made and ended, never what was said."""
    events = json_events(run.trace)
    first = next((event for event in events if event.get("type") == "system"), {})
    last = next((event for event in reversed(events) if event.get("type") == "result"), {})
    calls = sum(event.get("type") == "tool_call" and event.get("subtype") == "started" for event in events)
    rows = {
        "model": first.get("model") or job.model,
        "permission mode": first.get("permissionMode") or "",
        "session": last.get("session_id") or first.get("session_id") or "",
        "tool calls": calls,
        "duration ms": _whole(last.get("duration_ms")),
        "error": run.status if run.error else "",
        "response characters": len(run.answer),
    }
    return "\n".join(f"{name}: {value}" for name, value in rows.items() if value != "")


def _sandbox(role: RoleConfig, workspace: Workspace) -> str:
    return workspace.sandbox or str(role.settings.get("sandbox") or "enabled")


def _last_result(output: str) -> JsonObject:
    return next((event for event in reversed(json_events(output)) if event.get("type") == "result"), {})


def _sanitized(output: str) -> Iterator[str]:
    """Each event as a line; a run of other lines as one."""
    hidden = False
    for line in output.splitlines():
        events = json_events(line)
        yield from (json.dumps(_clean(event), ensure_ascii=False, separators=(",", ":")) for event in events)
        if not events and line.strip() and not hidden:
            yield NO_JSON
        hidden = not events and (hidden or bool(line.strip()))


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _cleaned_field(str(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def _cleaned_field(key: str, value: Any) -> Any:
    plain = _NOT_ALPHANUMERIC.sub("", key.lower())
    if plain in _OMITTED_KEYS:
        return OMITTED
    if plain in _SECRET_KEYS or plain.endswith("apikey"):
        return MASK
    return _clean(value)


def _whole(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 1e15 else 0


def _environment(role: RoleConfig) -> dict[str, str]:  # noqa: ARG001 - the shape of `Agent.environment`
    return child_environment(*ENVIRONMENT)


AGENT = Agent(
    title="the Cursor command line",
    slug="cursor",
    sign_in="Run `cursor-agent login`, or set CURSOR_API_KEY.",
    environment=_environment,
    build_command=build_command,
    parse_result=parse_result,
    sanitize=sanitize,
    check=check,
    summarize=summarize,
)
