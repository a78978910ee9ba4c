"""Grades an answer by whatever the task asks for: its checks here, everything else by the backend.

What a backend returns is checked: a grade is two finite numbers within 0..1. Anything else is no grade, and no grade is
never a zero. The backend's judge is shown the task, the rubric and the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.judges.checks import run_check
from skillopt_sleep.judges.rule import score_rule_judge, told
from skillopt_sleep.judges.work import conditions_of, shown_answer
from skillopt_sleep.show import clip
from skillopt_sleep.types import TaskRecord

_ROUNDING = 1e-6


def grade(
    backend: Any,
    task: TaskRecord,
    response: str,
    tools_called: Sequence[str] = (),
    *,
    fresh: bool = False,
    work: Mapping[str, Any] | None = None,
) -> tuple[float, float, str]:
    """(hard, soft, rationale) of an answer to `task`; `fresh` asks the backend for a new grade, not a kept one.

    `work`: what the attempt changed in a checkout (`ReplayResult.work`). The backend's judge then sees the changes
    behind the answer, and the task's conditions on the work count too: unless all hold hard is 0, and soft is
    multiplied by the share of them that hold.

    Raises CallFailed (unparsed) for what is no grade, Undecidable for checks that cannot be decided, and what the
    backend raises.
    """
    if task.reference_kind == "rule":
        return score_rule_judge(task.judge, response, list(tools_called), work)
    answer = shown_answer(response, work)
    verdict = backend.judge(task, answer, fresh=True) if fresh else backend.judge(task, answer)
    hard, soft, rationale = verdict
    score = _score(backend, hard), _score(backend, soft), str(rationale or "")
    return _with_conditions(task, score, work) if work else score


def _with_conditions(
    task: TaskRecord, score: tuple[float, float, str], work: Mapping[str, Any]
) -> tuple[float, float, str]:
    results = [run_check(check, "", None, work) for check in conditions_of(task.judge)]
    failed = [result for result in results if not result.passed]
    if not failed:
        return score
    _, soft, rationale = score
    reason = told(failed)
    return 0.0, soft * (1 - len(failed) / len(results)), f"{reason}; {rationale}" if rationale else reason


def _score(backend: Any, value: Any) -> float:
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or not -_ROUNDING <= number <= 1 + _ROUNDING:
        name = getattr(backend, "name", "") or type(backend).__name__
        raise CallFailed(
            f"The judge of {name} gave the score {clip(repr(value), 40)}; expected a number from 0 to 1.",
            kind="unparsed",
        )
    return min(1.0, max(0.0, number))
