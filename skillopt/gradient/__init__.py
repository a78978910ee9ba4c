"""What a batch of rollouts teaches: trajectories go to analysts (`reflect`), their patches become one (`aggregate`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillopt.gradient.aggregate import merge_patches as merge_patches
    from skillopt.gradient.reflect import run_minibatch_reflect as run_minibatch_reflect

_HOMES = {
    "merge_patches": "skillopt.gradient.aggregate",
    "run_minibatch_reflect": "skillopt.gradient.reflect",
}

__all__ = ["merge_patches", "run_minibatch_reflect"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
