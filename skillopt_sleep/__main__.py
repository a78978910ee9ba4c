"""`python -m skillopt_sleep` is the console script `skillopt-sleep`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from skillopt_sleep.cli import main

    sys.exit(main())
