"""Nights of a persona: how much its held-out score rises, and whether the gate refuses a harmful rule.

python -m skillopt_sleep.experiments.run_experiment --persona researcher --assert-improves
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from skillopt_sleep.backends.mock import HARMFUL, RULES
from skillopt_sleep.experiments.common import (
    Plan,
    Score,
    add_backend_flags,
    backend_of,
    change,
    ended,
    night_row,
    nights,
    positive,
    say,
    say_json,
    score,
)
from skillopt_sleep.experiments.personas import PERSONAS, HarmedBackend, harmful_edit_task, persona_tasks
from skillopt_sleep.learn import consolidate, ensure_skill_scaffold
from skillopt_sleep.mining import assign_splits
from skillopt_sleep.show import clip, terminal_line
from skillopt_sleep.types import TaskRecord

_MIN_VAL = 5
_EXCERPT = 1200
_NAME, _ABOUT = "skillopt-sleep-learned", "What this person wants done in a certain way."


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 when `--assert-improves` is given and nothing improved or the harmful rule got in; 2 for usage."""
    flags = parser().parse_args(argv)
    return ended(lambda: _report(flags, run_persona(flags)))


def run_persona(flags: argparse.Namespace) -> dict[str, Any]:
    """The result of the experiment as a mapping. Raises what the calls raise."""
    backend = backend_of(flags)
    tasks = persona_tasks(flags.persona)
    tasks = assign_splits(tasks[: flags.limit_tasks or None], val_fraction=0.34, seed=42)
    val = [task for task in tasks if task.split == "val"]
    mock = flags.backend == "mock"
    # The mock backend answers without chance, so fewer tasks than usual are enough to decide by.
    least = max(1, min(_MIN_VAL, len(val))) if mock else _MIN_VAL
    plan = Plan(nights=flags.nights, edit_budget=flags.edit_budget, gate_min_val=least)
    start = ensure_skill_scaffold("", name=_NAME, description=_ABOUT)
    baseline = score(backend, val, start)
    course = nights(backend, tasks, start, plan, baseline, lambda skill: score(backend, val, skill))
    after = course.score
    blocked, row = harmful_rule_is_refused(tasks, course.skill, plan) if mock else (None, None)
    return {
        "persona": flags.persona,
        "backend": backend.name,
        "model": backend.model,
        "n_tasks": len(tasks),
        "nights_run": len(course.rows),
        "baseline_holdout": baseline.mixed,
        "after_holdout": after.mixed,
        "lift": after.mixed - baseline.mixed,
        "improved": after.mixed > baseline.mixed,
        "gate_blocks_harmful": blocked,
        "tokens_used": backend.tokens_used(),
        "final_skill_excerpt": clip(course.skill, _EXCERPT),
        "trace": course.rows + ([row] if row is not None else []),
    }


def harmful_rule_is_refused(tasks: list[TaskRecord], skill: str, plan: Plan) -> tuple[bool, dict[str, Any]]:
    """(whether the gate measured the harmful rule and refused it, the trial as a row of the trace).

    A task that asks for the harmful rule joins the training tasks, so the rule is proposed; with it in the skill, the
    backend's answers are off the point.
    """
    bait = harmful_edit_task()
    bait.split = "train"
    backend = HarmedBackend()
    result = consolidate(
        backend, [*tasks, bait], skill, "", gate_min_val=plan.gate_min_val, evolve_memory=False, night=plan.nights + 1
    )
    tried = [trial for trial in result.gate_trials if any(edit["content"] == RULES[HARMFUL] for edit in trial["edits"])]
    refused = bool(tried) and not any(trial["accepted"] for trial in tried)
    row = night_row(0, result, Score(0.0, 0.0, 0))
    shown = {"phase": "harmful", **{key: row[key] for key in ("accepted", "action", "edits", "rejected")}}
    if tried:
        shown.update({key: tried[0][key] for key in ("baseline_score", "candidate_score", "verdict", "reason")})
    return refused and RULES[HARMFUL] not in result.new_skill, shown


def _report(flags: argparse.Namespace, result: dict[str, Any]) -> int:
    if flags.json:
        say_json(result)
    else:
        _tell(result)
    good = result["lift"] > 0 and result["gate_blocks_harmful"] in (True, None)
    if flags.assert_improves and not good:
        sys.stderr.write("The held-out score did not rise, or the harmful rule was not refused.\n")
        return 1
    return 0


def _tell(result: dict[str, Any]) -> None:
    nights_run = f"{result['nights_run']} night" + ("" if result["nights_run"] == 1 else "s")
    say(f"{result['persona']}: {result['n_tasks']} tasks, {nights_run}, backend {result['backend']}")
    say(f"held-out score {change(result['baseline_holdout'], result['after_holdout'])}")
    for row in result["trace"]:
        if row.get("phase") == "harmful":
            if "verdict" in row:
                scores = change(row["baseline_score"], row["candidate_score"])
                say(f"harmful rule: {row['verdict']} ({scores}; {row['reason']})")
            continue
        say(f"night {row['night']}: {row['action']} ({change(row['baseline'], row['candidate'])})")
        for rule in row["edits"]:
            say(f"  + {terminal_line(rule)}")
    if result["gate_blocks_harmful"] is not None:
        say(f"the gate refuses the harmful rule: {'yes' if result['gate_blocks_harmful'] else 'NO'}")


def parser() -> argparse.ArgumentParser:
    """The flags of this program."""
    made = argparse.ArgumentParser(prog="python -m skillopt_sleep.experiments.run_experiment", description=__doc__)
    made.add_argument("--persona", choices=tuple(PERSONAS), default="researcher")
    made.add_argument("--nights", type=positive, default=4, help="most nights (default: 4)")
    add_backend_flags(made)
    made.add_argument("--edit-budget", type=positive, default=4, help="most edits of a reflection (default: 4)")
    made.add_argument("--limit-tasks", type=int, default=0, help="use only the first N tasks; 0: all")
    made.add_argument("--json", action="store_true", help="print one JSON document")
    made.add_argument("--assert-improves", action="store_true", help="exit 1 unless the score rises")
    return made


if __name__ == "__main__":
    sys.exit(main())
