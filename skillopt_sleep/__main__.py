"""`python -m skillopt_sleep` is the console script `skillopt-sleep`.

Imports next to nothing before the `try`, so that an interrupt is one line and exit code 130 from the first import on.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """The command `skillopt-sleep`; returns the exit code. From then on interrupts change nothing: the process ends."""
    try:
        from skillopt_sleep.cli import main as command

        code = command()
        _end()
    except KeyboardInterrupt:
        _end()
        sys.stderr.write("skillopt-sleep: interrupted before anything was started.\n")
        code = 130
    return code


def _end() -> None:
    """Let the process end with its exit code, whatever interrupts come now or were caught before.

    An interrupt that leaves an `exec` of text, with which data classes are made, marks the interpreter: a program that
    was started with `-m` then ends by the signal. The next `exec` of text takes the mark away.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exec("")


if __name__ == "__main__":
    sys.exit(main())
