"""Errors: exit codes and the words of failure documents."""

from __future__ import annotations

import pytest

from skillopt_sleep import errors


@pytest.mark.parametrize(
    ("error", "exit_code", "code"),
    [
        (errors.SleepError("x"), 1, "sleep_failed"),
        (errors.UsageProblem("x"), 2, "usage"),
        (errors.StagingError("x"), 1, "staging_refused"),
        (errors.CallFailed("x", kind="rate"), 1, "backend_failed"),
        (errors.BudgetSpent("x", limit="calls"), 1, "budget_spent"),
        (errors.StateBroken("x"), 1, "state_broken"),
        (errors.NightBusy("x"), 2, "night_busy"),
        (errors.PendingCalls({"k": {}}), 3, "handoff_pending"),
    ],
)
def test_exit_codes(error: errors.SleepError, exit_code: int, code: str) -> None:
    assert (error.exit_code, error.code) == (exit_code, code)
    assert isinstance(error, errors.SleepError)


def test_details_travel_with_errors() -> None:
    first = OSError("disk")
    recovery = errors.StagingRecoveryError("x", primary=first, recovery_errors=["a"])
    assert isinstance(recovery, ValueError)
    assert (recovery.primary, recovery.recovery_errors) == (first, ("a",))
    assert errors.PendingCalls({"k": {"prompt": "p"}}).pending == {"k": {"prompt": "p"}}
    assert [errors.CallFailed("x", kind=kind).fatal for kind in ("auth", "setup", "transient")] == [True, True, False]
