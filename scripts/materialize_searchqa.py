"""Make the splits of SearchQA; the same as `skillopt data materialize searchqa`."""

import sys

from skillopt.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["data", "materialize", "searchqa", *sys.argv[1:]]))
