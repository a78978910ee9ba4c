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
        _end()
    except KeyboardInterrupt:
        _end()
        sys.stderr.write("skillopt: interrupted before anything was started.\n")
        code = _INTERRUPTED
    return code


def _end() -> None:
    """Let the process end with its exit code, whatever interrupts come now or were caught before.

    An interrupt that leaves an `exec` of text, with which data classes are made, marks the interpreter: a program that
    was started with `-m` then ends by the signal. The next `exec` of text takes the mark away.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exec("")
