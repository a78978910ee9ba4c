"""Claude Code as a coding agent: `claude -p` in its workspace, or its Python SDK, which runs the same program.

Without leave to edit files it has the tools that read, and no shell. With it, it may edit files in its folder and run
commands. It loads none of the user's own settings, hooks, servers, commands or memory. The prompt goes in on standard
input; the output is its JSON result, so that errors and tokens are told as such, and the answer is the result's text.
Through the SDK it has the same powers and no more, the rules about its folder are instructions and not prompt, and the
answer is a structured one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from skillopt.config.agent_rows import wants_sdk
from skillopt.model.backends import claude_chat as chat
from skillopt.model.cli_chat import json_events
from skillopt.model.harness import sdk
from skillopt.model.harness.agent import Agent, Command, Job
from skillopt.model.harness.prompt import rules
from skillopt.model.harness.runner import complete_with
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig
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

_NO_BEDROCK = json.dumps({"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}})
_LARGEST_MESSAGE = 8 * 1024 * 1024
_STRUCTURED = "StructuredOutput"
_DEFAULT_EFFORT = "medium"
_NO_EFFORT = ("", "none", "off")
_OWN_RETRIES = "CLAUDE_CODE_MAX_RETRIES"  # a run of many requests shall not fail with the first that does


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run in a workspace, in the one mode that is set. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(SDK_AGENT if wants_sdk(role.settings) else AGENT, call, role, ctx)


def build_command(job: Job) -> Command:
    """The command line of one attempt; the prompt is its standard input."""
    tools, allowed, mode = _powers(job)
    argv = [job.setting("path") or "claude", *FLAGS["begin"], *FLAGS["permissions"], mode]
    argv += [*FLAGS["folder"], str(job.folder)]
    argv += [*FLAGS["tools"], ",".join(tools), *FLAGS["allowed"], ",".join(allowed), *FLAGS["isolation"]]
    if profile := job.setting("profile"):
        argv += [*FLAGS["settings"], _NO_BEDROCK]
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


def sdk_command(job: Job) -> Command:
    """The request to the SDK of one attempt, with the powers and the isolation of the command line."""
    tools, allowed, mode = _powers(job)
    profile, effort, thinking = job.setting("profile"), _effort(job), job.setting("max_thinking_tokens")
    own_words = "\n\n".join([rules(job.workspace), *([f"Profile: {profile}"] if profile else [])])
    options: JsonObject = {
        "cli_path": sdk.program(job, "claude"),
        "cwd": str(job.folder),
        "add_dirs": [str(job.folder), *(str(path) for path in job.data_dirs)],
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": own_words},
        "output_format": {"type": "json_schema", "schema": sdk.ANSWER},
        "tools": list(tools),
        "allowed_tools": list(allowed),
        "permission_mode": mode,
        "setting_sources": [],
        "strict_mcp_config": True,
        "extra_args": {"disable-slash-commands": None, "no-session-persistence": None},
        "max_buffer_size": _LARGEST_MESSAGE,
        **({"model": job.model.removeprefix("anthropic/")} if job.model else {}),
        **({"effort": effort} if effort else {}),
        **({"max_thinking_tokens": int(thinking)} if thinking else {}),
        **({"settings": _NO_BEDROCK} if profile else {}),
    }
    wishes = {"verbatim_prompts": True}
    return sdk.command(job, {"sdk": "claude", "prompt": job.request, "options": options, "wishes": wishes})


def parse_sdk(job: Job, result: ProcessResult) -> ModelReply:
    """The reply in the structured output, also when the session ended in an error after it, else as `parse_result`."""
    told = sdk.told(result, job)
    structured = _structured(json_events(told.stdout))
    answer = sdk.final_answer(structured) if structured else ""
    if not answer:
        return chat.parse_reply(told, ModelCall(messages=()), job.where)
    return ModelReply(answer, usage=chat.used(told), model=chat.model_of(told))


def _structured(events: Sequence[JsonObject]) -> Mapping[str, Any]:
    """The last structured output among the messages: of the result, or as the tool call that gives it."""
    for event in reversed(events):
        content = event.get("content")
        blocks = content if isinstance(content, list) else []
        calls = (block for block in reversed(blocks) if isinstance(block, dict) and block.get("name") == _STRUCTURED)
        for found in (event.get("structured_output"), *(call.get("input") for call in calls)):
            if isinstance(found, Mapping):
                return found
    return {}


def _messages(output: str) -> str:
    """What the SDK passed on, as one JSON object: the session in short, then every message."""
    events = [event for event in json_events(output) if event.get("type") != sdk.END]
    if not events:
        return output
    start: Any = next((event.get("data") for event in events if event.get("subtype") == "init"), None) or {}
    result = next((event for event in reversed(events) if event.get("type") == "result"), {})
    head = {
        **{name: start.get(name) for name in ("session_id", "model", "tools")},
        **{name: result.get(name) for name in ("duration_ms", "total_cost_usd", "num_turns", "usage")},
    }
    return json.dumps({**head, "messages": events}, ensure_ascii=False, indent=1)


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
    used=chat.used,
)
SDK_AGENT = replace(
    AGENT,
    title="the Claude SDK",
    build_command=sdk_command,
    parse_result=parse_sdk,
    sanitize=_messages,
    check=sdk.check,
    way="SDK",
)
