"""Where the console commands begin: an interrupt is one line and exit code 130 from the first import on.

Imports next to nothing itself; everything else is loaded inside the `try`.
"""

from __future__ import annotations

import importlib
import signal
import sys

_INTERRUPTED = 130


def skillopt() -> int:
    """The command `skillopt`."""
    return _main_of("skillopt.cli.main")


def train() -> int:
    """The command `skillopt-train`."""
    return _main_of("skillopt.cli.train")


def evaluate() -> int:
    """The command `skillopt-eval`."""
    return _main_of("skillopt.cli.evaluate")


def _main_of(module: str) -> int:
    try:
        code: int = importlib.import_module(module).main()
        return code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends here; a second one changes nothing
        sys.stderr.write("skillopt: interrupted before anything was started.\n")
        return _INTERRUPTED
