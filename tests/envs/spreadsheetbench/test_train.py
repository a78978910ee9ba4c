"""One epoch on the sample workbooks: a rule of the skill makes the target write values instead of formulas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_runs import ROOT, SampleRun, text_of
from sheets import SOLUTIONS, WITH_FORMULA, fenced, kind_of

NAME = "spreadsheetbench"
RULE = "- Compute results in Python and write their values into the cells, never formulas."
DATA = {"data_root": str(ROOT / "data" / "samples" / NAME)}


def answer(system: str, user: str) -> str:
    return fenced(SOLUTIONS[kind_of(user)] if RULE in system else WITH_FORMULA)


@pytest.mark.parametrize(
    ("mode", "items"),
    [
        ("single", 1),
        pytest.param("single", 2, marks=pytest.mark.slow),
        pytest.param("multi", 1, marks=pytest.mark.slow),
    ],
)
def test_one_epoch_on_the_sample_data_gains(tmp_path: Path, mode: str, items: int) -> None:
    run = SampleRun(NAME, tmp_path / "run", target=answer, rule=RULE)
    trained = run.train(mode=mode, limit=items, **DATA)
    assert (trained.baseline, trained.score, trained.test_baseline, trained.test_score) == (0.0, 1.0, 0.0, 1.0)
    assert trained.skill.rstrip().endswith(RULE)
    summary = json.loads((run.out_root / "test_eval" / "summary.json").read_text(encoding="utf-8"))
    assert summary["cell_level"] == {"total": items, "hard_acc": 1.0}
    analyst = next(body for body in run.asked("optimizer-model") if "Trajectories (" in text_of(body, "user"))
    assert "change an Excel workbook" in text_of(analyst, "system")
    seen = text_of(analyst, "user")
    assert "[verification]" in seen and "eval-mismatch" in seen and "=SUM(B2:B9)" in seen
