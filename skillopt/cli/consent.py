"""The question before a run that may become large. It is asked before anything is spent, on a terminal only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillopt.errors import ConfigError, InterruptedRunError

if TYPE_CHECKING:
    from skillopt.config.run_config import RunConfig
    from skillopt.engine.consent import Excess

_NOT_STARTED = "not started; nothing was spent."


def may_start(config: RunConfig) -> bool:
    """Whether to start the run; asks when it may exceed a limit, and says what becomes of a no.

    Where nobody can be asked, a run goes on with a notice when nobody set the limit, and ConfigError is raised when
    somebody did; InterruptedRunError for Ctrl-C. A run that goes on where it was stopped was answered when it began.
    """
    from skillopt.engine.consent import excess_of, was_answered

    excess = None if was_answered(config) else excess_of(config)
    if excess is None:
        return True
    said = _estimate(excess)
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        return _ask(said)
    if excess.chosen:
        raise ConfigError(
            f"{excess.source}: {said} There is no terminal to ask on; add --yes to start it, or raise "
            f"budget.{excess.name}."
        )
    print(
        f"skillopt: {said} It starts, as there is no terminal to ask on; budget.max_calls limits it.", file=sys.stderr
    )
    return True


def _ask(said: str) -> bool:
    print(f"{said} Start? [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise InterruptedRunError(_NOT_STARTED) from None
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("" if answer else "\n", end="", file=sys.stderr)  # the end of the input leaves the line open
    print(f"skillopt: {_NOT_STARTED}", file=sys.stderr)
    return False


def _estimate(excess: Excess) -> str:
    """What the run takes at most, in two sentences. `--plan` says all of it."""
    from skillopt.cli.report import dollars
    from skillopt.tracking.console import plain

    total = excess.plan.cost_usd
    calls = {
        name: "an unknown number of" if role.calls is None else f"{role.calls.high:,}"
        for name, role in excess.paid.items()
    }
    roles = " and ".join(f"{calls[name]} calls of {plain(role.model)} ({name})" for name, role in excess.paid.items())
    price = "at an unknown price" if total is None else f"for up to {dollars(total[1], total[1])}"
    return (
        f"This run may make up to {roles}, {price}. That is above budget.{excess.name} = {excess.limit:,.10g} "
        "(--plan tells more)."
    )
