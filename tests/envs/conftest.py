"""A session that answers from a function, and a small environment whose behaviour a test sets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.base import TaskEnv
from skillopt.envs.runner import RunContext
from skillopt.model.values import ModelCall, ModelReply
from skillopt.scoring import Score
from skillopt.store import Store
from skillopt.types import Item, RoleConfig, Usage
from skillopt.utils.cancel import CancelToken

Answer = Callable[[str, CancelToken], Any]


class FakeSession:
    """Answers with `answer(last user text, cancel token)`: a text or a ModelReply; records every call."""

    def __init__(self, answer: Answer, model: str = "m") -> None:
        self.answer = answer
        self.roles = {"target": RoleConfig("target", "fake", model)}
        self.calls: list[str] = []
        self.seen: list[ModelCall] = []
        self._lock = threading.Lock()

    def call(self, role: str, call: ModelCall, *, cancel: CancelToken | None = None, **_: Any) -> ModelReply:
        assert role == "target" and call.stage == "rollout" and cancel is not None
        with self._lock:
            self.calls.append(call.last_user)
            self.seen.append(call)
        reply = self.answer(call.last_user, cancel)
        return reply if isinstance(reply, ModelReply) else ModelReply(reply, usage=Usage(1, 10, 2))


class Echo(TaskEnv):
    """Asks for the item's question; right when the reply is the item's answer."""

    version = 1

    def messages(self, item: Item, skill: str) -> list[dict[str, Any]]:
        return [{"role": "system", "content": skill}, {"role": "user", "content": item.data["question"]}]

    def score(self, item: Item, answer: str) -> Score:
        right = answer == item.data["answer"]
        return Score(float(right), float(right), "" if right else f"expected {item.data['answer']}")

    def fingerprint(self) -> str:
        return f"echo {self.version}"


class Bench:
    """Everything a runner test needs."""

    def __init__(self, tmp_path: Path) -> None:
        self.store = Store(tmp_path / "store.sqlite")
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.env: Any = Echo()

    def emit(self, kind: str, **data: Any) -> None:
        self.events.append((kind, data))

    def session(self, answer: Answer | None = None, model: str = "m") -> FakeSession:
        return FakeSession(answer or (lambda text, _: text.upper()), model)

    def context(self, session: FakeSession, **more: Any) -> RunContext:
        settings: dict[str, Any] = {
            "store": self.store, "skill_hash": "s", "split": "val", "emit": self.emit, "workers": 4, **more,
        }  # fmt: skip
        return RunContext(session, **settings)


def make_items(count: int) -> list[Item]:
    return [Item(f"i{n}", {"id": f"i{n}", "question": f"q{n}", "answer": f"Q{n}"}) for n in range(count)]


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    made = Bench(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def items() -> list[Item]:
    return make_items(6)
