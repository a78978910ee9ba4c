"""SkillOpt trains the skills of AI agents: Markdown documents that a frozen model reads.

Importing the package is cheap; each name below loads its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillopt.api import Finding as Finding
    from skillopt.api import OptimizedSkill as OptimizedSkill
    from skillopt.api import Plan as Plan
    from skillopt.api import Rollout as Rollout
    from skillopt.api import Score as Score
    from skillopt.api import doctor as doctor
    from skillopt.api import evaluate as evaluate
    from skillopt.api import optimize_skill as optimize_skill
    from skillopt.api import plan as plan
    from skillopt.api import train as train
    from skillopt.datasets.base import BatchSpec as BatchSpec
    from skillopt.evaluation.gate import GateAction as GateAction
    from skillopt.evaluation.gate import GateResult as GateResult
    from skillopt.types import Edit as Edit
    from skillopt.types import EditOp as EditOp
    from skillopt.types import FailureSummaryEntry as FailureSummaryEntry
    from skillopt.types import Patch as Patch
    from skillopt.types import RawPatch as RawPatch
    from skillopt.types import RolloutResult as RolloutResult

__version__ = "0.1.0"

_HOMES = {
    "BatchSpec": "skillopt.datasets.base",
    "Edit": "skillopt.types",
    "EditOp": "skillopt.types",
    "FailureSummaryEntry": "skillopt.types",
    "Finding": "skillopt.api",
    "GateAction": "skillopt.evaluation.gate",
    "GateResult": "skillopt.evaluation.gate",
    "OptimizedSkill": "skillopt.api",
    "Patch": "skillopt.types",
    "Plan": "skillopt.api",
    "RawPatch": "skillopt.types",
    "Rollout": "skillopt.api",
    "RolloutResult": "skillopt.types",
    "Score": "skillopt.api",
    "doctor": "skillopt.api",
    "evaluate": "skillopt.api",
    "optimize_skill": "skillopt.api",
    "plan": "skillopt.api",
    "train": "skillopt.api",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'skillopt' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
