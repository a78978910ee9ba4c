"""The environment around two functions: what it shows of an item, and what stands for the functions."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from skillopt.datasets.memory import MemoryLoader
from skillopt.envs.functions import FunctionEnv
from skillopt.envs.identity import identity_of, source_of
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


def make(word: Any) -> Any:
    def closed(item: dict[str, Any], skill: str) -> Any:
        return word

    return closed


class Tuned:
    def __init__(self, heat: float) -> None:
        self.heat = heat

    def __call__(self, item: dict[str, Any], skill: str) -> float:
        return self.heat

    def run(self, item: dict[str, Any], skill: str) -> float:
        return self.heat


def typed(code: str) -> Any:
    """A function whose source is nowhere, as one typed at a prompt."""
    space: dict[str, Any] = {}
    exec(code, space)
    return space["f"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (functools.partial(agent, skill="x"), functools.partial(agent, skill="y")),
        (make("x"), make("y")),
        (Tuned(0.1), Tuned(0.2)),
        (Tuned(0.1).run, Tuned(0.2).run),
        (typed("def f(item, skill): return 'a'"), typed("def f(item, skill): return 'b'")),
        (typed("def f(item, skill, n=1): return n"), typed("def f(item, skill, n=2): return n")),
    ],
)
def test_values_that_a_function_carries_stand_for_it_too(one: Any, two: Any) -> None:
    assert env(one).fingerprint() != env(two).fingerprint()


def test_objects_without_a_lasting_text_do_not_change_what_stands_for_a_function() -> None:
    assert env(make(object())).fingerprint() == env(make(object())).fingerprint()
    assert env(Tuned(0.5)).fingerprint() == env(Tuned(0.5)).fingerprint()


def test_counters_and_logs_that_change_while_a_program_runs_do_not_count() -> None:
    calls, log = 0, []

    def counting(item: dict[str, Any], skill: str) -> str:
        nonlocal calls
        calls += 1
        log.append(item)
        return "a"

    agent_with_counter = Tuned(0.5)
    agent_with_counter.calls = 0  # type: ignore[attr-defined]
    before = identity_of(counting), identity_of(agent_with_counter)
    counting({}, "")
    agent_with_counter.calls += 1  # type: ignore[attr-defined]
    assert (identity_of(counting), identity_of(agent_with_counter)) == before


def test_anything_that_can_be_called_has_an_identity() -> None:
    for thing in (len, str.upper, "x".upper, Tuned, Tuned(1.0), print, functools.partial(functools.partial(len))):
        assert len(identity_of(thing)) >= 16
    recursive: Any = make(None)
    recursive.__closure__[0].cell_contents = recursive
    assert identity_of(recursive)
