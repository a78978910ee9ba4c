"""`python -m skillopt_sleep` is the console script `skillopt-sleep`.

Imports next to nothing before the `try`, so that an interrupt is one line and exit code 130 from the first import on.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """The command `skillopt-sleep`; returns the exit code."""
    try:
        from skillopt_sleep.cli import main as command

        return command()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends here; a second one changes nothing
        sys.stderr.write("skillopt-sleep: interrupted before anything was started.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
