"""Finds what is wrong with a rule judge before anything is scored by it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skillopt_sleep.judges.checks import BOUND_OPS, KNOWN_OPS, SHAPE_OPS, TEXT_OPS, char_bound
from skillopt_sleep.judges.pattern import regex_problem
from skillopt_sleep.judges.work import WORK_OPS, condition_problem
from skillopt_sleep.nearest import suggestion

SHAPE_ONLY = "all checks test the shape of the answer; an answer can pass with wrong content"


def validate_checks(judge: Any, *, strict: bool = False) -> tuple[list[str], list[str]]:
    """(errors, warnings) of a rule judge; a missing judge and one without checks are sound.

    `strict` makes errors of what can score nothing: an unknown operator, and a judge without checks.
    """
    if judge is not None and not isinstance(judge, dict):
        return [f"the judge must be an object, not {type(judge).__name__}"], []
    checks = (judge or {}).get("checks", [])
    if not isinstance(checks, list):
        return [f"`checks` must be a list, not {type(checks).__name__}"], []
    errors: list[str] = []
    warnings: list[str] = []
    if strict and not checks:
        errors.append("it has no checks, so every answer would score 0")
    for number, check in enumerate(checks, start=1):
        problem, warning = _problem(check, strict=strict)
        errors += [f"check {number}: {problem}"] if problem else []
        warnings += [f"check {number}: {warning}"] if warning else []
    if not errors and is_shape_only(judge):
        warnings.append(SHAPE_ONLY)
    return errors, warnings


def is_shape_only(judge: Any) -> bool:
    """True when a judge has checks and all of them test only the shape of an answer."""
    checks = judge.get("checks") if isinstance(judge, dict) else None
    if not isinstance(checks, list) or not checks:
        return False
    return all(isinstance(check, dict) and check.get("op") in SHAPE_OPS for check in checks)


def clean_checks(rows: Any) -> list[dict[str, Any]]:
    """The usable checks among what a model wrote, in their own form.

    Texts lose the blanks at their ends, except patterns; bounds become whole numbers; `no_refusal` has no argument.
    Whatever is not sound is left out, so the result always passes `validate_checks`. Conditions on work in a checkout
    are left out too: what runs on this machine, and what a change must touch, is never up to a model.
    """
    found = (_cleaned(row) for row in rows) if isinstance(rows, list) else ()
    return [check for check in found if check is not None]


def errors_of(judges: Iterable[tuple[str, Any]]) -> tuple[list[str], list[str]]:
    """(errors, warnings) of the rule judges of several tasks (`(task id, judge)`), each line naming its task."""
    errors: list[str] = []
    warnings: list[str] = []
    for task_id, judge in judges:
        wrong, odd = validate_checks(judge, strict=True)
        errors += [f"task {task_id}: {line}" for line in wrong]
        warnings += [f"task {task_id}: {line}" for line in odd]
    return errors, warnings


def _cleaned(row: Any) -> dict[str, Any] | None:
    op = row.get("op") if isinstance(row, dict) else None
    if not isinstance(op, str) or op not in KNOWN_OPS:
        return None
    arg: Any = None if op == "no_refusal" else row.get("arg")
    if isinstance(arg, str) and op in TEXT_OPS and op != "regex":
        arg = arg.strip()
    if op in BOUND_OPS:
        try:
            arg = char_bound(arg)
        except ValueError:
            return None
    check = {"op": op, "arg": arg}
    return None if _problem(check, strict=True)[0] else check


def _problem(check: Any, *, strict: bool) -> tuple[str, str]:
    """(error, warning) of one check."""
    op = check.get("op") if isinstance(check, dict) else None
    if not isinstance(check, dict):
        return f"it must be an object, not {type(check).__name__}", ""
    if not isinstance(op, str):
        return "`op` must be a text", ""
    if op in WORK_OPS:
        return condition_problem(op, check.get("arg")), ""
    if op not in KNOWN_OPS:
        words = f"unknown operator {op!r}{suggestion(op, KNOWN_OPS | WORK_OPS)}"
        return (words, "") if strict else ("", words)
    if op in BOUND_OPS:
        return _bound_problem(op, check.get("arg"))
    return (_text_problem(op, check.get("arg")) if op in TEXT_OPS else ""), ""


def _bound_problem(op: str, arg: Any) -> tuple[str, str]:
    try:
        bound = char_bound(arg)
    except ValueError as error:
        return f"{op}: {error}", ""
    if bound < 0:
        return f"{op}: {bound} is negative", ""
    return "", "min_chars 0 holds for every answer" if op == "min_chars" and bound == 0 else ""


def _text_problem(op: str, arg: Any) -> str:
    if not isinstance(arg, str) or not arg.strip():
        return f"{op} needs a text that is not blank"
    problem = regex_problem(arg) if op == "regex" else ""
    return f"regex {arg[:80]!r} is invalid {problem}" if problem else ""
