"""Score a skill; the same as the command `skillopt-eval`."""

from skillopt.cli.start import evaluate

if __name__ == "__main__":
    raise SystemExit(evaluate())
