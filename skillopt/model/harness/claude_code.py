"""Claude Code as a coding agent: `claude -p` in its workspace.

Without leave to edit files it has the tools that read, and no shell. With it, it may edit files in its folder and run
commands. It loads none of the user's own settings, hooks, servers, commands or memory. The prompt goes in on standard
input; the output is its JSON result, so that errors and tokens are told as such, and the answer is the result's text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import MappingProxyType

from skillopt.model.backends import claude_chat as chat
from skillopt.model.harness.agent import Agent, Command, Job
from skillopt.model.harness.runner import complete_with, refuse_sdk
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig
from skillopt.utils.process import ProcessResult

ENVIRONMENT, CLOUD_ENVIRONMENT = chat.ENVIRONMENT, chat.CLOUD_ENVIRONMENT
FLAGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "begin": ("-p", "--output-format", "json"),
        "isolation": (
            *("--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"),
            *("--setting-sources", ""),
        ),
        "permissions": ("--permission-mode",),
        "folder": ("--add-dir",),
        "tools": ("--tools",),
        "allowed": ("--allowedTools",),
        "settings": ("--settings",),
        "instructions": ("--append-system-prompt",),
        "model": ("--model",),
        "effort": ("--effort",),
        "thinking": ("--max-thinking-tokens",),
    }
)
"""Every flag that is given to Claude Code."""

READING = ("Read", "Grep", "Glob")
EDITING = (*READING, "Edit", "Write", "Bash")

_DEFAULT_EFFORT = "medium"
_NO_EFFORT = ("", "none", "off")
_OWN_RETRIES = "CLAUDE_CODE_MAX_RETRIES"  # a run of many requests shall not fail with the first that does


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of `claude -p` in a workspace. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(AGENT, call, role, ctx)


def build_command(job: Job) -> Command:
    """The command line of one attempt; the prompt is its standard input."""
    tools, allowed, mode = _powers(job)
    argv = [job.setting("path") or "claude", *FLAGS["begin"], *FLAGS["permissions"], mode]
    argv += [*FLAGS["folder"], str(job.folder)]
    argv += [*FLAGS["tools"], ",".join(tools), *FLAGS["allowed"], ",".join(allowed), *FLAGS["isolation"]]
    if profile := job.setting("profile"):
        argv += [*FLAGS["settings"], json.dumps({"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}})]
        argv += [*FLAGS["instructions"], f"Profile: {profile}"]
    argv += [*FLAGS["model"], job.model] if job.model else []
    effort = _effort(job)
    argv += [*FLAGS["effort"], effort] if effort else []
    if thinking := job.setting("max_thinking_tokens"):
        argv += [*FLAGS["thinking"], thinking]
    for path in job.data_dirs:
        argv += [*FLAGS["folder"], str(path)]
    return Command(tuple(argv), job.prompt)


def parse_result(job: Job, result: ProcessResult) -> ModelReply:
    """The reply in the JSON result, or the error that it tells."""
    return chat.parse_reply(result, ModelCall(messages=()), job.where)


def _powers(job: Job) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The tools that there are, the rules of what needs no permission, and the mode for everything else."""
    asked, edits = job.workspace.allowed_tools, job.workspace.allow_file_edits
    mode = job.workspace.permission_mode or ("acceptEdits" if edits else "dontAsk")
    if asked:
        return tuple(dict.fromkeys(rule.partition("(")[0] for rule in asked)), asked, mode
    reads = ("Read(./**)", *(f"Read(/{path.as_posix()}/**)" for path in job.data_dirs))
    return (EDITING, (*reads, "Edit(./**)", "Bash"), mode) if edits else (READING, reads, mode)


def _effort(job: Job) -> str:
    """The nearest effort that somebody chose, as the command line knows it; blank for none."""
    own = job.setting("effort").lower()
    chosen = (job.effort if own == _DEFAULT_EFFORT else "").lower() or own
    if chosen in _NO_EFFORT:
        return ""
    return chosen if chosen in chat.EFFORTS else _DEFAULT_EFFORT


def _environment(role: RoleConfig) -> dict[str, str]:  # noqa: ARG001 - the shape of `Agent.environment`
    env = chat.environment(os.environ)
    env.pop(_OWN_RETRIES, None)
    return env


def _sanitize(output: str) -> str:
    return output


AGENT = Agent(
    title="the Claude Code command line",
    slug="claude",
    sign_in="Run `claude` and sign in with /login, or set ANTHROPIC_API_KEY.",
    environment=_environment,
    build_command=build_command,
    parse_result=parse_result,
    sanitize=_sanitize,
    check=refuse_sdk,
    used=chat.used,
)
