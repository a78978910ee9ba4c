"""A real session whose optimizer says what a script says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.model.values import ModelCall, ModelReply
from skillopt.testing import ScriptedModel


class ScriptedSession(Session):
    """`asked` holds every call that reached the model, in order of arrival."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__({"optimizer": model.role("optimizer")}, limits=Limits(retries=0))
        self.asked: list[ModelCall] = model.calls


def _as_reply(answer: Any) -> Any:
    if isinstance(answer, (str, ModelReply, Exception)):
        return answer
    assert isinstance(answer, Mapping)
    return json.dumps(answer)


@pytest.fixture
def make_session() -> Callable[..., ScriptedSession]:
    """`make_session(answers...)`: texts, replies, exceptions, or values to be written as JSON, in the order of the
    calls, the last one again and again; or one function from a call to such an answer."""

    def make(*answers: Any) -> ScriptedSession:
        if len(answers) == 1 and callable(answers[0]):
            return ScriptedSession(ScriptedModel(lambda call: _as_reply(answers[0](call))))
        left = list(answers)
        return ScriptedSession(ScriptedModel(lambda _call: _as_reply(left.pop(0) if len(left) > 1 else left[0])))

    return make


@pytest.fixture
def events() -> tuple[list[tuple[str, dict[str, Any]]], Callable[..., None]]:
    """A list, and an `emit` that fills it."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def emit(kind: str, **data: Any) -> None:
        seen.append((kind, data))

    return seen, emit
