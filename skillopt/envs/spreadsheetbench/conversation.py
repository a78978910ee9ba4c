"""The ways to come to a program by writing it: one reply, several with what went wrong, or a coding agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.envs.base import spoken
from skillopt.envs.exec_target import run_agent
from skillopt.envs.spreadsheetbench import run_solution
from skillopt.envs.spreadsheetbench.execution import INPUT, SCRIPT, Run, Workshop
from skillopt.envs.spreadsheetbench.grading import Verdict, wrong_cells
from skillopt.envs.spreadsheetbench.replies import extract_code
from skillopt.types import JsonObject

if TYPE_CHECKING:
    from skillopt.envs.chat import Chat

Prompt = Callable[..., str]
"""Text of a prompt file, by its name, with values put in."""


@dataclass(slots=True)
class Work:
    """What the target did on an item.

    `turns`: the trajectory. `replies`: how many the model gave. `code`: its program. `first`: how that did on the first
    case, or None if it has still to be run. `phase`: the last thing that happened. `prompts`: the skill and the task as
    a coding agent got them; None: those of the conversation.
    """

    turns: list[JsonObject] = field(default_factory=list)
    replies: int = 0
    code: str = ""
    first: Run | None = None
    phase: str = "llm"
    prompts: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation about one item: with whom, the words, and where programs run.

    `look`: grades a run of the first case, for training rollouts that tell the target which cells are wrong; None for
    all others.
    """

    chat: Chat
    prompt: Prompt
    shop: Workshop
    max_turns: int
    look: Callable[[Run], Verdict] | None = None


def single(talk: Talk, messages: list[JsonObject]) -> Work:
    """One reply, one program."""
    reply = talk.chat(messages)
    return Work([spoken(reply)], 1, extract_code(reply.text), phase="extract")


def multi(talk: Talk, messages: list[JsonObject]) -> Work:
    """Replies until a program runs on the first case; what went wrong is told. Nothing of an earlier program counts."""
    said: list[Mapping[str, Any]] = list(messages)
    work = Work()
    while True:
        reply = talk.chat(said)
        work.replies += 1
        work.turns.append(spoken(reply))
        work.code, work.first, work.phase = extract_code(reply.text), None, "extract"
        again = _try(talk, work)
        if not again or work.replies >= talk.max_turns:
            return work
        if talk.shop.time_left() == 0.0:
            work.phase = "timeout"
            return work
        answer: JsonObject = {"role": "user", "content": again}
        work.turns.append(answer)
        said += [reply.message().model_dump(), answer]


def agent(talk: Talk, skill: str, task: str, libraries: str) -> Work:
    """A coding agent writes `solution.py` in a folder of its own, or replies with the program."""
    preamble = talk.prompt("agent_preamble", libraries=libraries, python=sys.executable)
    asked = talk.prompt("agent_task", task=task)
    answer = run_agent(
        talk.chat,
        task=asked,
        skill=skill,
        files={
            INPUT: talk.shop.task.cases[0].source,
            "run_solution.py": Path(run_solution.__file__).read_text(encoding="utf-8"),
        },
        outputs=(SCRIPT,),
        allow_file_edits=True,
        preamble=preamble,
    )
    code = answer.files.get(SCRIPT, "")
    code = code if code.strip() else extract_code(answer.text)
    turns: list[JsonObject] = [{"role": "assistant", "content": answer.text}]
    return Work(turns, 1, code, phase="extract", prompts=(f"{preamble}\n\n{skill}", asked))


def _try(talk: Talk, work: Work) -> str:
    """Run the program on the first case; what to tell the target about it, or an empty text when it may rest."""
    if not work.code:
        return talk.prompt("code_missing")
    work.first = talk.shop.run(work.code, talk.shop.task.cases[0])
    work.phase = "exec"
    if work.first.output is None:
        return talk.prompt("code_failed", reason=work.first.reason, detail=work.first.detail)
    verdict = talk.look(work.first) if talk.look else None
    return "" if verdict is None or verdict.passed else talk.prompt("code_wrong", report=wrong_cells(verdict))
