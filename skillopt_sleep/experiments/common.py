"""What the experiments share: flags of backends, scores of a skill, nights in a row."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.backends import Backend, build_backend, skill_hash
from skillopt_sleep.budget import Meter
from skillopt_sleep.errors import SleepError
from skillopt_sleep.learn import LearnTrace, SlowHistory, consolidate, extract_slow_field
from skillopt_sleep.replay import replay_batch, summarize
from skillopt_sleep.show import json_safe, score_text
from skillopt_sleep.types import ConsolidationResult, TaskRecord

BACKENDS = ("mock", "claude", "codex", "copilot", "azure_openai")
_SOLVED = 0.999


@dataclass(frozen=True, slots=True)
class Score:
    """Mean hard and soft score on some tasks; `n_errors` of them have no score and are not in the means."""

    hard: float
    soft: float
    n: int
    n_errors: int = 0

    @property
    def mixed(self) -> float:
        """Half of each."""
        return 0.5 * self.hard + 0.5 * self.soft


@dataclass(frozen=True, slots=True)
class Plan:
    """How the nights of an experiment learn."""

    nights: int = 4
    edit_budget: int = 4
    rollouts_k: int = 1
    gate_mode: str = "on"
    gate_metric: str = "mixed"
    gate_min_val: int = 5
    slow_update: bool = False


@dataclass(slots=True)
class Course:
    """What the nights led to: the skill, its score, and a row for each night."""

    skill: str
    score: Score
    rows: list[dict[str, Any]] = field(default_factory=list)
    n_errors: int = 0


def add_backend_flags(parser: argparse.ArgumentParser, *, roles: bool = False) -> None:
    """The flags that `backend_of` reads."""
    parser.add_argument("--backend", choices=BACKENDS, default="mock", help="what answers model calls (default: mock)")
    parser.add_argument("--model", default="", help="the backend's model")
    parser.add_argument("--codex-path", default="", help="the codex program")
    for role in ("optimizer", "target") if roles else ():
        parser.add_argument(f"--{role}-backend", choices=BACKENDS, default="", help=f"backend of the {role}")
        parser.add_argument(f"--{role}-model", default="", help=f"model of the {role}")


def backend_of(flags: argparse.Namespace, *, meter: Meter | None = None) -> Backend:
    """The backend that the flags ask for, checked. Raises UsageProblem and CallFailed."""
    names = ("optimizer_backend", "optimizer_model", "target_backend", "target_model")
    roles = {name: getattr(flags, name, "") for name in names}
    made = build_backend(
        backend=flags.backend, model=flags.model, codex_path=flags.codex_path, meter=meter or Meter(), **roles
    )
    made.check()
    return made


def score(backend: Any, tasks: Sequence[TaskRecord], skill: str, memory: str = "") -> Score:
    """The score of a skill on tasks. Raises what the calls raise."""
    found = summarize(replay_batch(backend, tasks, skill, memory))
    return Score(found.hard, found.soft, found.n, found.n_errors)


def nights(
    backend: Any,
    tasks: Sequence[TaskRecord],
    skill: str,
    plan: Plan,
    baseline: Score,
    after: Callable[[str], Score],
) -> Course:
    """Learn from `tasks` for some nights, the memory left alone, until `after` says that a skill is perfect.

    `baseline` is the score of `skill`; a skill that did not change is not scored again.
    """
    course = Course(skill, baseline)
    history: SlowHistory | None = None
    for night in range(1, plan.nights + 1):
        if course.score.mixed >= _SOLVED:
            break
        trace = LearnTrace()
        result = consolidate(
            backend,
            tasks,
            course.skill,
            "",
            edit_budget=plan.edit_budget,
            gate_mode=plan.gate_mode,
            gate_metric=plan.gate_metric,
            gate_min_val=plan.gate_min_val,
            rollouts_k=plan.rollouts_k,
            evolve_memory=False,
            night=night,
            slow_history=history,
            trace=trace,
        )
        if plan.slow_update:
            history = SlowHistory(trace.train_pairs, skill_hash(course.skill), extract_slow_field(result.new_skill))
        if result.new_skill != course.skill:
            course.skill, course.score = result.new_skill, after(result.new_skill)
        course.n_errors += result.n_errors
        course.rows.append(night_row(night, result, course.score))
    return course


def night_row(night: int, result: ConsolidationResult, reached: Score) -> dict[str, Any]:
    """One night as a row of a trace."""
    row = {
        "night": night,
        "accepted": result.accepted,
        "action": result.gate_action,
        "baseline": result.baseline_score,
        "candidate": result.candidate_score,
        "edits": [edit.content for edit in result.applied_edits],
        "rejected": [edit.content for edit in result.rejected_edits],
        "held": [edit.content for edit in result.held_edits],
        "reason": result.no_edits_reason or result.gate_detail.get("reason", ""),
        "score": reached.mixed,
        "hard": reached.hard,
        "n_errors": result.n_errors + reached.n_errors,
    }
    return dict(json_safe(row))


def say(text: str = "") -> None:
    """One line of output."""
    print(text)


def say_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(json_safe(value), indent=2, ensure_ascii=False))


def change(before: float, after: float) -> str:
    """Two scores and an arrow."""
    return f"{score_text(before)} -> {score_text(after)}"


def positive(text: str) -> int:
    """A whole number of at least 1, for flags."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return number


def ended(run: Callable[[], int]) -> int:
    """The exit code of `run`; an error of ours becomes its message and its exit code."""
    try:
        return run()
    except SleepError as error:
        print(error, file=sys.stderr)
        return error.exit_code
