"""The base of environments whose items come from train, val and test splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.datasets.base import SPLIT_NAMES, SplitDataLoader
from skillopt.envs.base import TaskEnv
from skillopt.types import Item


@dataclass(eq=False)
class SplitEnv(TaskEnv):
    """Tasks from ready split folders or from a file that is cut by a ratio. The fields are the `env.*` keys.

    `exec_timeout`: seconds for one item. Subclasses that read other formats override `make_loader`.
    """

    split_mode: str = "ratio"
    split_ratio: str = "2:1:7"
    split_seed: int = 42
    split_dir: str = ""
    data_path: str = ""
    split_output_dir: str = ""
    split_reset: bool = False
    strict_splits: bool = False
    seed: int = 42
    limit: int = 0
    workers: int = 8
    exec_timeout: float = 120
    max_completion_tokens: int = 16384
    out_root: str = ""

    def __post_init__(self) -> None:
        self.call_options = {"max_completion_tokens": self.max_completion_tokens}
        self._rows = self.make_loader(
            split_dir=self.split_dir,
            data_path=self.data_path,
            split_mode=self.split_mode,
            split_ratio=self.split_ratio,
            split_seed=self.split_seed,
            split_output_dir=self.split_output_dir,
            seed=self.seed,
            limit=self.limit,
            split_strict=self.strict_splits,
            split_reset=self.split_reset,
        )
        self._rows.set_out_root(self.out_root)

    def make_loader(self, **settings: Any) -> SplitDataLoader:
        """The loader of the items, made with these settings."""
        return SplitDataLoader(**settings)

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load the splits. Raises DataError for items that cannot be used, before any call."""
        super().setup(cfg)
        self._rows.setup(dict(cfg))

    def get_dataloader(self) -> SplitDataLoader:
        """The loader of the items."""
        return self._rows

    def all_items(self) -> list[Item]:
        """Items of train, val and test, in this order."""
        return [item for split in SPLIT_NAMES for item in self._rows.items(split)]
