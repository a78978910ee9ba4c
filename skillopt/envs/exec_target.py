"""A coding agent as target: an environment hands it a task in a folder of its own and gets its final answer.

    if is_exec_target(chat):
        done = run_agent(chat, task=text, skill=skill, files={"input.xlsx": path}, outputs=("solution.py",))
        done.text, done.files.get("solution.py")

An environment that has such a branch in its own `run_item` says so with `runs_agents`. One whose `run_item` is that of
its base needs nothing: its prompt becomes the agent's task, and the skill the agent's SKILL.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.config.providers import PROVIDERS
from skillopt.types import Usage

if TYPE_CHECKING:
    from skillopt.envs.chat import Chat
    from skillopt.model.harness.workspace import Workspace
    from skillopt.model.values import ModelReply

Ask = Callable[[Sequence[Mapping[str, Any]]], "ModelReply"]


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What an agent answered.

    `text`: its final answer, never empty. `trace`: what it did, without secrets, for reading only. `usage`: of every
    attempt; not known for agents that report none. `summary`: the trace in short, where the agent tells enough.
    `files`: text of those `outputs` that it left.
    """

    text: str
    trace: str
    usage: Usage
    summary: str
    files: Mapping[str, str]


def is_exec_target(chat: Chat) -> bool:
    """Whether the target is a coding agent, which answers no chat calls."""
    role = chat.roles.get("target")
    row = PROVIDERS.get(role.backend) if role else None
    return row is not None and row.is_agent("target")


def run_agent(  # noqa: PLR0913 - what one task consists of
    chat: Chat,
    *,
    task: str,
    skill: str,
    files: Mapping[str, str | Path] | None = None,
    images: Sequence[Path] = (),
    data_dirs: Sequence[Path] = (),
    denied: Sequence[Path] = (),
    outputs: Sequence[str] = (),
    allow_file_edits: bool = False,
    preamble: str = "",
) -> AgentAnswer:
    """Let the target agent do one task, with the time that the item has left.

    It works in a new folder for each attempt, which is gone afterwards: `task` is its task.md, `skill` its SKILL.md
    (after `preamble`). `files`: by relative path, a text or a file to copy. `images` are copied to attachments/.
    `data_dirs` are linked as docs/root_1, docs/root_2, …, for reading. `denied`: folders of which it may be given
    nothing. `outputs`: relative paths of text files to read back, which need `allow_file_edits`.

    Raises ModelError (DeadlineError when the time is over, EmptyReplyError when the answer stays empty), DataError for
    files that are not there or not to be given.
    """
    from skillopt.model.harness.workspace import DataPolicy, Workspace

    workspace = Workspace(
        skill=skill,
        preamble=preamble,
        files=dict(files or {}),
        images=tuple(images),
        data_dirs=tuple(data_dirs),
        outputs=tuple(outputs),
        allow_file_edits=allow_file_edits,
        policy=DataPolicy(tuple(denied)),
    )
    reply = _run(chat, task, workspace)
    work = reply.work
    if work is None:
        return AgentAnswer(reply.text, "", reply.usage, "", {})
    return AgentAnswer(reply.text, work.trace, reply.usage, work.summary, work.files)


def asker(chat: Chat, skill: str) -> tuple[Ask, str]:
    """How to put a conversation to the target, and the skill as far as it belongs into the prompt.

    For a chat model that is `chat` with the skill. An agent gets the whole conversation as its task and the skill as a
    file, so that nothing of it belongs into the prompt.
    """
    if not is_exec_target(chat):
        return chat, skill
    return lambda messages: _converse(chat, messages, skill), ""


def _converse(chat: Chat, messages: Sequence[Mapping[str, Any]], skill: str) -> ModelReply:
    from skillopt.model.harness.workspace import Workspace
    from skillopt.model.transcript import render
    from skillopt.model.values import ModelCall

    conversation = render(ModelCall(messages=tuple(messages)))
    return _run(chat, conversation.joined, Workspace(skill=skill, images=conversation.images))


def _run(chat: Chat, task: str, workspace: Workspace) -> ModelReply:
    return chat([{"role": "user", "content": task}], workspace=workspace)
