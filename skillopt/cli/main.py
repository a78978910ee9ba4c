"""`skillopt`: look into runs and configurations, make data and environments.

skillopt show RUN [ITEM]          what a run did; everything kept about one item
skillopt calibrate --config F     how noisy the target is, and how often the gate would accept by chance
skillopt doctor [--config F]      what would stop a run, and what mends it
skillopt data materialize NAME    splits of a benchmark from its public data (also: manifest, check, samples)
skillopt init env NAME            an environment of your own to start from
skillopt config schema            JSON schema of the configuration, for editors
skillopt config show --config F   every effective setting and where it came from
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from skillopt.cli.common import DONE, arguments, print_json, run


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    args = build_parser().parse_args(arguments(argv))

    def command(out: TextIO) -> int:
        code: int = args.action(args, out)
        return code

    return run(command)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all verbs."""
    import skillopt
    from skillopt.cli.arguments import add_training_flags
    from skillopt.cli.data import add_data_parser
    from skillopt.cli.init import add_init_parser

    parser = argparse.ArgumentParser(prog="skillopt", description="Look into SkillOpt runs and configurations.")
    parser.add_argument("--version", action="version", version=f"skillopt {skillopt.__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    show = verbs.add_parser("show", help="what a run did, or everything kept about one item")
    show.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    show.add_argument("item", nargs="?", metavar="ITEM", help="id of an item")
    show.add_argument("--json", action="store_true", help="one JSON document on standard output")
    show.set_defaults(action=_show)
    calibrate = verbs.add_parser("calibrate", help="run the initial skill twice: noise, and false accepts of the gate")
    calibrate.add_argument("--config", type=Path, required=True, help="a YAML file")
    calibrate.add_argument("--cfg-options", nargs="*", default=[], metavar="KEY=VALUE")
    calibrate.add_argument("--json", action="store_true", help="one JSON document on standard output")
    calibrate.set_defaults(action=_calibrate)
    doctor = verbs.add_parser("doctor", help="what would stop a run, and the command or variable that mends it")
    doctor.add_argument("--config", type=Path, default=None, help="a YAML file; without one, the installation")
    doctor.add_argument("--cfg-options", nargs="*", default=[], metavar="KEY=VALUE")
    doctor.add_argument("--offline", action="store_true", help="make no live call")
    doctor.add_argument("--json", action="store_true", help="one JSON document on standard output")
    add_training_flags(doctor)
    doctor.set_defaults(action=_doctor)
    add_data_parser(verbs)
    add_init_parser(verbs)
    config = verbs.add_parser("config", help="the configuration's schema, or its effective values")
    nouns = config.add_subparsers(required=True, metavar="WHAT")
    schema = nouns.add_parser("schema", help="print a JSON schema for editors")
    schema.set_defaults(action=_schema)
    values = nouns.add_parser("show", help="print every effective setting and where it came from")
    values.add_argument("--config", type=Path, default=None, help="a YAML file")
    values.add_argument("--cfg-options", nargs="*", default=[], metavar="KEY=VALUE")
    values.add_argument("--command", choices=("train", "eval"), default="train", help="as which command reads it")
    values.add_argument("--json", action="store_true", help="one JSON document on standard output")
    add_training_flags(values)
    values.set_defaults(action=_values)
    return parser


def _schema(_: argparse.Namespace, out: TextIO) -> int:
    from skillopt.config.schema import json_schema

    print_json(json_schema(), out)
    return DONE


def _values(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.arguments import training_flags
    from skillopt.cli.config_show import show_config
    from skillopt.config.resolve import resolve

    flags = training_flags(vars(args))
    config = resolve(args.config, cfg_options=args.cfg_options, flags=flags, command=args.command)
    return show_config(config, out, as_json=args.json)


def _calibrate(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.calibrate import calibrate_command

    return calibrate_command(args.config, args.cfg_options, out, as_json=args.json)


def _doctor(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.arguments import training_flags
    from skillopt.cli.doctor import doctor_command

    given = (args.cfg_options, training_flags(vars(args)))
    return doctor_command(args.config, *given, out, offline=args.offline, as_json=args.json)


def _show(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.show import show_item, show_run

    if args.item is None:
        return show_run(args.run, out, as_json=args.json)
    return show_item(args.run, args.item, out, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
