"""The prompt that asks a model for a grade, and how strictly its reply is read.

The judge sees the task, the rubric and the answer, each as fenced data. A grade is a number within 0..1; anything else
is no grade, never a zero.
"""

from __future__ import annotations

import math
import re
from typing import Any

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.prompts import render
from skillopt_sleep.show import clip
from skillopt_sleep.types import TaskRecord
from skillopt_sleep.vendored.errors import ReplyError
from skillopt_sleep.vendored.utils.json_reply import read_reply

MAX_TOKENS = 200
HARD_FROM = 0.8
"""A grade of this much or more counts as solved."""

_ROUNDING = 1e-6
_REASON_CHARS = 500
_FRACTION = re.compile(r"\s*(0(?:\.\d{1,12})?|1(?:\.0{1,12})?|\.\d{1,12})\s*(?:/\s*1(?:\.0{1,12})?)?\s*")
_TASK_CHARS = 4000


def judge_prompt(task: TaskRecord, response: str) -> str:
    """What the judge is asked; a task without a rubric is graded by its own words."""
    context = task.context_excerpt.strip()
    shown = task.intent if not context else f"{task.intent}\n\nEarlier messages:\n{context}"
    values = {
        "__TASK__": clip(shown, _TASK_CHARS),
        "__RUBRIC__": task.reference or task.intent,
        "__RESPONSE__": response,
    }
    return render("judge", values)


def firmer(prompt: str, problem: str) -> str:
    """The prompt of a second request, after a reply that held no grade."""
    return (
        f"{prompt}\n\nAn earlier reply could not be used: {problem} Answer with exactly one JSON object, "
        '{"score": <a number from 0 to 1>, "reason": "<one sentence>"}, and nothing before or after it.\n'
    )


def read_grade(reply: str, *, cut: bool = False) -> tuple[float, float, str]:
    """(hard, soft, reason) in a judge's reply. Raises CallFailed (unparsed) for what is no grade."""
    try:
        value = read_reply(reply, expect=dict, finish_reason="length" if cut else "stop").value
    except ReplyError as error:
        raise CallFailed(f"The judge's reply holds no grade: {error}", kind="unparsed", detail=reply[:400]) from None
    except ImportError:
        raise CallFailed("The judge's reply is no valid JSON.", kind="unparsed", detail=reply[:400]) from None
    score = _score(value.get("score"))
    if score is None:
        told = clip(repr(value.get("score")), 40)
        raise CallFailed(
            f"The judge's score is {told}; expected a number from 0 to 1.", kind="unparsed", detail=reply[:400]
        )
    reason = value.get("reason")
    words = clip(" ".join(reason.split()), _REASON_CHARS) if isinstance(reason, str) else ""
    return (1.0 if score >= HARD_FROM else 0.0), score, words


def _score(value: Any) -> float | None:
    if isinstance(value, str):
        match = _FRACTION.fullmatch(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    number = float(value) if abs(value) < 1e9 else math.inf
    if not math.isfinite(number) or not -_ROUNDING <= number <= 1 + _ROUNDING:
        return None
    return min(1.0, max(0.0, number))
