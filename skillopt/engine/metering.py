"""Counts what the optimizer's answers cost and what became of them, whether they were made now or earlier.

A step's record says what its work costs, so that a resumed run writes the same record as an uninterrupted one.
"""

from __future__ import annotations

import threading
from typing import Any

from skillopt.model.session import Session
from skillopt.model.values import ModelReply
from skillopt.prompts.asking import Asked, Question
from skillopt.types import JsonObject, Usage


class MeteredSession:
    """A session whose answers are added up.

    `usage`: what they cost. `calls`, `failed`, `repaired`: the calls that questions took, the questions without a
    usable answer, and those whose answer needed a second call or a repair.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self.usage = Usage()
        self.calls = self.failed = self.repaired = 0

    def ask(self, role: str, system: str, user: str, **options: Any) -> ModelReply:
        """`Session.ask`, with the usage of the reply added up."""
        reply = self._session.ask(role, system, user, **options)
        with self._lock:
            self.usage += reply.usage
        return reply

    def forget(self, question: Question) -> None:
        """Drop the kept reply to a question, so that it is asked again after the cause is mended."""
        self._session.forget(
            "optimizer",
            question.system,
            question.user,
            max_completion_tokens=question.max_completion_tokens,
            effort=question.effort,
        )

    def count(self, answer: Asked[Any]) -> None:
        """Add up what became of one question."""
        with self._lock:
            self.calls += answer.calls
            self.failed += answer.value is None
            self.repaired += answer.repaired

    def record(self) -> JsonObject:
        """The fields of a step record that say what became of its questions."""
        return {
            "optimizer_calls": self.calls,
            "optimizer_failed": self.failed,
            "optimizer_repaired": self.repaired,
        }
