"""`skillopt-train`: train a skill from a configuration file, or from a skill and a data file alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from skillopt.cli.arguments import parse
from skillopt.cli.common import DONE, arguments, console, interruptible, print_json, run


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parsed = parse("train", arguments(argv))

    def command(out: TextIO) -> int:
        from skillopt.cli.report import train_report
        from skillopt.config.resolve import resolve
        from skillopt.engine.trainer import train

        config = resolve(parsed.config_path, cfg_options=parsed.cfg_options, flags=parsed.flags, command="train")
        with interruptible() as stop:
            summary = train(config, sinks=[console()], stop=stop)
        if parsed.json:
            print_json(summary, out)
        else:
            out.write(train_report(summary, config.env.out_root))
        return DONE

    return run(command)


if __name__ == "__main__":
    sys.exit(main())
