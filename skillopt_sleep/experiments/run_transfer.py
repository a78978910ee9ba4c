"""Does a skill that one model learned help another? Learn with the source, score the frozen skill with the target.

python -m skillopt_sleep.experiments.run_transfer --source-backend claude --target-backend codex --seeds advisor
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from skillopt_sleep.backends import build_backend
from skillopt_sleep.budget import Meter
from skillopt_sleep.errors import BudgetSpent
from skillopt_sleep.experiments.common import BACKENDS, Plan, change, ended, say, say_json, score
from skillopt_sleep.experiments.gbrain import BENCHMARK, Seed, find_data
from skillopt_sleep.experiments.run_gbrain import add_learning_flags, learn, load, plan_for, seed_names


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 when a call failed for good, 2 for usage and missing data."""
    flags = parser().parse_args(argv)

    def run() -> int:
        summary = run_transfer(flags)
        say_json(summary) if flags.json else _tell(summary)
        return 0

    return ended(run)


def run_transfer(flags: argparse.Namespace) -> dict[str, Any]:
    """The summary of all seeds. A spent budget ends the run with the seeds that were done. Raises what calls raise."""
    root = find_data(flags.data_root)
    meter = Meter(max_tokens=flags.budget_tokens, max_minutes=flags.budget_minutes)
    source = _backend(flags, "source", meter)
    target = _backend(flags, "target", meter)
    seeds = [load(flags, root, name) for name in seed_names(flags.seeds)]
    results: list[dict[str, Any]] = []
    stopped = ""
    for seed in seeds:
        try:
            results.append(transfer_seed(source, target, seed, plan_for(flags, seed, len(seeds)), direct=flags.direct))
        except BudgetSpent as error:
            stopped = str(error)
            break
    return {
        "benchmark": BENCHMARK,
        "source": source.model_key,
        "target": target.model_key,
        "n_seeds": len(results),
        "n_gained": sum(row["transfer_gain"] > 0 for row in results),
        "tokens_used": source.tokens_used() + target.tokens_used(),
        "results": results,
        "stopped": stopped,
    }


def transfer_seed(source: Any, target: Any, seed: Seed, plan: Plan, *, direct: bool = True) -> dict[str, Any]:
    """The row of one seed: mean hard scores of the target on the test tasks.

    `baseline_target` with the deficient skill, `direct_target` with what the target learned itself (None when that is
    not asked for), `transferred` with what the source learned.
    """
    test = seed.split("test")
    before = score(target, test, seed.skill)
    own = learn(target, target, seed, plan, before) if direct else None
    learned = learn(source, source, seed, plan, score(source, test, seed.skill))
    moved = score(target, test, learned.skill)
    return {
        "seed": seed.name,
        "baseline_target": before.hard,
        "direct_target": None if own is None else own.score.hard,
        "transferred": moved.hard,
        "transfer_gain": moved.hard - before.hard,
        "source_lift": learned.score.hard,
        "n_errors": before.n_errors + moved.n_errors + learned.n_errors,
        "final_skill": learned.skill,
    }


def parser() -> argparse.ArgumentParser:
    """The flags of this program."""
    made = argparse.ArgumentParser(prog="python -m skillopt_sleep.experiments.run_transfer", description=__doc__)
    for role, use in (("source", "learns"), ("target", "is scored")):
        made.add_argument(f"--{role}-backend", choices=BACKENDS, default="mock", help=f"the backend that {use}")
        made.add_argument(f"--{role}-model", default="", help="its model")
    made.add_argument("--codex-path", default="", help="the codex program")
    made.add_argument("--no-direct", dest="direct", action="store_false", help="do not let the target learn itself")
    add_learning_flags(made)
    return made


def _backend(flags: argparse.Namespace, role: str, meter: Meter) -> Any:
    name, model = getattr(flags, f"{role}_backend"), getattr(flags, f"{role}_model")
    made = build_backend(backend=name, model=model, codex_path=flags.codex_path, meter=meter)
    made.check()
    return made


def _tell(summary: dict[str, Any]) -> None:
    say(f"{summary['benchmark']}, {summary['source']} to {summary['target']}: {summary['n_gained']} seeds gained")
    for row in summary["results"]:
        scores = change(row["baseline_target"], row["transferred"])
        say(f"  {row['seed']}: held-out {scores}, gain {row['transfer_gain']:+.3f}")
    if summary["stopped"]:
        say(summary["stopped"])


if __name__ == "__main__":
    sys.exit(main())
