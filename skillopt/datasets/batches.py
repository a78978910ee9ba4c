"""What a batch is, what every loader offers, and the names of splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from skillopt.datasets import sampling
from skillopt.errors import DataError

SPLIT_NAMES = ("train", "val", "test")
_ALIASES = MappingProxyType(
    {
        "train": "train",
        "val": "val",
        "selection": "val",
        "valid_seen": "val",
        "test": "test",
        "valid_unseen": "test",
    }
)


def canonical_split(name: str) -> str:
    """`train`, `val` or `test` for a split's name or alias (selection, valid_seen, valid_unseen).

    Raises DataError, with the nearest name, for any other.
    """
    if name in _ALIASES:
        return _ALIASES[name]
    near = get_close_matches(str(name).lower(), _ALIASES, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise DataError(f"split: unknown name {name!r}{hint}; expected {', '.join(_ALIASES)}.")


@dataclass(slots=True)
class BatchSpec:
    """One batch to roll out: `phase` is `train` or `eval`, `split` is named as it was asked for.

    `batch_size` is the real number of items; `payload` usually the list of item dicts.
    """

    phase: str
    split: str
    seed: int
    batch_size: int
    payload: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


class BaseDataLoader:
    """What an environment's loader offers to the trainer. Subclasses give at least the two `build_` methods."""

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Take settings from the flat configuration and read the data. The base class keeps a copy as `_cfg`."""
        self._cfg = dict(cfg)

    def set_out_root(self, out_root: str) -> None:
        """Say in which run folder generated files may be put. The base class does not need to know."""

    def build_train_batch(self, batch_size: int, seed: int) -> BatchSpec:
        """One training batch, decided by `seed` alone."""
        raise NotImplementedError(f"{type(self).__name__} does not build train batches")

    def build_eval_batch(self, env_num: int, split: str, seed: int) -> BatchSpec:
        """The first `env_num` items of a split in their fixed order; all of them if `env_num` is 0."""
        raise NotImplementedError(f"{type(self).__name__} does not build eval batches")

    def plan_train_epoch(
        self, *, epoch: int, steps_per_epoch: int, accumulation: int, batch_size: int, seed: int
    ) -> list[BatchSpec]:
        """The `steps_per_epoch * accumulation` training batches of an epoch, in order.

        The seeds `seed + 1`, `seed + 2`, ... are shuffled with `seed + epoch * 1000`; each makes one batch.
        """
        seeds = sampling.epoch_batch_seeds(epoch=epoch, batches=steps_per_epoch * accumulation, seed=seed)
        return [self.build_train_batch(batch_size, batch_seed) for batch_seed in seeds]

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must find again. Empty in the base class."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up `state`; raises ResumeMismatchError if it belongs to other data. Nothing in the base class."""
