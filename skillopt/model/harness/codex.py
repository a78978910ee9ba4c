"""Codex as a coding agent: `codex exec` in its workspace, or its Python SDK, which runs the same program.

Without leave to edit files its sandbox is read-only, whatever is configured. The prompt goes in on standard input, the
answer comes back in a file of this attempt, the steps and the tokens as events. Commands that it runs get none of its
own credentials. Its own configuration and sign-in (`CODEX_HOME`) apply, but for what starts something outside of its
sandbox or widens it: tool servers, hooks, plugins, apps, rules, the program to notify, more folders to write.

The SDK has no option for most of that. It starts a launcher that is written for the attempt, which starts Codex with it
and with what the SDK gives. Folders of data are no additional directories of the SDK's, since Codex could write there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from skillopt.config.agent_rows import wants_sdk
from skillopt.model.backends import codex_exec as chat
from skillopt.model.harness import sdk
from skillopt.model.harness.agent import Agent, AgentRun, Command, Job
from skillopt.model.harness.codex_trace import events_as_text, summarize
from skillopt.model.harness.runner import complete_with
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig
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

SDK_BEGIN = ("--ephemeral", "--color", "never", "--ignore-rules")
"""Of the flags that begin a run, those that the SDK does not give."""

SDK_EFFORTS = ("minimal", "low", "medium", "high")
"""What the SDK takes as effort; any other one goes past it."""

_NO_EFFORT = ("", "none")


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run in a workspace, in the one mode that is set. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(SDK_AGENT if wants_sdk(role.settings) else AGENT, call, role, ctx)


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
    argv += _closed(job)
    argv += _given("model", job.model)
    for image in job.images:
        argv += _given("image", str(image))
    return Command((*argv, *FLAGS["answer"], str(job.answer_file), *FLAGS["stdin"]), job.prompt)


def sdk_command(job: Job) -> Command:
    """The request to the SDK of one attempt; writes the launcher that it names, outside of the workspace."""
    effort = _effort(job)
    flags = [*SDK_BEGIN, *_given("profile", job.setting("profile"))]
    flags += [] if effort in (*_NO_EFFORT, *SDK_EFFORTS) else _set("model_reasoning_effort", effort)
    thread: JsonObject = {
        "working_directory": str(job.folder),
        "skip_git_repo_check": True,
        "sandbox_mode": sandbox(job),
        "network_access_enabled": bool(job.role.settings.get("network_access")),
        "approval_policy": job.setting("approval_policy") or "never",
        **({"model": job.model} if job.model else {}),
        **({"model_reasoning_effort": effort} if effort in SDK_EFFORTS else {}),
    }
    images = [{"type": "local_image", "path": str(image)} for image in job.images]
    launcher = job.answer_file.with_name("codex")
    sdk.write_launcher(launcher, sdk.program(job, "codex"), "exec", [*flags, *_closed(job)])
    prompt = [{"type": "text", "text": job.prompt}, *images] if images else job.prompt
    request = {"sdk": "codex", "prompt": prompt, "launcher": str(launcher), "thread": thread, "schema": sdk.ANSWER}
    return sdk.command(job, request)


def parse_sdk(job: Job, result: ProcessResult) -> ModelReply:
    """The reply in the last message among the events, or the error that the run tells."""
    reply = chat.read_reply(ModelCall(messages=()), sdk.told(result, job), "", job.where)
    return replace(reply, text=sdk.answer_in(reply.text))


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


def _closed(job: Job) -> list[str]:
    """What shuts in a run, whichever way it is started: no more of the web, of documents, of tools than is set."""
    argv = _set("web_search", "live" if job.role.settings.get("web_search") else "disabled")
    argv += _set("project_doc_max_bytes", 0)
    argv += _set("shell_environment_policy.inherit", "core")
    argv += _set("allow_login_shell", False)
    argv += [*FLAGS["set"], "sandbox_workspace_write.writable_roots=[]"]
    for feature in FEATURES_OFF:
        argv += _set(f"features.{feature}", False)
    return argv + as_flags(closing(job.servers, job.folder))


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
    summarize=_summary,
    servers=_servers,
)
SDK_AGENT = replace(
    AGENT, title="the Codex SDK", build_command=sdk_command, parse_result=parse_sdk, check=sdk.check_posix, way="SDK"
)
