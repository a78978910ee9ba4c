"""The environment on its sample items, and items of a test's own making."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sample_runs import ROOT

from skillopt.datasets.samples.plain_xlsx import write_workbook

pytest.importorskip("openpyxl", reason='reads workbooks: pip install "skillopt[spreadsheet]"')

SAMPLES = ROOT / "data" / "samples" / "spreadsheetbench"


@pytest.fixture
def sample_env() -> Callable[..., Any]:
    """Makes an environment on the sample data, set up."""
    from skillopt.envs.spreadsheetbench.adapter import SpreadsheetBenchEnv

    def make(**settings: Any) -> Any:
        places = {"split_mode": "split_dir", "split_dir": str(SAMPLES), "data_root": str(SAMPLES)}
        env = SpreadsheetBenchEnv(**{**places, **settings})
        env.setup({})
        return env

    return make


@pytest.fixture
def own_env(tmp_path: Path, sample_env: Callable[..., Any]) -> Callable[..., Any]:
    """Makes an environment with one item (in train; val and test hold others): its fields and its workbooks."""

    def make(
        books: Mapping[str, Mapping[str, Any]], env: Mapping[str, Any] | None = None, folder: str = "", **item: Any
    ) -> Any:
        row = {"id": "one", "instruction": "Do it.", "instruction_type": "Cell-Level Manipulation", **item}
        for name, sheets in books.items():
            write_workbook(tmp_path / "data" / (folder or f"spreadsheet/{row['id']}") / name, sheets)
        for split in ("train", "val", "test"):
            (tmp_path / split).mkdir(exist_ok=True)
            other = {"id": f"{split} item", "instruction": f"Do it for {split}.", "spreadsheet_path": "filler"}
            rows = [row if split == "train" else {**row, **other}]
            (tmp_path / split / "items.json").write_text(json.dumps(rows), encoding="utf-8")
        for name, sheets in books.items():
            write_workbook(tmp_path / "data" / "filler" / name, sheets)
        return sample_env(split_dir=str(tmp_path), data_root=str(tmp_path / "data"), **(env or {}))

    return make
