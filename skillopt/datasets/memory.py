"""Items that a Python program holds already, as the splits of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt.datasets import checks
from skillopt.datasets.base import SPLIT_NAMES, SplitDataLoader
from skillopt.errors import DataError
from skillopt.types import Item


class MemoryLoader(SplitDataLoader):
    """A loader over given items; `splits` maps `train`, `val` and `test` to mappings.

    Items need a unique `id` and JSON values. A split in which no item has an id is numbered: `train-1`, `train-2`.
    Raises DataError for items that cannot be used; what is wrong across splits shows in `setup`.
    """

    def __init__(self, splits: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        super().__init__(split_mode="split_dir")
        self._given = {name: _checked(name, list(splits.get(name) or ())) for name in SPLIT_NAMES}

    def _load_folder(self, folder: str) -> dict[str, tuple[Item, ...]]:  # noqa: ARG002 - there is no folder
        return dict(self._given)


def _checked(split: str, rows: Sequence[Mapping[str, Any]]) -> tuple[Item, ...]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"{split}: item {number}: expected a mapping, found {type(row).__name__}.")
        try:
            json.dumps(dict(row), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{split}: item {number}: holds a value that is not JSON ({error}); give texts, numbers, lists and "
                "mappings, and look up anything else by the item's id."
            ) from None
    if not any("id" in row for row in rows):
        rows = [{"id": f"{split}-{number}", **row} for number, row in enumerate(rows, 1)]
    return checks.check_items(rows, source=split)
