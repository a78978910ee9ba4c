"""The pool of loaded models: how many there are, who waits, and what happens when loading fails."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from skillopt.errors import DeadlineError
from skillopt.model.backends.local_server import Engine, EnginePool


def blank_engine() -> Engine:
    """An engine without a model; a pool only lends it."""
    engine = object.__new__(Engine)
    engine.path = Path("none.gguf")
    return engine


def never() -> None:
    """A caller with all the time there is."""


def test_an_engine_is_loaded_only_when_no_other_is_free():
    made = []

    def make() -> Engine:
        made.append(blank_engine())
        return made[-1]

    pool = EnginePool(make, 2)
    with pool.borrow(never) as first:
        pass
    with pool.borrow(never) as again, pool.borrow(never) as second:
        assert again is first and second is not first
    assert len(made) == 2


def test_who_finds_none_free_waits_and_may_give_up():
    pool = EnginePool(blank_engine, 1)

    def give_up() -> None:
        raise DeadlineError("over")

    with pool.borrow(never), pytest.raises(DeadlineError), pool.borrow(give_up):
        pass
    with pool.borrow(never):
        pass


def test_a_returned_engine_wakes_the_one_who_waits():
    pool = EnginePool(blank_engine, 1)
    waiting, got = threading.Event(), []

    def work() -> None:
        with pool.borrow(waiting.set) as engine:
            got.append(engine)

    with pool.borrow(never) as engine:
        thread = threading.Thread(target=work)
        thread.start()
        assert waiting.wait(60)
    thread.join(60)
    assert got == [engine]


def test_a_failed_load_is_raised_and_takes_no_place():
    answers = [RuntimeError("no file"), None]

    def make() -> Engine:
        problem = answers.pop(0)
        if problem is not None:
            raise problem
        return blank_engine()

    pool = EnginePool(make, 1)
    with pytest.raises(RuntimeError, match="no file"), pool.borrow(never):
        pass
    with pool.borrow(never):
        pass
