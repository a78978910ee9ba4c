"""A grade is two finite numbers within 0..1, or it is no grade."""

from __future__ import annotations

from typing import Any

import pytest

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.judges import grade
from skillopt_sleep.types import TaskRecord


class Grader:
    name = "grader"

    def __init__(self, *verdict: Any) -> None:
        self.verdict = verdict
        self.seen: list[tuple[str, str]] = []

    def judge(self, task: TaskRecord, response: str) -> Any:
        self.seen.append((task.intent, response))
        return self.verdict


TASK = TaskRecord("t", "/p", "sum up the text", reference_kind="rubric", reference="names the author")


def test_the_backend_grades_what_is_no_rule_and_sees_the_task() -> None:
    grader = Grader(1, 0.85, "good")
    assert grade(grader, TASK, "an answer") == (1.0, 0.85, "good")
    assert grader.seen == [("sum up the text", "an answer")]


@pytest.mark.parametrize("soft", [1.2, 85, -0.5, float("nan"), float("inf"), "0.8", None, [0.5]])
def test_what_is_no_score_is_refused_and_never_a_zero(soft: object) -> None:
    with pytest.raises(CallFailed, match="expected a number from 0 to 1") as caught:
        grade(Grader(1.0, soft, ""), TASK, "an answer")
    assert caught.value.kind == "unparsed"


def test_rounding_is_clamped() -> None:
    assert grade(Grader(1.0000000001, -1e-12, ""), TASK, "x")[:2] == (1.0, 0.0)


def test_rules_are_decided_here_with_the_recorded_calls() -> None:
    rule = TaskRecord("t", "/p", "x", reference_kind="rule", judge={"checks": [{"op": "tool_called", "arg": "Bash"}]})
    grader = Grader(0, 0, "")
    assert grade(grader, rule, "done", ["Bash"])[0] == 1
    assert grade(grader, rule, "TOOL_CALL: Bash", [])[0] == 0
    assert grader.seen == []
