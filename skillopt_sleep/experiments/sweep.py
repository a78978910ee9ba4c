"""Runs a plan of experiments, one line of JSON a configuration, and goes on where it was stopped.

python -m skillopt_sleep.experiments.sweep --plan quick --out sweep.jsonl --backend claude
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt_sleep.errors import SleepError, UsageProblem
from skillopt_sleep.experiments import run_gbrain, run_transfer
from skillopt_sleep.experiments.common import BACKENDS, ended, say
from skillopt_sleep.experiments.gbrain import SEEDS, find_data
from skillopt_sleep.paths import append_private
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.show import json_safe

PLANS = ("quick", "direct", "transfer", "full")
_KINDS: Mapping[str, tuple[Callable[[], argparse.ArgumentParser], Callable[[argparse.Namespace], dict[str, Any]]]] = {
    "direct": (run_gbrain.parser, run_gbrain.run_gbrain),
    "transfer": (run_transfer.parser, run_transfer.run_transfer),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when every configuration has a row without an error, else 1; 2 for usage and missing data."""
    return ended(lambda: run_sweep(parser().parse_args(argv)))


def run_sweep(flags: argparse.Namespace) -> int:
    """Run what has no row in `--out` yet. A configuration that failed has one too; `--retry-errors` runs it again."""
    find_data(flags.data_root)
    out = Path(flags.out)
    rows = read_rows(out)
    done = {row["cfg_key"] for row in rows if not (flags.retry_errors and row.get("error"))}
    failed = 0
    for config in configurations(flags):
        key = cfg_key(config)
        if key in done:
            say(f"done already: {key}")
            continue
        row = _run(config, flags.data_root)
        append_private(out, json.dumps(redact_secrets(json_safe({"cfg_key": key, "config": config, **row}))))
        failed += bool(row.get("error"))
        say(f"{'failed' if row.get('error') else 'done'}: {key}")
    return 1 if failed else 0


def configurations(flags: argparse.Namespace) -> list[dict[str, Any]]:
    """What the plan runs: one seed a configuration, so that little is lost when it is stopped."""
    wanted = {"nights": flags.nights, "backend": flags.backend, "model": flags.model}
    seeds = list(SEEDS)
    direct = [{"kind": "direct", "seeds": seed, **wanted} for seed in seeds]
    pair = {"source_backend": flags.backend, "target_backend": flags.target_backend or flags.backend}
    models = {"source_model": flags.model, "target_model": flags.target_model, "nights": flags.nights}
    transfer = [{"kind": "transfer", "seeds": seed, **pair, **models} for seed in seeds]
    quick = [{**direct[0], "nights": 1, "limit_replay": 6, "limit_holdout": 4}]
    ungated = [{**row, "gate": "off"} for row in direct]
    plans = {"quick": quick, "direct": direct, "transfer": transfer, "full": [*direct, *ungated, *transfer]}
    return plans[flags.plan]


def cfg_key(config: Mapping[str, Any]) -> str:
    """A configuration as one line, its keys sorted."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a sweep; [] without a file. What was cut off while it was written is ignored. Raises UsageProblem."""
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageProblem(f"{file}: it cannot be read ({error.strerror}).") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict) or "cfg_key" not in row:
            raise UsageProblem(f"{file}:{number}: this is no row of a sweep.")
        rows.append(row)
    return rows


def _run(config: Mapping[str, Any], data_root: str) -> dict[str, Any]:
    flags_of, run = _KINDS[config["kind"]]
    words = [f"--{name.replace('_', '-')}={value}" for name, value in config.items() if name != "kind"]
    try:
        return {"summary": run(flags_of().parse_args([*words, f"--data-root={data_root}"]))}
    except SleepError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def parser() -> argparse.ArgumentParser:
    """The flags of this program."""
    made = argparse.ArgumentParser(prog="python -m skillopt_sleep.experiments.sweep", description=__doc__)
    made.add_argument("--plan", choices=PLANS, default="quick")
    made.add_argument("--out", required=True, help="the JSON Lines file of rows; it is appended to")
    made.add_argument("--data-root", default="", help="the clone of gbrain-evals or the folder of its seeds")
    made.add_argument("--backend", choices=BACKENDS, default="mock")
    made.add_argument("--model", default="")
    made.add_argument("--target-backend", choices=BACKENDS, default="", help="who is scored in a transfer")
    made.add_argument("--target-model", default="")
    made.add_argument("--nights", type=int, default=3)
    made.add_argument("--retry-errors", action="store_true", help="run again what failed before")
    return made


if __name__ == "__main__":
    sys.exit(main())
