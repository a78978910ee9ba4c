"""The loader of LiveMathematicianBench: ids of raw rows, rows that hold no question, and choices shuffled by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillopt.datasets.base import BatchSpec, SplitDataLoader
from skillopt.datasets.readers import is_row_id
from skillopt.envs.benchmark import BenchmarkLoader, Row
from skillopt.envs.livemathematicianbench.choices import MissingPartError, shuffle_choices
from skillopt.types import Item

_NAMED = 5


class ChoiceLoader(BenchmarkLoader):
    """Reads rows as its base does. `shuffle`: show choices in an order that the batch's seed and the item's id give."""

    def __init__(self, normalize: Callable[[Row], Row], *, shuffle: bool, **settings: Any) -> None:
        super().__init__(normalize, **settings)
        self._shuffle = shuffle

    def load_raw_items(self, data_path: str) -> list[Row]:
        """Normalised rows of the source that ratio mode cuts.

        Rows without question, choices or right choice are left out, as in the published benchmark, and said in a
        notice. Rows with neither an id nor a number are numbered by their position from 1.
        """
        kept: list[Row] = []
        left_out: list[str] = []
        for number, row in enumerate(SplitDataLoader.load_raw_items(self, data_path), 1):
            numbered = {**row, "no": number} if is_row_id(row["id"]) and row.get("no") is None else row
            try:
                kept.append(self._normalize(numbered))
            except MissingPartError:
                left_out.append(own_id(numbered))
        if left_out:
            named = ", ".join(left_out[:_NAMED]) + (", ..." if len(left_out) > _NAMED else "")
            self.notices.append(
                f"{data_path}: {len(left_out)} item(s) without question, choices or right choice are left out: {named}."
            )
        return kept

    def batch_of(self, phase: str, split: str, seed: int, items: Sequence[Item]) -> BatchSpec:
        """The batch of these items, with their choices in the order that its seed gives."""
        batch = super().batch_of(phase, split, seed, items)
        if self._shuffle:
            batch.payload = [shuffle_choices(row, seed) for row in batch.payload]
        return batch


def own_id(row: Row) -> str:
    """The id of a row: its own, else `<month>:<no>` or `<no>`, else the one that it was given when it was read."""
    given, month, number = row.get("id"), row.get("month"), row.get("no")
    if number in (None, "") or (given not in (None, "") and not is_row_id(given)):
        return str(given)
    return f"{month}:{number}" if month not in (None, "") else str(number)
