"""`skillopt-eval`: score one skill on a split of a data set."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from skillopt.cli.arguments import parse
from skillopt.cli.common import DONE, arguments, console, interruptible, print_json, resumable, run


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parsed = parse("eval", arguments(argv))

    def command(out: TextIO) -> int:
        from skillopt import api
        from skillopt.cli.report import eval_report
        from skillopt.config.resolve import resolve

        config = resolve(parsed.config_path, cfg_options=parsed.cfg_options, flags=parsed.flags, command="eval")
        with resumable(config), interruptible() as stop:
            skill = Path(str(parsed.skill))
            summary = api.evaluate(skill, config, split=parsed.split, sinks=[console()], stop=stop)
        if parsed.json:
            print_json(summary, out)
        else:
            out.write(eval_report(summary, config.env.out_root))
        return DONE

    return run(command)


if __name__ == "__main__":
    sys.exit(main())
