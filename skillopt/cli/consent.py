"""The question before a run that may become large. It is asked before anything is spent, on a terminal only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillopt.errors import ConfigError

if TYPE_CHECKING:
    from skillopt.config.run_config import RunConfig
    from skillopt.engine.consent import Excess


def may_start(config: RunConfig) -> bool:
    """Whether to start the run; asks when it may exceed a limit, and says what becomes of a no.

    Where nobody can be asked, a run goes on with a notice when nobody set the limit, and ConfigError is raised when
    somebody did. A run that goes on where it was stopped was answered when it began.
    """
    from skillopt.engine.consent import excess_of, was_answered

    excess = None if was_answered(config) else excess_of(config)
    if excess is None:
        return True
    said = _estimate(excess)
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        print(f"{said} Start? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if answer.strip().lower() in ("y", "yes"):
            return True
        print("" if answer else "\n", end="", file=sys.stderr)  # the end of the input leaves the line open
        print("skillopt: not started; nothing was spent.", file=sys.stderr)
        return False
    if excess.chosen:
        raise ConfigError(
            f"{excess.source}: {said} There is no terminal to ask on; add --yes to start it, or raise "
            f"budget.{excess.name}."
        )
    print(
        f"skillopt: {said} It starts, as there is no terminal to ask on; budget.max_calls limits it.", file=sys.stderr
    )
    return True


def _estimate(excess: Excess) -> str:
    from skillopt.cli.report import dollars, role_total

    total = excess.plan.cost_usd
    roles = "; ".join(role_total(name, role) for name, role in excess.paid.items())
    price = "price unknown" if total is None else f"price {dollars(total[0], total[1])}"
    return f"This run may take {roles}; {price}. That is above budget.{excess.name} = {excess.limit:g}."
