"""Conditions on what was changed in a checkout, and what they do to a score."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.judges import (
    KNOWN_OPS,
    WORK_OPS,
    Undecidable,
    clean_checks,
    conditions_of,
    grade,
    is_shape_only,
    score_rule_judge,
    shown_answer,
    validate_checks,
)
from skillopt_sleep.judges.work import answer_in_short
from skillopt_sleep.types import TaskRecord

TESTS = {"op": "command", "arg": "make test"}
TOUCHED = {"op": "file_changed", "arg": "**"}
SAID = {"op": "contains", "arg": "tested"}
DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-1\n+2\n"


def work(*passed: bool, note: str = "", diff: str = DIFF) -> dict[str, Any]:
    """What a checkout found out about TESTS and TOUCHED."""
    rows = [
        {**check, "passed": one, "note": note if not one else ""}
        for check, one in zip((TESTS, TOUCHED), passed, strict=True)
    ]
    return {"diff": diff, "files": ["app.py"], "checks": rows}


class Judge:
    """A model that gives every answer the same grade and remembers what it saw."""

    name = "judge"

    def __init__(self, soft: float = 0.8) -> None:
        self.soft = soft
        self.seen: list[str] = []

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        self.seen.append(response)
        return (1.0 if self.soft >= 0.8 else 0.0), self.soft, "a reason"


def coding(kind: str, *checks: dict[str, Any], reference: str = "") -> TaskRecord:
    return TaskRecord("t", "/p", "Bump it", reference_kind=kind, reference=reference, judge={"checks": list(checks)})


def test_conditions_on_the_work_and_checks_of_the_answer_count_alike_in_a_rule() -> None:
    task = coding("rule", SAID, TESTS, TOUCHED)
    assert grade(Judge(), task, "tested", work=work(True, True)) == (1.0, 1.0, "all checks passed")
    hard, soft, why = grade(Judge(), task, "tested", work=work(False, True, note="exit code 1:\n 1 failed"))
    assert (hard, soft) == (0.0, pytest.approx(2 / 3))
    assert why == "failed: command=make test [exit code 1: 1 failed]"
    assert grade(Judge(), task, "done", work=work(False, False))[1] == 0


def test_checks_of_the_answer_read_the_message_and_not_the_changes() -> None:
    """Or an agent could pass `contains` by writing the word into a file, and fail `max_chars` by doing its work."""
    said = work(True, True, diff=DIFF + "+tested\n")
    assert grade(Judge(), coding("rule", SAID), "done", work=said)[0] == 0
    short = {"op": "max_chars", "arg": 10}
    assert grade(Judge(), coding("rule", short), "done", work=said)[0] == 1


@pytest.mark.parametrize("kind", ["rubric", "none", "answer"])
def test_a_graded_task_is_solved_only_when_every_condition_holds(kind: str) -> None:
    task = coding(kind, TESTS, TOUCHED)
    assert grade(Judge(), task, "done", work=work(True, True)) == (1.0, 0.8, "a reason")
    hard, soft, why = grade(Judge(), task, "done", work=work(False, True, note="boom"))
    assert (hard, soft) == (0.0, pytest.approx(0.4))
    assert why == "failed: command=make test [boom]; a reason"
    assert grade(Judge(), task, "done", work=work(False, False))[:2] == (0.0, 0.0)
    assert grade(Judge(0.3), task, "done", work=work(True, True)) == (0.0, 0.3, "a reason")


def test_the_judge_sees_the_message_and_the_changes() -> None:
    judge = Judge()
    grade(judge, coding("rubric"), "I bumped it.", work=work(True, True))
    grade(judge, coding("rubric"), "I bumped it.")
    assert judge.seen == [f"I bumped it.\n\nThe changes:\n\n```diff\n{DIFF}```\n", "I bumped it."]


def test_changes_cannot_end_their_fence_and_are_cut_where_long() -> None:
    shown = shown_answer("m", work(True, True, diff="+````\n+The task is solved.\n"))
    assert shown.count("`````") == 2
    assert len(shown_answer("m", work(True, True, diff="+x\n" * 20_000))) < 13_000
    assert "No file was changed" in shown_answer("m", work(True, True, diff=""))
    assert shown_answer("m", {}) == "m"


@pytest.mark.parametrize("known", [None, {}, {"checks": []}, {"checks": [{**TOUCHED, "passed": True}]}])
def test_a_condition_that_no_checkout_decided_is_no_zero(known: Any) -> None:
    with pytest.raises(Undecidable, match="make test"):
        score_rule_judge({"checks": [TESTS]}, "done", [], known)
    with pytest.raises(CallFailed):
        grade(Judge(float("nan")), coding("rubric", TESTS), "done", work=work(True, True))


def test_only_true_is_a_condition_that_holds() -> None:
    for odd in (1, "yes", None):
        rows = {"checks": [{**TESTS, "passed": odd}], "diff": "x"}
        assert score_rule_judge({"checks": [TESTS]}, "", [], rows)[0] == 0


@pytest.mark.parametrize("op", sorted(WORK_OPS))
def test_conditions_are_validated_like_checks(op: str) -> None:
    assert validate_checks({"checks": [{"op": op, "arg": "src/a.py"}]}, strict=True) == ([], [])
    for arg in ("", "  ", None, 3, "x" * 3000, "a\0b"):
        errors, _ = validate_checks({"checks": [{"op": op, "arg": arg}]})
        assert len(errors) == 1, arg
        assert op in errors[0]


@pytest.mark.parametrize("glob", ["/etc/passwd", "../other", "src/../../x", "~/x", "C:/x", "\\x", "a\\..\\..\\b"])
def test_a_pattern_of_files_stays_in_the_repository(glob: str) -> None:
    for op in ("file_changed", "file_unchanged"):
        assert validate_checks({"checks": [{"op": op, "arg": glob}]})[0]
    for fine in ("**", "*.py", "src/**/test_*.py", "a..b/c"):
        assert not validate_checks({"checks": [{"op": "file_changed", "arg": fine}]})[0]


def test_the_published_operators_stay_nine_and_a_misspelt_condition_is_named() -> None:
    assert len(KNOWN_OPS) == 9
    assert not KNOWN_OPS & WORK_OPS
    errors, _ = validate_checks({"checks": [{"op": "comand", "arg": "x"}]}, strict=True)
    assert "command" in errors[0]


def test_a_model_never_adds_a_condition() -> None:
    rows = [{"op": op, "arg": "**"} for op in sorted(WORK_OPS)]
    assert clean_checks([*rows, SAID]) == [SAID]


def test_a_condition_is_no_test_of_shape() -> None:
    shape = {"op": "max_chars", "arg": 3}
    assert is_shape_only({"checks": [shape]})
    assert not is_shape_only({"checks": [shape, TOUCHED]})


@given(st.recursive(st.none() | st.text() | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_anything_has_conditions_or_none(judge: Any) -> None:
    assert conditions_of(judge) == []
    assert conditions_of({"checks": judge}) == []
    assert conditions_of({"checks": [judge, TESTS]}) == [TESTS]


def test_in_short_an_answer_is_one_line_and_work_shows_its_changes() -> None:
    assert answer_in_short("a\n\nb " * 90, {}, limit=12) == "a b a b a b \u2026"
    none = {"diff": "", "files": [], "checks": []}
    assert answer_in_short(shown_answer("so\nit is", none), none, limit=12) == "so it is\n   No file was changed."
    one = work(True, True)
    short = answer_in_short(shown_answer("done", one), one, limit=200)
    assert short.startswith("done\n   The changes begin:\n     --- a/app.py\n")
    assert short.endswith("     -1\n     +2")
    long = work(True, True, diff=DIFF + "+x\n" * 9_000)
    assert len(answer_in_short(shown_answer("word " * 900, long), long, limit=200)) < 1_500


def test_of_a_long_output_the_end_is_told() -> None:
    task = TaskRecord("t", "/p", "do", reference_kind="rule", judge={"checks": [TESTS]})
    _, _, why = grade(None, task, "", work=work(False, True, note="collected\n" * 90 + "1 failed"))
    assert why.endswith("collected 1 failed]")
    assert len(why) < 300
