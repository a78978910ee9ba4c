"""Judging a skill: scores on a split (`evaluate`), and the decision that scores lead to (`gate`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillopt.evaluation.gate import GateAction as GateAction
    from skillopt.evaluation.gate import GateMetric as GateMetric
    from skillopt.evaluation.gate import GateResult as GateResult
    from skillopt.evaluation.gate import compute_semantic_density as compute_semantic_density
    from skillopt.evaluation.gate import evaluate_gate as evaluate_gate
    from skillopt.evaluation.gate import flips as flips
    from skillopt.evaluation.gate import select_gate_score as select_gate_score

__all__ = [
    "GateAction",
    "GateMetric",
    "GateResult",
    "compute_semantic_density",
    "evaluate_gate",
    "flips",
    "select_gate_score",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("skillopt.evaluation.gate"), name)
