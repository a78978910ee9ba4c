"""Train a skill; the same as the command `skillopt-train`."""

from skillopt.cli.train import main

if __name__ == "__main__":
    raise SystemExit(main())
