"""The gate's decision on scores."""

from __future__ import annotations

import ast
import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.evaluation import gate
from skillopt.evaluation.gate import GateResult, compute_semantic_density, evaluate_gate, flips, select_gate_score

SCORES = st.floats(0, 1)


def decide(candidate: float, current: float = 0.5, best: float = 0.5, **options: Any) -> GateResult[str]:
    return evaluate_gate("candidate", candidate, "current", current, "best", best, 3, 7, **options)


def test_imports_the_standard_library_only() -> None:
    tree = ast.parse(Path(gate.__file__).read_text(encoding="utf-8"))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names) | {"__future__"}


def test_above_both_is_a_new_best() -> None:
    assert decide(0.6) == GateResult("accept_new_best", "candidate", 0.6, "candidate", 0.6, 7)


def test_above_current_only_leaves_best_alone() -> None:
    assert decide(0.6, current=0.4, best=0.8) == GateResult("accept", "candidate", 0.6, "best", 0.8, 3)


def test_equal_to_best_and_above_current_is_accept() -> None:
    assert decide(0.8, current=0.4, best=0.8) == GateResult("accept", "candidate", 0.8, "best", 0.8, 3)


@pytest.mark.parametrize("candidate", [0.5, 0.4])
def test_not_above_current_is_rejected(candidate: float) -> None:
    assert decide(candidate) == GateResult("reject", "current", 0.5, "best", 0.5, 3)


def test_float_tie_is_a_tie() -> None:  # C061
    assert decide(0.1 + 0.2, current=0.3, best=0.3).action == "reject"


def test_order_of_summation_does_not_decide() -> None:  # C062
    scores = [0.1, 0.7, 0.2, 1.0, 0.3, 0.9, 0.6, 0.4, 0.8, 0.5]
    forward, backward = sum(scores) / 10, sum(reversed(scores)) / 10
    assert decide(forward, current=backward, best=backward).action == "reject"
    assert decide(backward, current=forward, best=forward).action == "reject"


@pytest.mark.parametrize("n", [4, 7, 20, 100])
@pytest.mark.parametrize("gain", [0.1, 1.0])
def test_one_better_item_is_better_at_every_size(n: int, gain: float) -> None:  # C076
    assert decide(0.5 + gain / n).action == "accept_new_best"


def test_mean_up_with_one_item_lost_is_accepted_and_the_flips_are_named() -> None:  # C077
    current = {"a": 0.0, "b": 0.0, "c": 1.0}
    candidate = {"a": 1.0, "b": 1.0, "c": 0.0}
    assert decide(2 / 3, current=1 / 3, best=1 / 3).action == "accept_new_best"
    assert flips(current, candidate) == (("a", "b"), ("c",))


def test_flips_leave_out_items_that_one_side_lacks() -> None:
    assert flips({"a": 0.0, "b": 1.0}, {"a": 0.2, "c": 1.0}) == ((), ())


def test_flips_name_the_item_without_a_score() -> None:  # C064
    with pytest.raises(ValueError, match="candidate score of item 'b'"):
        flips({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": math.nan})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_named(bad: float) -> None:  # C064, C065
    with pytest.raises(ValueError, match=r"baseline\) not finite"):
        decide(1.0, current=bad)
    with pytest.raises(ValueError, match="hard score not finite"):
        decide(bad)
    with pytest.raises(ValueError, match="best score not finite"):
        decide(1.0, best=bad)


def test_gate_off_accepts_a_worse_candidate_and_keeps_the_best() -> None:  # C080
    assert decide(0.1, use_gate=False) == GateResult("force_accept", "candidate", 0.1, "best", 0.5, 3)
    assert decide(0.9, use_gate=False) == GateResult("force_accept", "candidate", 0.9, "candidate", 0.9, 7)


def test_result_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        decide(0.6).action = "reject"  # type: ignore[misc]


@given(st.lists(SCORES, min_size=1, max_size=20))
def test_current_and_best_stay_equal_when_they_start_equal(candidates: list[float]) -> None:
    state = GateResult("reject", "s0", 0.5, "s0", 0.5, 0)
    for step, score in enumerate(candidates, 1):
        state = evaluate_gate(
            f"s{step}", score, state.current_skill, state.current_score, state.best_skill, state.best_score,
            state.best_step, step,
        )  # fmt: skip
        assert state.action in ("accept_new_best", "reject")
        assert state.accepted == (state.action != "reject")
        assert (state.current_skill, state.current_score) == (state.best_skill, state.best_score)


def test_metrics() -> None:
    assert select_gate_score(1.0, 0.2) == 1.0
    assert select_gate_score(1.0, 0.2, "soft") == 0.2
    assert select_gate_score(1.0, 0.2, "mixed") == pytest.approx(0.6)
    assert select_gate_score(1.0, 0.2, "mixed", 1.5) == pytest.approx(0.2)
    assert select_gate_score(1.0, 0.2, "mixed", -1) == 1.0
    assert isinstance(select_gate_score(1, 0), float)


def test_a_mean_that_the_metric_does_not_use_is_not_looked_at() -> None:
    assert select_gate_score(1.0, math.nan, "hard") == 1.0


@pytest.mark.parametrize("call", [lambda: select_gate_score(1, 1, "f1"), lambda: decide(1.0, metric="f1")])
def test_unknown_metric(call: Any) -> None:
    with pytest.raises(ValueError, match="unknown gate metric 'f1'"):
        call()


def test_weight_that_is_not_a_number() -> None:  # C079
    with pytest.raises(ValueError, match="mixed weight not finite"):
        select_gate_score(1, 1, "mixed", math.nan)


def test_density() -> None:
    text = "Always check one two three. NEVER four five six seven"
    assert compute_semantic_density(text) == pytest.approx(0.2)
    assert compute_semantic_density(" \n") == 0.0
    assert compute_semantic_density("do do not", ["DO"]) == pytest.approx(2 / 3)


def test_density_leaves_protected_regions_out() -> None:
    region = "<!-- SLOW_UPDATE_START -->\nalways never must\n<!-- SLOW_UPDATE_END -->"
    assert compute_semantic_density(f"always two\n\n{region}\n") == 0.5
    assert compute_semantic_density("one <!-- APPENDIX_START --> always") == 0.5


def test_density_breaks_a_tie() -> None:
    options: dict[str, Any] = {"use_semantic_density": True, "semantic_density_weight": 0.1}
    dense = select_gate_score(0.5, 0, skill_text="always never", **options)
    assert dense == pytest.approx(0.6)
    assert decide(dense, current=select_gate_score(0.5, 0, skill_text="one two", **options)).action == "accept_new_best"
