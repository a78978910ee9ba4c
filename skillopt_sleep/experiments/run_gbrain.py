"""Nights on deficient skills of gbrain-evals: does the held-out score of each rise?

python -m skillopt_sleep.experiments.run_gbrain --data-root ~/gbrain-evals --backend claude --seeds brief-writer
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from skillopt_sleep.budget import Budget, Meter, plan_depth
from skillopt_sleep.errors import BudgetSpent, UsageProblem
from skillopt_sleep.experiments.common import (
    Course,
    Plan,
    Score,
    add_backend_flags,
    backend_of,
    change,
    ended,
    nights,
    positive,
    say,
    say_json,
    score,
)
from skillopt_sleep.experiments.gbrain import BENCHMARK, SEEDS, Seed, find_data, load_seed

GATES = {"on": ("on", "mixed"), "off": ("off", "mixed"), "hard": ("on", "hard"), "soft": ("on", "soft")}
"""Mode and metric of each value of --gate."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, also when nothing improved; 1 when a call failed for good, 2 for usage and missing data."""
    flags = parser().parse_args(argv)

    def run() -> int:
        summary = run_gbrain(flags)
        say_json(summary) if flags.json else _tell(summary)
        return 0

    return ended(run)


def run_gbrain(flags: argparse.Namespace) -> dict[str, Any]:
    """The summary of all seeds. A spent budget ends the run with the seeds that were done. Raises what calls raise."""
    root = find_data(flags.data_root)
    names = seed_names(flags.seeds)
    meter = Meter(max_tokens=flags.budget_tokens, max_minutes=flags.budget_minutes)
    backend = backend_of(flags, meter=meter)
    seeds = [load(flags, root, name) for name in names]
    results: list[dict[str, Any]] = []
    stopped = ""
    for seed in seeds:
        try:
            results.append(run_seed(backend, seed, plan_for(flags, seed, len(seeds))))
        except BudgetSpent as error:
            stopped = str(error)
            break
    return {
        "benchmark": BENCHMARK,
        "backend": backend.name,
        "model": backend.model,
        "n_seeds": len(results),
        "n_improved": sum(row["improved"] for row in results),
        "tokens_used": backend.tokens_used(),
        "results": results,
        "stopped": stopped,
    }


def run_seed(backend: Any, seed: Seed, plan: Plan) -> dict[str, Any]:
    """The row of one seed."""
    spent = backend.tokens_used()
    test = seed.split("test")
    before = score(backend, test, seed.skill)
    course = learn(backend, backend, seed, plan, before)
    return seed_row(seed, before, course, backend.tokens_used() - spent)


def learn(learner: Any, judge: Any, seed: Seed, plan: Plan, before: Score) -> Course:
    """Nights of `learner` on the tasks of a seed; `judge` is the backend whose answers to the test tasks are scored."""
    tasks = [task for task in seed.tasks if task.split != "test"]
    test = seed.split("test")
    return nights(learner, tasks, seed.skill, plan, before, lambda skill: score(judge, test, skill))


def seed_row(seed: Seed, before: Score, course: Course, tokens: int) -> dict[str, Any]:
    """The result of a seed. Scores are mean hard scores on its test tasks; those without a score are counted."""
    return {
        "seed": seed.name,
        "n_train": len(seed.split("train")),
        "n_val": len(seed.split("val")),
        "n_test": len(seed.split("test")),
        "baseline": before.hard,
        "after": course.score.hard,
        "baseline_soft": before.soft,
        "after_soft": course.score.soft,
        "lift": course.score.hard - before.hard,
        "improved": course.score.hard > before.hard,
        "nights_run": len(course.rows),
        "n_errors": before.n_errors + course.n_errors + course.score.n_errors,
        "tokens_used": tokens,
        "nights": course.rows,
        "final_skill": course.skill,
    }


def load(flags: argparse.Namespace, root: Any, name: str) -> Seed:
    """A seed with the limits of the flags."""
    return load_seed(root, name, limit_replay=flags.limit_replay, limit_holdout=flags.limit_holdout)


def plan_for(flags: argparse.Namespace, seed: Seed, n_seeds: int) -> Plan:
    """Nights and rollouts as the flags say, or as the token budget allows; each seed has an equal share of it."""
    tokens = flags.budget_tokens // max(1, n_seeds) if flags.budget_tokens is not None else None
    n_tasks = len(seed.tasks) - len(seed.split("test"))
    depth = plan_depth(Budget(max_tokens=tokens), n_tasks, flags.nights, flags.rollouts_k)
    mode, metric = GATES[flags.gate]
    return Plan(depth[0], flags.edit_budget, depth[1], mode, metric, flags.gate_min_val, flags.slow_update)


def seed_names(text: str) -> list[str]:
    """The seeds of a list with commas; all for a blank one. Raises UsageProblem."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(SEEDS)
    for name in names:
        if name not in SEEDS:
            raise UsageProblem(f"There is no seed {name!r}; choose from {', '.join(SEEDS)}.")
    return list(dict.fromkeys(names))


def add_learning_flags(made: argparse.ArgumentParser) -> None:
    """The flags of data and learning, shared with `run_transfer`."""
    made.add_argument("--data-root", default="", help="the clone of gbrain-evals or the folder of its seeds")
    made.add_argument("--seeds", default="", help="names with commas between them; default: all")
    made.add_argument("--nights", type=positive, default=3, help="most nights of a seed (default: 3)")
    made.add_argument("--edit-budget", type=positive, default=4, help="most edits of a reflection (default: 4)")
    made.add_argument("--gate", choices=tuple(GATES), default="on", help="off: no gate; hard, soft: the score it uses")
    made.add_argument(
        "--gate-min-val", type=positive, default=5, help="fewest validation tasks to accept by (default: 5)"
    )
    made.add_argument("--rollouts-k", type=positive, default=1, help="attempts at each training task (default: 1)")
    made.add_argument("--slow-update", action="store_true", help="keep lasting guidance from the second night on")
    made.add_argument("--budget-tokens", type=positive, default=None, help="most tokens; plans nights and rollouts too")
    made.add_argument("--budget-minutes", type=float, default=None, help="no call starts after this many minutes")
    made.add_argument("--limit-replay", type=int, default=0, help="use only the first N tasks to learn from; 0: all")
    made.add_argument("--limit-holdout", type=int, default=0, help="use only the first N held-out tasks; 0: all")
    made.add_argument("--json", action="store_true", help="print one JSON document")


def parser() -> argparse.ArgumentParser:
    """The flags of this program."""
    made = argparse.ArgumentParser(prog="python -m skillopt_sleep.experiments.run_gbrain", description=__doc__)
    add_learning_flags(made)
    add_backend_flags(made, roles=True)
    return made


def _tell(summary: dict[str, Any]) -> None:
    improved = f"{summary['n_improved']} of {summary['n_seeds']} improved"
    say(f"{summary['benchmark']}, backend {summary['backend']}: {improved}")
    for row in summary["results"]:
        how = f"{row['nights_run']} nights, {row['n_errors']} results without a score"
        say(f"  {row['seed']}: held-out {change(row['baseline'], row['after'])} ({how})")
    if summary["stopped"]:
        say(summary["stopped"])


if __name__ == "__main__":
    sys.exit(main())
