"""Scores an answer by the checks of a rule judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillopt_sleep.judges.checks import CheckResult, run_check

ALL_PASSED = "all checks passed"
NO_CHECKS = "the judge has no checks"


def score_rule_judge(
    judge: Any, response: str, tools_called: Sequence[str] | None = None, work: Mapping[str, Any] | None = None
) -> tuple[float, float, str]:
    """(hard, soft, rationale): hard is 1 when all checks hold, soft is the share that holds; no checks score 0, 0.

    `tools_called`: names of tools whose call was recorded; without a record none counts as called. `work`:
    what the attempt changed in a checkout (`ReplayResult.work`). The rationale lists the checks that failed as
    `failed: op=arg, ...`. Raises Undecidable for an unknown operator, a slow pattern, and a condition without outcome.
    """
    checks = checks_of(judge)
    if not checks:
        return 0.0, 0.0, NO_CHECKS
    failed = [one for one in (run_check(check, response, tools_called, work) for check in checks) if not one.passed]
    if not failed:
        return 1.0, 1.0, ALL_PASSED
    return 0.0, 1 - len(failed) / len(checks), told(failed)


def told(failed: Sequence[CheckResult]) -> str:
    """The checks that failed, as the rationale lists them."""
    return "failed: " + ", ".join(_told(result) for result in failed)


def checks_of(judge: Any) -> list[Any]:
    """The checks of a judge; [] when it is no object or has no list of checks."""
    checks = judge.get("checks") if isinstance(judge, dict) else None
    return checks if isinstance(checks, list) else []


def required_tools(judge: Any) -> list[str]:
    """The tools that a rule judge wants called, each once, in order."""
    found = (check for check in checks_of(judge) if isinstance(check, dict) and check.get("op") == "tool_called")
    names = (check.get("arg") for check in found)
    return list(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))


def _told(result: CheckResult) -> str:
    return f"{result.label} [{result.note}]" if result.note else result.label
