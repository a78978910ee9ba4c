"""What an adapter of a coding agent is, what it is given for one attempt, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from skillopt.errors import ModelError
from skillopt.model.classify import Where
from skillopt.model.harness.workspace import Workspace
from skillopt.model.values import ModelReply
from skillopt.types import RoleConfig, Usage
from skillopt.utils.process import ProcessResult
from skillopt.utils.tool_servers import Source

Status = Literal["answered", "empty", "failed", "timed_out"]
UNKNOWN_USAGE = Usage(calls=1, known=False)


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How one attempt ended.

    `answer` is empty unless `status` is `answered`; a trace is never an answer. `error` is set for `failed` and
    `timed_out`.
    """

    status: Status
    answer: str
    trace: str
    usage: Usage
    error: ModelError | None = None
    finish_reason: str = "stop"
    model: str = ""
    summary: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt, ready to start.

    `prompt`: all that the agent is told; `request`: the same without the rules about its folder. `folder`: where the
    agent works. `images`: files to attach. `data_dirs`: real paths of further folders that it may read. `answer_file`:
    outside of `folder` and new for this attempt, for an agent that writes its answer to a file. `servers`: names of the
    person's tool servers, to be switched off.
    """

    role: RoleConfig
    model: str
    effort: str
    prompt: str
    request: str
    workspace: Workspace
    folder: Path
    images: tuple[Path, ...]
    data_dirs: tuple[Path, ...]
    answer_file: Path
    env: Mapping[str, str]
    where: Where
    servers: tuple[str, ...] = ()

    def setting(self, name: str) -> str:
        """A setting of the backend as text; blank when there is none."""
        value = self.role.settings.get(name)
        return "" if value is None else str(value).strip()


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and what is written to its standard input."""

    argv: tuple[str, ...]
    stdin: str = ""


def _nothing_against(role: RoleConfig, workspace: Workspace) -> None:
    """Refuse nothing."""


def _unknown(result: ProcessResult) -> Usage:  # noqa: ARG001 - one of several rules
    return UNKNOWN_USAGE


@dataclass(frozen=True, slots=True)
class Agent:
    """The adapter of one command line, or of the SDK that runs one.

    `title`: as a message calls it. `slug`: beginning of the names of its files. `sign_in`: how to sign in, in words.
    `environment`: all that its process gets. `build_command`, `parse_result` (the reply, or the error that is told),
    `sanitize` (its output as a trace that may be kept). `check` refuses settings before anything starts.
    `used`: what a failed run used. `summarize`: a run's trace in short. `servers`: where its tool servers come from,
    for an agent that has to be told which ones it shall not start. `way`: CLI or SDK, as the trace calls it.
    """

    title: str
    slug: str
    sign_in: str
    environment: Callable[[RoleConfig], dict[str, str]]
    build_command: Callable[[Job], Command]
    parse_result: Callable[[Job, ProcessResult], ModelReply]
    sanitize: Callable[[str], str]
    check: Callable[[RoleConfig, Workspace], None] = _nothing_against
    used: Callable[[ProcessResult], Usage] = _unknown
    summarize: Callable[[Job, AgentRun], str] | None = None
    servers: Callable[[Job], Source] | None = None
    way: Literal["CLI", "SDK"] = "CLI"
