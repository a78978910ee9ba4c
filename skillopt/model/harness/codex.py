"""Codex as a coding agent: `codex exec` in its workspace.

Without leave to edit files its sandbox is read-only, whatever is configured. The prompt goes in on standard input, the
answer comes back in a file of this attempt, the steps and the tokens as events. Commands that it runs get none of its
own credentials. Its own configuration and sign-in (`CODEX_HOME`) apply, but for what starts something outside of its
sandbox or widens it: tool servers, hooks, plugins, apps, rules, the program to notify, more folders to write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from skillopt.model.backends import codex_exec as chat
from skillopt.model.harness.agent import Agent, AgentRun, Command, Job
from skillopt.model.harness.codex_trace import events_as_text, summarize
from skillopt.model.harness.runner import complete_with, refuse_sdk
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig
from skillopt.utils.codex_home import as_flags, closing, codex_source
from skillopt.utils.process import ProcessResult, child_environment
from skillopt.utils.tool_servers import Source

ENVIRONMENT = chat.ENVIRONMENT
FLAGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "begin": ("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never", "--ignore-rules"),
        "folder": ("-C",),
        "profile": ("-p",),
        "set": ("-c",),
        "sandbox": ("--sandbox",),
        "model": ("-m",),
        "image": ("-i",),
        "answer": ("--output-last-message",),
        "stdin": ("-",),
    }
)
"""Every flag that is given to Codex."""

FEATURES_OFF = ("apps", "plugins", "hooks", "memories")
"""What brings in tools, commands and texts of the person's own."""

_NO_EFFORT = ("", "none")


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of `codex exec` in a workspace. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(AGENT, call, role, ctx)


def build_command(job: Job) -> Command:
    """The command line of one attempt; the final `-` says that the prompt comes on standard input.

    Images come before another flag, because theirs takes every word up to the next one.
    """
    argv = [job.setting("path") or "codex", *FLAGS["begin"], *FLAGS["folder"], str(job.folder)]
    argv += _given("profile", job.setting("profile"))
    effort = _effort(job)
    argv += [] if effort in _NO_EFFORT else _set("model_reasoning_effort", effort)
    argv += [*FLAGS["sandbox"], sandbox(job)]
    argv += _set("approval_policy", job.setting("approval_policy") or "never")
    argv += _set("sandbox_workspace_write.network_access", bool(job.role.settings.get("network_access")))
    argv += _set("web_search", "live" if job.role.settings.get("web_search") else "disabled")
    argv += _set("project_doc_max_bytes", 0)
    argv += _set("shell_environment_policy.inherit", "core")
    argv += _set("allow_login_shell", False)
    argv += [*FLAGS["set"], "sandbox_workspace_write.writable_roots=[]"]
    for feature in FEATURES_OFF:
        argv += _set(f"features.{feature}", False)
    argv += as_flags(closing(job.servers, job.folder))
    argv += _given("model", job.model)
    for image in job.images:
        argv += _given("image", str(image))
    return Command((*argv, *FLAGS["answer"], str(job.answer_file), *FLAGS["stdin"]), job.prompt)


def sandbox(job: Job) -> str:
    """The sandbox of the run: the one asked for with it, else read-only unless files may be edited."""
    if job.workspace.sandbox:
        return job.workspace.sandbox
    return (job.setting("sandbox") or "workspace-write") if job.workspace.allow_file_edits else "read-only"


def parse_result(job: Job, result: ProcessResult) -> ModelReply:
    """The reply in the answer file, else in the last message among the events, or the error that the run tells."""
    path = job.answer_file
    said = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    return chat.read_reply(ModelCall(messages=()), result, said, job.where)


def _summary(job: Job, run: AgentRun) -> str:
    return summarize(run.trace, run.answer, {"sandbox": sandbox(job), "reasoning": _effort(job) or "none"})


def _effort(job: Job) -> str:
    return (job.effort or job.setting("reasoning_effort")).lower()


def _environment(role: RoleConfig) -> dict[str, str]:  # noqa: ARG001 - the shape of `Agent.environment`
    return child_environment(*ENVIRONMENT)


def _servers(job: Job) -> Source:
    return codex_source(job.setting("path") or "codex", job.env, job.setting("profile"))


def _set(key: str, value: str | int) -> list[str]:
    return [*FLAGS["set"], f"{key}={json.dumps(value)}"]


def _given(flag: str, value: str) -> list[str]:
    return [*FLAGS[flag], value] if value else []


AGENT = Agent(
    title="the Codex command line",
    slug="codex",
    sign_in="Run `codex login`, or set CODEX_API_KEY.",
    environment=_environment,
    build_command=build_command,
    parse_result=parse_result,
    sanitize=events_as_text,
    check=refuse_sdk,
    summarize=_summary,
    servers=_servers,
)
