"""The step-by-step mode: the target looks, writes and runs with tools until it says that it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt.envs.base import spoken
from skillopt.envs.spreadsheetbench.conversation import Talk, Work
from skillopt.envs.spreadsheetbench.execution import script_in
from skillopt.envs.spreadsheetbench.tools import TOOLS, Tools
from skillopt.types import JsonObject


def react(talk: Talk, messages: list[JsonObject]) -> Work:
    """Replies with tool calls until one has none, or turns or time are over. What lies in the folder then counts."""
    case = talk.shop.task.cases[0]
    folder = talk.shop.fresh(case)
    tools = Tools(talk.shop, folder)
    said: list[Mapping[str, Any]] = list(messages)
    work = Work(phase="agent")
    while work.replies < talk.max_turns:
        if work.replies and talk.shop.time_left() == 0.0:
            work.phase = "timeout"
            break
        reply = talk.chat(said, tools=TOOLS)
        work.replies += 1
        if reply.text or not reply.tool_calls:
            work.turns.append(spoken(reply))
        if not reply.tool_calls:
            break
        said.append(reply.message().model_dump())
        for call in reply.tool_calls:
            shown, seen = tools.use(call.function.name, call.function.arguments)
            said.append({"role": "tool", "tool_call_id": call.id, "content": seen})
            work.turns.append({"type": "tool_call", "cmd": shown, "obs": seen, "turn": work.replies})
    work.code = script_in(folder)
    work.first = talk.shop.take_output(folder, case)
    return work
