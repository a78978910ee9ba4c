"""GitHub Copilot's agent: `copilot -p` in its workspace, without custom instructions and tool servers (MCP).

Without leave to edit files it may read. With it, it may write files too; every tool, a shell among them, only when its
setting `allow_all_tools` says so as well. The prompt is the value of `-p`, or the standard input when it is too long
for that. It reports no tokens. The hooks in the person's home run with it: no flag keeps it from that.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from types import MappingProxyType

from skillopt.model.backends import copilot_chat as chat
from skillopt.model.copilot_servers import DISABLE, closing, copilot_source
from skillopt.model.harness.agent import Agent, Command, Job
from skillopt.model.harness.runner import complete_with
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig
from skillopt.utils.process import ProcessResult, child_environment
from skillopt.utils.tool_servers import Source

ENVIRONMENT = chat.ENVIRONMENT
FLAGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prompt": ("-p",),
        "output": ("--output-format", "json", "--stream", "off", "--no-color", "--log-level", "none"),
        "folder": ("-C",),
        "isolation": ("--disable-builtin-mcps", "--no-custom-instructions"),
        "write": ("--allow-tool=write",),
        "everything": ("--allow-all-tools",),
        "server": (DISABLE,),
        "model": ("--model",),
        "more": ("--add-dir",),
    }
)
"""Every flag that is given to Copilot."""


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of `copilot` in a workspace. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(AGENT, call, role, ctx)


def build_command(job: Job) -> Command:
    """The command line of one attempt, with the prompt in it if it fits there."""
    program = _program(job)
    fits = chat.fits_command_line(job.prompt, shutil.which(program, path=job.env.get("PATH")) or program)
    argv = [program, *((*FLAGS["prompt"], job.prompt) if fits else ()), *FLAGS["output"]]
    argv += [*FLAGS["folder"], str(job.folder), *FLAGS["isolation"]]
    argv += closing(job.servers, job.folder)
    if job.workspace.allow_file_edits:
        argv += FLAGS["everything" if job.role.settings.get("allow_all_tools") else "write"]
    argv += [*FLAGS["model"], job.model] if job.model else []
    for path in job.data_dirs:
        argv += [*FLAGS["more"], str(path)]
    return Command(tuple(argv), "" if fits else job.prompt)


def parse_result(job: Job, result: ProcessResult) -> ModelReply:
    """What the assistant said, or the error that the run tells."""
    return chat.read_reply(result, job.prompt, job.where)


def _program(job: Job) -> str:
    return job.setting("path") or "copilot"


def _servers(job: Job) -> Source:
    return copilot_source(_program(job), job.env)


def _environment(role: RoleConfig) -> dict[str, str]:
    home = str(role.settings.get("home") or "")
    return child_environment(*ENVIRONMENT, **({"COPILOT_HOME": home} if home else {}))


def _sanitize(output: str) -> str:
    return output


AGENT = Agent(
    title="the Copilot command line",
    slug="copilot",
    sign_in="Run `copilot login`, or set COPILOT_GITHUB_TOKEN.",
    environment=_environment,
    build_command=build_command,
    parse_result=parse_result,
    sanitize=_sanitize,
    servers=_servers,
)
