"""`skillopt-train`: train a skill from a configuration file, or from a skill and a data file alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from skillopt.cli.arguments import parse
from skillopt.cli.common import DONE, FAILED, arguments, console, interruptible, print_json, resumable, run

if TYPE_CHECKING:
    from skillopt.types import JsonObject


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parsed = parse("train", arguments(argv))

    def command(out: TextIO) -> int:
        from skillopt import api
        from skillopt.cli.consent import may_start
        from skillopt.cli.report import plan_report, train_report
        from skillopt.config.resolve import resolve

        config = resolve(parsed.config_path, cfg_options=parsed.cfg_options, flags=parsed.flags, command="train")
        if parsed.plan:
            plan = api.plan(config)
            return _show(plan.to_dict(), plan_report(plan), out, as_json=parsed.json)
        if not parsed.yes and not may_start(config):
            return FAILED
        with resumable(config), interruptible() as stop:
            trained = api.train(config, sinks=[console()], stop=stop)
        report = "" if parsed.json else train_report(trained.summary, str(trained.out_root))
        return _show(trained.summary, report, out, as_json=parsed.json)

    return run(command)


def _show(document: JsonObject, report: str, out: TextIO, *, as_json: bool) -> int:
    if as_json:
        print_json(document, out)
    else:
        out.write(report)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
