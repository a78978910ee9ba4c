"""Score a skill; the same as the command `skillopt-eval`."""

from skillopt.cli.evaluate import main

if __name__ == "__main__":
    raise SystemExit(main())
