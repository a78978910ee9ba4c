"""The night: from the sessions of a day to a proposal that a person can adopt. The lists below are its phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillopt_sleep import evidence, staging
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.errors import BudgetSpent, NightBusy, PendingCalls, SleepError, StateBroken
from skillopt_sleep.locks import night_lock
from skillopt_sleep.phases.closing import decide
from skillopt_sleep.phases.coding import close_workshop
from skillopt_sleep.phases.context import Clock, Night, handoff_in
from skillopt_sleep.phases.ending import LAST_FAILURE, carry_out, record_failure
from skillopt_sleep.phases.gathering import find_tasks, gather_sessions
from skillopt_sleep.phases.learning import learn, learn_named_skills, measure_test
from skillopt_sleep.phases.opening import open_night, utc_now
from skillopt_sleep.state import SleepState
from skillopt_sleep.types import CycleOutcome, TaskRecord

Phase = Callable[[Night], None]

GLANCE_SECONDS = 0.3
"""How long a night waits for the lock: longer than a glance of `status`, far shorter than a night."""

PHASES: tuple[Phase, ...] = (
    gather_sessions,
    find_tasks,
    learn,
    learn_named_skills,
    measure_test,
)
"""What comes to the decision. After it, `carry_out` stages, moves the cursor, saves the state, adopts and tidies up."""


def run_sleep_cycle(
    cfg: SleepConfig | None = None,
    *,
    seed_tasks: Sequence[TaskRecord] | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
    backend: Any = None,
    assigned: bool = False,
) -> CycleOutcome:
    """One night. With `seed_tasks` nothing is harvested and no cursor moves; `dry_run` stages and saves nothing.

    A night that was killed goes on as the same night and pays for nothing twice. A spent budget ends the night with a
    report of what there is. `clock` gives the time of day (UTC), `backend` answers instead of the configured one.
    `assigned`: no person wrote the splits of `seed_tasks`, so they may change as those of a harvested night do.

    Raises NightBusy, UsageProblem, StateBroken, StagingError, CallFailed of a fatal kind, and PendingCalls, whose
    prompts are then on disk; nothing is scored, counted or staged before all of them are answered.
    """
    config = cfg if cfg is not None else load_config()
    with night_lock(config.state_dir, wait=GLANCE_SECONDS):
        found = staging.recover(config.project, cfg=config)
        while True:
            night = _opened(config, seed_tasks, dry_run=dry_run, clock=clock or utc_now, backend=backend)
            night.assigned = assigned
            night.report.notes += [one.message for one in found if one.status == "blocked"]
            outcome = _guarded(night)
            if not night.outdated:
                return outcome


def _guarded(night: Night) -> CycleOutcome:
    """All of a night; one that fails is closed, one that only has to wait stays open."""
    try:
        return _through(night)
    except (NightBusy, StateBroken, OSError):
        raise  # the night stays open and goes on when that is mended
    except PendingCalls:
        _show_prompts(night)
        raise
    except Exception as error:
        record_failure(night, error)
        raise
    finally:
        close_workshop(night)
        evidence.attach(night.backend, None)


def _opened(
    config: SleepConfig, seed: Sequence[TaskRecord] | None, *, dry_run: bool, clock: Clock, backend: Any
) -> Night:
    try:
        return open_night(config, seed=seed, dry_run=dry_run, clock=clock, backend=backend)
    except (NightBusy, StateBroken):
        raise
    except SleepError as error:
        if not dry_run:
            _leave_word(config, error, clock)
        raise


def _through(night: Night) -> CycleOutcome:
    journal = night.journal
    if journal is None or journal.closing is None:
        _learn(night)
        closing = decide(night)
        if journal is None:
            night.record("cycle", "end", outcome=night.report.status, night=night.report.night, dry_run=True)
            return CycleOutcome(night.report)
        journal.closing = closing
        journal.write()
    return carry_out(night)


def _learn(night: Night) -> None:
    """All phases up to the decision; a spent budget ends them."""
    try:
        for phase in PHASES:
            if not night.over:
                phase(night)
                _heartbeat(night)
    except BudgetSpent as spent:
        night.stopped = spent.limit or "budget"
        night.note(f"The night ended early: {spent}")


def _heartbeat(night: Night) -> None:
    """Note how long the night has worked, for the caps of a run that goes on."""
    meter = getattr(night.backend, "meter", None)
    if night.journal is not None and meter is not None:
        night.journal.minutes = float(meter.minutes)
        night.journal.write()


def _show_prompts(night: Night) -> None:
    handoff = handoff_in(night.backend)
    if handoff is not None:
        handoff.flush_pending()


def _leave_word(config: SleepConfig, error: SleepError, clock: Clock) -> None:
    """A night that could not even begin is seen in `status` the next morning."""
    state = SleepState.load(config.state_path)
    row = {"night": None, "at": clock().timestamp(), "message": str(error), "error": error.code}
    state.set_note(config.project, LAST_FAILURE, row)
    state.save()
