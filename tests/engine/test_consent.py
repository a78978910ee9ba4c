"""Before which runs somebody is asked (C250)."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from worlds import World

from skillopt import api
from skillopt.config.resolve import resolve
from skillopt.engine.consent import Excess, excess_of, was_answered
from skillopt.engine.plan import make_plan
from skillopt.errors import ConfigError

MODELS = ("target-model", "optimizer-model")


def excess(world: World, **sections: dict[str, Any]) -> Excess | None:
    return excess_of(resolve(world.config(**sections), environ={}))


def prices(*models: str, each: float = 1.0) -> dict[str, Any]:
    return {"prices": {name: {"input": each, "output": each} for name in models}}


def test_few_calls_at_an_unknown_price_need_no_question(world: World) -> None:
    assert excess(world) is None


def test_many_calls_at_an_unknown_price_do(world: World) -> None:
    found = excess(world, train={"num_epochs": 30})
    assert found is not None
    assert (found.name, found.limit, found.chosen) == ("ask_above_calls", 1000, False)
    assert set(found.paid) == {"target", "optimizer"}


def test_where_every_price_is_known_the_price_decides(world: World) -> None:
    cheap, dear = prices(*MODELS, each=0.01), prices(*MODELS, each=1000.0)
    assert excess(world, train={"num_epochs": 30}, model=cheap) is None
    found = excess(world, model=dear)
    assert found is not None
    assert (found.name, found.limit, found.chosen) == ("ask_above_usd", 10.0, False)


def test_the_known_part_of_a_price_counts(world: World) -> None:
    found = excess(world, model=prices("target-model", each=1000.0))
    assert found is not None
    assert found.name == "ask_above_usd"
    assert found.plan.cost_usd is None


def test_a_limit_that_somebody_set_counts_whatever_is_known(world: World) -> None:
    found = excess(world, budget={"ask_above_calls": 50}, model=prices(*MODELS, each=0.01))
    assert found is not None
    assert found.chosen
    assert found.source.endswith(f"config.yaml:{_line(world, 'ask_above_calls')}")


def test_of_two_limits_the_one_that_somebody_set_is_told(world: World) -> None:
    found = excess(world, budget={"ask_above_calls": 50}, model=prices(*MODELS, each=1000.0))
    assert found is not None
    assert (found.name, found.chosen) == ("ask_above_calls", True)


def test_zero_never_asks(world: World) -> None:
    never = {"ask_above_calls": 0, "ask_above_usd": 0}
    assert excess(world, budget=never, train={"num_epochs": 30}, model=prices("target-model", each=1000.0)) is None


def test_a_budget_settles_the_defaults_and_bounds_what_is_compared_with_a_limit(world: World) -> None:
    long = {"num_epochs": 30}
    assert excess(world, train=long, budget={"max_calls": 5000}) is None
    assert excess(world, train=long, budget={"max_calls": 150, "ask_above_calls": 150}) is None
    assert excess(world, train=long, budget={"max_calls": 151, "ask_above_calls": 150}) is not None


def test_the_limit_itself_may_be_reached(world: World) -> None:
    plan = make_plan(resolve(world.config(), environ={}))
    most = sum(role.calls.high for role in plan.roles.values() if role.calls is not None)
    assert excess(world, budget={"ask_above_calls": most}) is None
    assert excess(world, budget={"ask_above_calls": most - 1}) is not None


def test_models_on_this_machine_cost_nothing(world: World) -> None:
    here = {
        "target_backend": "mock_chat",
        "optimizer_backend": "bootstrap_demos",
        "optimizer": "bootstrap",
        "backend": "local_chat",
    }
    assert excess(world, model=here, budget={"ask_above_calls": 1}, train={"num_epochs": 30}) is None


def test_models_whose_price_is_zero_cost_nothing(world: World) -> None:
    assert excess(world, model=prices(*MODELS, each=0.0), budget={"ask_above_calls": 1}) is None


def test_a_run_that_was_begun_was_answered_but_not_for_more_epochs(world: World) -> None:
    settings = resolve(world.config(), environ={})
    assert not was_answered(settings)
    api.train(settings)
    assert was_answered(settings)
    assert not was_answered(resolve(world.config(train={"num_epochs": 3}), environ={}))
    (world.out_root / "config.json").unlink()
    assert not was_answered(settings)
    shutil.rmtree(world.out_root)
    assert not was_answered(settings)


def test_the_limits_are_no_part_of_what_a_resume_compares(world: World) -> None:
    parts = [
        resolve(world.config(budget=budget), environ={}).fingerprint_parts()
        for budget in ({}, {"ask_above_usd": 1.0, "ask_above_calls": 3})
    ]
    assert parts[0] == parts[1]


@pytest.mark.parametrize("value", [-1, "many", True])
def test_bad_limits_are_refused(world: World, value: object) -> None:
    with pytest.raises(ConfigError, match=r"budget\.ask_above_calls must be a whole number of at least 0"):
        resolve(world.config(budget={"ask_above_calls": value}), environ={})


def _line(world: World, word: str) -> int:
    lines = (world.root / "config.yaml").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if word in line)
