"""Train a skill; the same as the command `skillopt-train`."""

from skillopt.cli.start import train

if __name__ == "__main__":
    raise SystemExit(train())
