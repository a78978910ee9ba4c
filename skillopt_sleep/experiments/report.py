"""Makes Markdown tables of the rows of a sweep.

python -m skillopt_sleep.experiments.report sweep.jsonl
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.experiments.common import ended, say
from skillopt_sleep.experiments.sweep import read_rows
from skillopt_sleep.show import score_text, table_cell

_DIRECT = ("Seed", "Backend", "Gate", "Nights", "Baseline", "After", "Lift", "No score")
_TRANSFER = ("Seed", "Source", "Target", "Baseline", "Direct", "Transferred", "Gain", "No score")
_Cells = Callable[[dict[str, Any], dict[str, Any]], Sequence[object]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report; exit code 2 when a file is missing or holds no rows."""
    flags = parser().parse_args(argv)

    def run() -> int:
        rows = [row for name in flags.files for row in read_rows(Path(name))]
        if not rows:
            raise UsageProblem(f"{', '.join(flags.files)}: there are no rows; run a sweep first.")
        say(render(rows))
        return 0

    return ended(run)


def parser() -> argparse.ArgumentParser:
    """The flags of this program."""
    made = argparse.ArgumentParser(prog="python -m skillopt_sleep.experiments.report", description=__doc__)
    made.add_argument("files", nargs="+", help="JSON Lines files of sweeps")
    return made


def render(rows: Iterable[dict[str, Any]]) -> str:
    """The report: one table for direct runs, one for transfers, one for errors, each only when it has rows.

    Of several rows with the same configuration the last counts.
    """
    latest = list({row["cfg_key"]: row for row in rows}.values())
    parts = ["# Experiments"]
    for title, kind, heads, cells in (
        ("Direct", "direct", _DIRECT, _direct),
        ("Transfer", "transfer", _TRANSFER, _transfer),
    ):
        own = [row for row in latest if _config(row).get("kind") == kind and "summary" in row]
        lines = [cells(row, result) for row in own for result in row["summary"]["results"]]
        if lines:
            parts.append(f"## {title}\n\n{_table(heads, lines)}")
    errors = [(row["cfg_key"], row["error"]) for row in latest if row.get("error")]
    stopped = [
        (row["cfg_key"], row["summary"]["stopped"]) for row in latest if (row.get("summary") or {}).get("stopped")
    ]
    if errors or stopped:
        parts.append(f"## Errors\n\n{_table(('Configuration', 'Error'), [*errors, *stopped])}")
    return "\n\n".join(parts)


def _direct(row: dict[str, Any], result: dict[str, Any]) -> Sequence[object]:
    summary = row["summary"]
    scores = [score_text(result[name]) for name in ("baseline", "after")]
    who = summary["backend"] + (f" {summary['model']}" if summary.get("model") else "")
    gate = _config(row).get("gate", "on")
    lift = f"{result['lift']:+.3f}"
    return [result["seed"], who, gate, result["nights_run"], *scores, lift, result["n_errors"]]


def _transfer(row: dict[str, Any], result: dict[str, Any]) -> Sequence[object]:
    summary = row["summary"]
    scores = [score_text(result[name]) for name in ("baseline_target", "direct_target", "transferred")]
    gain = f"{result['transfer_gain']:+.3f}"
    return [result["seed"], summary["source"], summary["target"], *scores, gain, result["n_errors"]]


def _config(row: dict[str, Any]) -> dict[str, Any]:
    config = row.get("config")
    return config if isinstance(config, dict) else {}


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *([table_cell(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
