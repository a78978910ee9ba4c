"""Reads the splits of OfficeQA, which come as CSV tables or as JSON."""

from __future__ import annotations

from pathlib import Path

from skillopt.datasets.folders import data_files
from skillopt.datasets.readers import read_items
from skillopt.envs.benchmark import BenchmarkLoader, Row


class OfficeQALoader(BenchmarkLoader):
    """Reads the first CSV file of a split's folder, or else what its base reads."""

    def load_split_items(self, split_path: str) -> list[Row]:
        """Normalised rows of one split."""
        tables = data_files(Path(split_path), (".csv",))
        if not tables:
            return super().load_split_items(split_path)
        return [self._normalize(row) for row in read_items(tables[0], id_field=self.id_field)]
