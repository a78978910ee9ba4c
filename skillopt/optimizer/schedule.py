"""The edit budget of a step, the learning rate of skill training: a pure function of the step.

The classes keep a counter for callers that want one; the value always comes from `edit_budget_at`, so a resumed run
cannot drift from an uninterrupted one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

from skillopt.errors import ConfigError

NO_LIMIT = 999
"""The budget of the `autonomous` schedule, under which the optimizer decides the count itself."""

SCHEDULERS: tuple[str, ...] = ("constant", "linear", "cosine", "autonomous")


def edit_budget_at(step: int, total: int, name: str, maximum: int, minimum: int) -> int:
    """The number of edits that step `step` (counted from 1) of `total` may apply.

    With t = min(step, total) / total: `constant` is the maximum; `linear` is round(max + (min - max) t); `cosine`
    is round(min + 0.5 (max - min) (1 + cos(pi t))), both at least the minimum and halves rounded to even; with
    `total` of 0 or 1 both are the maximum. `autonomous` is NO_LIMIT. Raises ConfigError for another name.
    """
    if name == "autonomous":
        return NO_LIMIT
    if name not in SCHEDULERS:
        raise ConfigError(f"Unknown scheduler mode {name!r}: expected one of {', '.join(SCHEDULERS)}")
    if name == "constant" or total <= 1:
        return maximum
    t = min(max(step, 0), total) / total
    if name == "linear":
        value = maximum + (minimum - maximum) * t
    else:
        value = minimum + 0.5 * (maximum - minimum) * (1.0 + math.cos(math.pi * t))
    return max(minimum, round(value))


class LRScheduler(ABC):
    """A counter over `edit_budget_at`. `step()` moves it on by one and gives that step's budget."""

    def __init__(self, max_lr: int, min_lr: int = 1, total_steps: int = 1) -> None:
        self.max_lr = max_lr
        self.min_lr = min_lr
        self.total_steps = total_steps
        self.current_step = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the schedule, one of SCHEDULERS."""

    def step(self) -> int:
        """Move on by one step and return the budget of that step."""
        self.current_step += 1
        return self.get_lr()

    def get_lr(self) -> int:
        """The budget of the step that the counter stands at."""
        return edit_budget_at(self.current_step, self.total_steps, self.name, self.max_lr, self.min_lr)

    def state_dict(self) -> dict[str, int]:
        """All that a resume needs."""
        return {"current_step": self.current_step}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Set the counter; a state without one means 0."""
        self.current_step = int(state.get("current_step", 0))


class ConstantScheduler(LRScheduler):
    """The maximum, always."""

    name = "constant"


class LinearScheduler(LRScheduler):
    """From the maximum down to the minimum in a straight line."""

    name = "linear"


class CosineScheduler(LRScheduler):
    """From the maximum down to the minimum along half a cosine wave."""

    name = "cosine"


class AutonomousScheduler(LRScheduler):
    """No limit: the count is decided elsewhere."""

    NO_LIMIT = NO_LIMIT
    name = "autonomous"


_CLASSES: Mapping[str, type[LRScheduler]] = {
    "constant": ConstantScheduler,
    "linear": LinearScheduler,
    "cosine": CosineScheduler,
    "autonomous": AutonomousScheduler,
}


def build_scheduler(mode: str = "constant", max_lr: int = 4, min_lr: int = 1, total_steps: int = 1) -> LRScheduler:
    """The scheduler called `mode`. Raises ConfigError for an unknown one."""
    if mode not in _CLASSES:
        raise ConfigError(f"Unknown scheduler mode {mode!r}: expected one of {', '.join(SCHEDULERS)}")
    return _CLASSES[mode](max_lr, min_lr, total_steps)
