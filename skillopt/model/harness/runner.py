"""One attempt of a coding agent: a new folder, one process with a deadline, a typed result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skillopt.errors import AgentError, DeadlineError, ModelError, UnsupportedCallError
from skillopt.model.cli_chat import cli_where, counting, run_program, shown_words, tool_servers
from skillopt.model.harness import artifacts
from skillopt.model.harness.agent import Agent, AgentRun, Job, Status
from skillopt.model.harness.prompt import build_prompt, build_request
from skillopt.model.harness.workspace import Workspace, lay_out, read_outputs
from skillopt.model.registry import setting_hint
from skillopt.model.values import AgentWork, CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig
from skillopt.utils.process import ProcessResult
from skillopt.utils.redact import hide_in_addresses, redact
from skillopt.utils.removal import scratch_folder

TRACE_CHARS = 40_000
_LAST_WORDS = 400


def complete_with(agent: Agent, call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One attempt as a backend makes it: the reply, empty when there was no answer, or a ModelError.

    Raises DataError for files that are not there or may not be given, ConfigError for settings that exclude each other.
    """
    workspace = call.workspace
    if workspace is None:
        raise UnsupportedCallError(f"Exec backends such as {role.backend} run in a workspace and answer no chat calls.")
    agent.check(role, workspace)
    with scratch_folder("skillopt_agent_") as root:
        job = _prepare(agent, call, workspace, role, ctx, root)
        run = _finished(job, attempt(agent, job, ctx), agent)
    if workspace.trace_dir is not None:
        artifacts.keep(workspace.trace_dir, agent.slug, run, ctx.silent_before + 1, agent.way)
    if run.error is not None:
        with counting(run.usage, ctx):
            raise run.error
    return ModelReply(
        run.answer, run.finish_reason, run.usage, run.model, work=AgentWork(run.trace, run.summary, run.files)
    )


def attempt(agent: Agent, job: Job, ctx: CallContext) -> AgentRun:
    """Run the command line once, for at most the attempt's time. A time that is over is a run that says so.

    Raises ModelSetupError when it is not there, InterruptedRunError when the run is stopped.
    """
    setting = setting_hint(job.role, "path")
    if agent.servers is not None:
        names = tool_servers(agent.servers(job), env=job.env, where=job.where, ctx=ctx, setting=setting)
        job = replace(job, servers=names)
    command = agent.build_command(job)
    result = run_program(
        command.argv,
        stdin=command.stdin,
        folder=job.folder,
        env=job.env,
        where=job.where,
        ctx=ctx,
        setting=setting,
    )
    trace = _trace(agent, job, result)
    if result.timed_out:
        said = shown_words(trace[-_LAST_WORDS:], job.where)
        end = f"{job.where.short} did not finish in {ctx.timeout:g} seconds and was ended."
        late = DeadlineError(f"{end} Its last words: {said}" if said else end)
        return AgentRun("timed_out", "", trace, agent.used(result), late)
    try:
        reply = agent.parse_result(job, result)
    except ModelError as error:
        final = AgentError(str(error)) if getattr(error, "unclear", False) else error
        return AgentRun("failed", "", trace, agent.used(result), final)
    said = reply.text if reply.text.strip() else ""
    status: Status = "answered" if said else "empty"
    return AgentRun(status, said, trace, reply.usage, finish_reason=reply.finish_reason, model=reply.model)


def _prepare(
    agent: Agent, call: ModelCall, workspace: Workspace, role: RoleConfig, ctx: CallContext, root: Path
) -> Job:
    """A new folder with everything in it, or the one that somebody prepared; what the adapter needs to know."""
    if workspace.folder is None:
        folder = root / "work"
        folder.mkdir()
        images = lay_out(workspace, call.last_user, folder)
    else:
        folder = workspace.policy.check_folder(workspace.folder)
        images = tuple(workspace.policy.check(path) for path in workspace.images if isinstance(path, Path))
    env = agent.environment(role)
    model = call.model or role.model
    return Job(
        role=role,
        model=model,
        effort=(call.effort or role.effort).strip(),
        prompt=build_prompt(workspace, call.last_user, silent_before=ctx.silent_before),
        request=build_request(workspace, call.last_user, silent_before=ctx.silent_before),
        workspace=workspace,
        folder=folder,
        images=images,
        data_dirs=tuple(workspace.policy.check_folder(path) for path in workspace.data_dirs),
        answer_file=root / "last_message.txt",
        env=env,
        where=cli_where(role, model, agent.title, agent.sign_in, env),
    )


def _finished(job: Job, run: AgentRun, agent: Agent) -> AgentRun:
    """The run with the files that were asked for and its trace in short."""
    files = read_outputs(job.folder, job.workspace.outputs) if run.error is None else {}
    summary = agent.summarize(job, run) if agent.summarize else ""
    return replace(run, files=files, summary=redact(summary, job.where.secrets))


def _trace(agent: Agent, job: Job, result: ProcessResult) -> str:
    """What was printed, as it may be kept: sanitised, without secrets, at most `TRACE_CHARS` characters."""
    said = agent.sanitize(result.stdout).rstrip("\n")
    errors = result.stderr.strip()
    text = f"{said}\n[stderr]\n{errors}" if errors else said
    return _shortened(redact(hide_in_addresses(text), job.where.secrets))


def _shortened(text: str) -> str:
    if len(text) <= TRACE_CHARS:
        return text
    half = TRACE_CHARS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
