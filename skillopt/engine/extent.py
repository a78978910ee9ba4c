"""How long a run is: items, steps, epochs, and looks at the selection split."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import SplitDataLoader
from skillopt.envs.base import EnvAdapter
from skillopt.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Extent:
    """`train_size` items give `steps_per_epoch` steps; `batches_per_epoch` counts accumulated batches."""

    train_size: int
    epochs: int
    steps_per_epoch: int
    batches_per_epoch: int
    looks: int

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.epochs * self.steps_per_epoch

    @classmethod
    def of(cls, config: RunConfig, train_size: int) -> Extent:
        """`steps_per_epoch = ceil(train_size / (batch_size * accumulation))`; for `looks` see `_looks`."""
        train = config.train
        steps = math.ceil(train_size / (train.batch_size * train.accumulation))
        looks = _looks(config, train.num_epochs * steps)
        return cls(train_size, train.num_epochs, steps, steps * train.accumulation, looks)


def _looks(config: RunConfig, steps: int) -> int:
    """The most looks that a run of these settings is expected to take; the paired gate shares its error budget by it.

    One a step; with edit screening another one for each edit of the budget, since edits whose union is refused are
    looked at one by one; one at the end of each epoch but the first for a gated slow update; one at the end of the run
    where something may become current past the gate. A step that takes more (an unlimited edit budget) leaves less for
    the later ones, never more for all.
    """
    optimizer = config.optimizer
    per_step = 1 + optimizer.learning_rate if optimizer.screen_edits else 1
    gated = optimizer.slow_update_gate_with_selection
    slow = config.train.num_epochs - 1 if optimizer.use_slow_update and gated else 0
    past_the_gate = (optimizer.use_slow_update and not gated) or optimizer.use_skill_aware_reflection
    looks: int = steps * per_step + slow + int(past_the_gate)
    return max(1, looks)


def extent_of(config: RunConfig, adapter: EnvAdapter) -> Extent:
    """The extent of a run in an environment that is set up.

    Raises ConfigError when the number of training items is unknown, or differs from `train.train_size`.
    """
    loader, wanted = adapter.get_dataloader(), config.train.train_size
    size = len(loader.items("train")) if isinstance(loader, SplitDataLoader) else None
    if size is None and not wanted:
        raise ConfigError("train.train_size must be set: this environment draws its own tasks and gives no size.")
    if size is not None and wanted and wanted != size:
        raise ConfigError(f"train.train_size is {wanted}, but the train split has {size} items; leave the key out.")
    return Extent.of(config, size if size is not None else wanted)
