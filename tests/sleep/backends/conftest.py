"""Backends in a person's empty home, with no provider's settings in the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.backends import CliBackend, Outgoing, Reply
from skillopt_sleep.types import ReplayResult, TaskRecord

Answer = str | Reply | Exception
_OURS = ("AZURE_OPENAI_", "SKILLOPT_SLEEP_", "ANTHROPIC_", "CODEX_", "OPENAI_", "CLAUDE_")


class Scripted(CliBackend):
    """A provider that answers from a list, the last entry again and again, or from a function of the call."""

    name = "scripted"
    has_tools = True

    def __init__(self, *answers: Answer | Callable[[Outgoing], Answer], **options: Any) -> None:
        super().__init__("m1", **options)
        self.answers = list(answers) or ["ok"]
        self.sent: list[Outgoing] = []
        self.waits: list[float] = []
        self.egress._sleep = self.waits.append

    def send(self, outgoing: Outgoing) -> Reply:
        self.sent.append(outgoing)
        answer = self.answers[min(len(self.sent), len(self.answers)) - 1]
        answer = answer(outgoing) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer)


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in list(os.environ):
        if name.startswith(_OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SKILLOPT_SLEEP_HOME", str(tmp_path / "home" / "sleep"))
    (tmp_path / "home").mkdir()
    yield tmp_path / "home"


@pytest.fixture
def task() -> Callable[..., TaskRecord]:
    def make(intent: str = "Summarise the paper", **fields: Any) -> TaskRecord:
        return TaskRecord(**{"id": "t1", "project": "/p", "reference_kind": "rubric", "intent": intent, **fields})

    return make


@pytest.fixture
def failed() -> Callable[..., tuple[TaskRecord, ReplayResult]]:
    def make(task: TaskRecord, response: str = "no", **fields: Any) -> tuple[TaskRecord, ReplayResult]:
        return task, ReplayResult(**{"id": task.id, "response": response, "fail_reason": "too long", **fields})

    return make
