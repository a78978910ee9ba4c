"""Real things to test against, for this project and for its users: a scripted model and a server on loopback.

from skillopt.testing import LoopbackServer, ScriptedModel, role

with LoopbackServer(lambda request: "Paris") as server:
    session = Session({"target": server.role("target")})
"""

from __future__ import annotations

from skillopt.model.scripted import ScriptedModel
from skillopt.testing.agents import (
    codex_turn,
    copilot_turn,
    cursor_turn,
    fake_claude_code,
    fake_codex,
    fake_copilot,
    fake_cursor,
)
from skillopt.testing.bodies import chat_completion, responses_body
from skillopt.testing.cli import CliCall, CliTurn, FakeCli, claude_result, cli_role, fake_claude
from skillopt.testing.faults import Fault, every, garbage, hang, reset, stall, status, trickle
from skillopt.testing.roles import role
from skillopt.testing.server import LoopbackServer, RecordedRequest

__all__ = [
    "CliCall",
    "CliTurn",
    "FakeCli",
    "Fault",
    "LoopbackServer",
    "RecordedRequest",
    "ScriptedModel",
    "chat_completion",
    "claude_result",
    "cli_role",
    "codex_turn",
    "copilot_turn",
    "cursor_turn",
    "every",
    "fake_claude",
    "fake_claude_code",
    "fake_codex",
    "fake_copilot",
    "fake_cursor",
    "garbage",
    "hang",
    "reset",
    "responses_body",
    "role",
    "stall",
    "status",
    "trickle",
]
