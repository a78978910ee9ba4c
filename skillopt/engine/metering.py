"""Counts what the optimizer's answers cost, whether they were paid now or in an earlier process.

A step's record says what its work costs, so that a resumed run writes the same record as an uninterrupted one.
"""

from __future__ import annotations

import threading
from typing import Any

from skillopt.model.session import Session
from skillopt.model.values import ModelReply
from skillopt.types import Usage


class MeteredSession:
    """A session whose answers are added up in `usage`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self.usage = Usage()

    def ask(self, role: str, system: str, user: str, **options: Any) -> ModelReply:
        """`Session.ask`, with the usage of the reply added up."""
        reply = self._session.ask(role, system, user, **options)
        with self._lock:
            self.usage += reply.usage
        return reply
