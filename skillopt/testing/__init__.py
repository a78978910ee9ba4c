"""Real things to test against, for this project and for its users: a scripted model and a server on loopback.

from skillopt.testing import LoopbackServer, ScriptedModel, role

with LoopbackServer(lambda request: "Paris") as server:
    session = Session({"target": server.role("target")})
"""

from __future__ import annotations

from skillopt.model.scripted import ScriptedModel
from skillopt.testing.faults import Fault, every, garbage, hang, reset, status, trickle
from skillopt.testing.server import LoopbackServer, RecordedRequest, chat_completion, role

__all__ = [
    "Fault",
    "LoopbackServer",
    "RecordedRequest",
    "ScriptedModel",
    "chat_completion",
    "every",
    "garbage",
    "hang",
    "reset",
    "role",
    "status",
    "trickle",
]
