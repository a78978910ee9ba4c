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
from typing import Any, TextIO

from skillopt.cli.common import DONE, add_cfg_options, add_json_option, arguments, print_json, run


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
    from skillopt.cli.data import add_data_parser
    from skillopt.cli.init import add_init_parser

    parser = argparse.ArgumentParser(prog="skillopt", description="Look into SkillOpt runs and configurations.")
    parser.add_argument("--version", action="version", version=f"skillopt {skillopt.__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    _add_show(verbs)
    _add_calibrate(verbs)
    _add_doctor(verbs)
    add_data_parser(verbs)
    add_init_parser(verbs)
    _add_config(verbs)
    return parser


def _add_show(verbs: Any) -> None:
    parser = verbs.add_parser("show", help="what a run did, or everything kept about one item")
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("item", nargs="?", metavar="ITEM", help="id of an item")
    add_json_option(parser)
    parser.set_defaults(action=_show)


def _show(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.show import show_item, show_run

    if args.item is None:
        return show_run(args.run, out, as_json=args.json)
    return show_item(args.run, args.item, out, as_json=args.json)


def _add_calibrate(verbs: Any) -> None:
    parser = verbs.add_parser("calibrate", help="run the initial skill twice: noise, and false accepts of the gate")
    parser.add_argument("--config", type=Path, required=True, help="a YAML file")
    add_cfg_options(parser)
    add_json_option(parser)
    parser.set_defaults(action=_calibrate)


def _calibrate(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.calibrate import calibrate_command

    return calibrate_command(args.config, args.cfg_options, out, as_json=args.json)


def _add_doctor(verbs: Any) -> None:
    from skillopt.cli.arguments import add_training_flags

    parser = verbs.add_parser("doctor", help="what would stop a run, and the command or variable that mends it")
    parser.add_argument("--config", type=Path, default=None, help="a YAML file; without one, the installation")
    add_cfg_options(parser)
    parser.add_argument("--offline", action="store_true", help="make no live call")
    add_json_option(parser)
    add_training_flags(parser)
    parser.set_defaults(action=_doctor)


def _doctor(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.arguments import training_flags
    from skillopt.cli.doctor import doctor_command

    given = (args.cfg_options, training_flags(vars(args)))
    return doctor_command(args.config, *given, out, offline=args.offline, as_json=args.json)


def _add_config(verbs: Any) -> None:
    from skillopt.cli.arguments import add_training_flags

    config = verbs.add_parser("config", help="the configuration's schema, or its effective values")
    nouns = config.add_subparsers(required=True, metavar="WHAT")
    nouns.add_parser("schema", help="print a JSON schema for editors").set_defaults(action=_config_schema)
    parser = nouns.add_parser("show", help="print every effective setting and where it came from")
    parser.add_argument("--config", type=Path, default=None, help="a YAML file")
    add_cfg_options(parser)
    parser.add_argument("--command", choices=("train", "eval"), default="train", help="as which command reads it")
    add_json_option(parser)
    add_training_flags(parser)
    parser.set_defaults(action=_config_show)


def _config_schema(_: argparse.Namespace, out: TextIO) -> int:
    from skillopt.config.schema import json_schema

    print_json(json_schema(), out)
    return DONE


def _config_show(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.arguments import training_flags
    from skillopt.cli.config_show import show_config
    from skillopt.config.resolve import resolve

    flags = training_flags(vars(args))
    config = resolve(args.config, cfg_options=args.cfg_options, flags=flags, command=args.command)
    return show_config(config, out, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
