"""How a target comes to its answer: rounds with tools, rounds with a search service, or runs of a coding agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillopt.envs.base import spoken
from skillopt.envs.officeqa.search import BadQueriesError, SearchService, is_down, queries_in
from skillopt.envs.officeqa.tools import CALLS_A_REPLY, TOOLS, Toolbox, command
from skillopt.errors import ModelError
from skillopt.prompts.fence import fence
from skillopt.types import JsonObject

if TYPE_CHECKING:
    from skillopt.envs.chat import Chat
    from skillopt.model.values import CompatToolCall, ModelReply

Answered = Callable[[str], bool]
LAST_ROUND = "This was the last look-up. Give the final answer now, between <answer> and </answer>."


@dataclass
class Course:
    """What happened in one item. `reply_text`: the last reply. `out_of_rounds`: it ended before there was an answer."""

    reply_text: str = ""
    rounds: int = 0
    out_of_rounds: bool = False
    turns: list[JsonObject] = field(default_factory=list)

    def say(self, reply: ModelReply) -> None:
        """Take in a reply."""
        self.rounds += 1
        self.reply_text = reply.text
        if reply.text.strip():
            self.turns.append({**spoken(reply), "turn": self.rounds})

    def did(self, cmd: str, obs: str) -> None:
        """Take in one use of a tool, and what came of it."""
        self.turns.append({"type": "tool_call", "cmd": cmd, "obs": obs, "turn": self.rounds})


def once(ask: Callable[..., ModelReply], messages: Sequence[Mapping[str, Any]], **options: Any) -> Course:
    """One reply."""
    course = Course()
    course.say(ask(messages, **options))
    return course


def with_tools(
    chat: Chat, messages: Sequence[Mapping[str, Any]], toolbox: Toolbox, answered: Answered, most: int
) -> Course:
    """At most `most` replies, with the tools in all but the last. A reply that calls no tool ends it."""
    course, talk = Course(), list(messages)
    for left in reversed(range(most)):
        reply = chat(talk, tools=TOOLS, **({} if left else {"tool_choice": "none"}))
        course.say(reply)
        if not reply.tool_calls:
            break
        if not left:
            course.out_of_rounds = not answered(reply.text)
            break
        talk.append(reply.message().model_dump())
        for number, call in enumerate(reply.tool_calls):
            chat.cancel.raise_if_cancelled()
            talk.append(_answer_call(course, toolbox, call, number))
        if left == 1:
            talk.append({"role": "user", "content": LAST_ROUND})
    return course


def with_search(
    chat: Chat,
    messages: Sequence[Mapping[str, Any]],
    service: SearchService,
    answered: Answered,
    limits: tuple[int, int],
) -> Course:
    """At most `limits[0]` replies, each of which asks `limits[1]` queries at most, or answers.

    Raises the service's error when none of the searches of the item worked: nothing can be said of the target then.
    """
    most, per_reply = limits
    course, talk = Course(), list(messages)
    worked, down = False, None
    for left in reversed(range(most)):
        reply = chat(talk)
        course.say(reply)
        if answered(reply.text):
            break
        try:
            queries = queries_in(reply.text)
        except BadQueriesError as error:
            found = f"[error] {error}"
        else:
            if queries is None:
                break
            results, failure = _search(chat, course, service, queries[:per_reply]) if left else ([], None)
            worked, down = worked or (bool(results) and failure is None), failure or down
            found = "\n\n".join(results)
            if len(queries) > per_reply:
                found += f"\n\n[{len(queries) - per_reply} queries left out; at most {per_reply} at once]"
        if not left:
            course.out_of_rounds = True
            break
        talk += [reply.message().model_dump(), {"role": "user", "content": _results(found, last=left == 1)}]
    if down is not None and not worked:
        raise down
    return course


def with_agent(ask: Callable[[str], str], task: str, answered: Answered, most: int) -> Course:
    """At most `most` runs of a coding agent, each in a new folder, until one answers. `ask`: the agent's answer."""
    course = Course()
    told = task
    for left in reversed(range(most)):
        text = ask(told)
        course.rounds += 1
        course.reply_text = text
        course.turns.append({"role": "assistant", "content": text, "turn": course.rounds})
        if answered(text):
            return course
        course.out_of_rounds = not left
        told = (
            f"{task}\n\n## Your answer so far\n\n{fence(text, 'answer')}\n\nIt holds nothing between <answer> and "
            "</answer>. Check your work and give the final answer there."
        )
    return course


def _answer_call(course: Course, toolbox: Toolbox, call: CompatToolCall, number: int) -> JsonObject:
    name, arguments = call.function.name, call.function.arguments
    if number < CALLS_A_REPLY:
        found = toolbox.run(name, arguments)
    else:
        found = f"[error] too many calls in one reply; at most {CALLS_A_REPLY} are answered"
    course.did(command(name, arguments), found)
    return {"role": "tool", "tool_call_id": call.id, "content": found}


def _search(
    chat: Chat, course: Course, service: SearchService, queries: Sequence[str]
) -> tuple[list[str], ModelError | None]:
    """The results of each query; a failure only if no query worked because the service did not."""
    parts: list[str] = []
    failures: list[ModelError] = []
    for query in queries:
        try:
            found = service.search(query, chat.cancel)
        except ModelError as error:
            chat.cancel.raise_if_cancelled()
            if error.fatal:
                raise
            if is_down(error):
                failures.append(error)
            found = f"[error] {error}"
        course.did(f"search {json.dumps(query, ensure_ascii=False)}", found)
        parts.append(f"### {query}\n\n{found}")
    return parts, failures[-1] if len(failures) == len(parts) and failures else None


def _results(found: str, *, last: bool) -> str:
    text = f"What was found:\n\n{fence(found, 'results')}"
    return f"{text}\n\n{LAST_ROUND}" if last else text
