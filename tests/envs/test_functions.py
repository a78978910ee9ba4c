"""The environment around two functions: what it shows of an item, and what stands for the functions."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from skillopt.datasets.memory import MemoryLoader
from skillopt.envs.functions import FunctionEnv, source_of
from skillopt.types import Item


def agent(item: dict[str, Any], skill: str) -> str:
    return "a"


def other(item: dict[str, Any], skill: str) -> str:
    return "b"


def score(item: dict[str, Any], answer: Any) -> float:
    return 1.0


class Agent:
    def __call__(self, item: dict[str, Any], skill: str) -> str:
        return "object"


def env(run_item: Any = agent, **options: Any) -> FunctionEnv:
    rows = {"train": [{"id": "a"}], "val": [{"id": "b"}]}
    return FunctionEnv(MemoryLoader(rows), run_item, score, **options)


def test_the_source_stands_for_the_functions_unless_a_version_does() -> None:
    assert env().fingerprint() == env().fingerprint() != env(other).fingerprint()
    assert env(version="1").fingerprint() == env(other, version="1").fingerprint()
    assert env(version="1").fingerprint() != env(version="2").fingerprint()


def test_the_source_of_anything_that_can_be_called() -> None:
    assert "def agent" in source_of(functools.partial(agent, skill=""))
    assert "class Agent" in source_of(Agent())
    assert source_of(len) == ""


@pytest.mark.parametrize(
    ("data", "question", "references"),
    [
        ({"question": "2 + 2?", "answer": "4"}, "2 + 2?", ["4"]),
        ({"input": "2 + 2?", "label": 4, "expected": ["4", "four"]}, "2 + 2?", ["4", "4", "four"]),
        ({"rows": [1, 2], "answer": "3"}, '{"rows": [1, 2]}', ["3"]),
        ({"topic": "Öl"}, '{"topic": "Öl"}', []),
    ],
)
def test_the_optimizer_is_shown_the_task_without_its_answer(
    data: dict[str, Any], question: str, references: list[str]
) -> None:
    item = Item("i", data)
    assert env().question(item) == question
    assert list(env().references(item)) == references
    assert env().messages(item, "skill") == [{"role": "user", "content": question}]
