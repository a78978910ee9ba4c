"""Early stop saves rollouts and changes no decision."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from gate_worlds import GateWorld, memory_folder
from worlds import World

from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train
from skillopt.errors import BudgetExceededError


@pytest.mark.parametrize("worlds", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_early_stop_decides_as_full_evaluation(worlds: int) -> None:
    used = full = 0
    actions: Counter[str] = Counter()
    with memory_folder() as folder:
        for seed in range(worlds):
            world = GateWorld(seed)
            exact, calls, most = world.run(Path(folder) / f"{seed}-exact", early_stop="exact")
            off, _, _ = world.run(Path(folder) / f"{seed}-off", early_stop="off")
            assert exact == off, f"world {seed}"
            used, full = used + calls, full + most
            actions.update(action for action, _, _ in exact)
    assert used < 0.85 * full
    assert all(actions[name] > worlds // 4 for name in ("accept_new_best", "reject"))


@pytest.mark.parametrize(("alpha", "action"), [(0.5, "accept_new_best"), (0.05, "inconclusive")])
def test_a_paired_run_goes_on_from_a_stop_with_the_error_budget_it_had(world: World, alpha: float, action: str) -> None:
    paired = {"gate_policy": "paired", "gate_alpha": alpha}
    whole = world.root / "whole"
    train(resolve(world.config(evaluation=paired, env={"out_root": str(whole)})))
    for most in range(40, 500, 60):
        try:
            train(resolve(world.config(evaluation=paired, budget={"max_calls": most})))
            break
        except BudgetExceededError:
            continue
    kept, expected = (_kept(root) for root in (world.out_root, whole))
    assert kept == expected
    assert expected[0][0][0] == action
    assert expected[1] > 0


def _kept(root: Path) -> tuple[list[Any], float, int]:
    history = json.loads((root / "history.json").read_text(encoding="utf-8"))
    state = json.loads((root / "runtime_state.json").read_text(encoding="utf-8"))
    seen = [(r["action"], r.get("comparison"), r.get("gate_share"), r.get("selection_n")) for r in history]
    return seen, state["alpha_spent"], state["looks"]
