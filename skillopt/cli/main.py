"""`skillopt`: look into runs and configurations.

skillopt show RUN [ITEM]          what a run did; everything kept about one item
skillopt calibrate --config F     how noisy the target is, and how often the gate would accept by chance
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
    args = _parser().parse_args(arguments(argv))

    def command(out: TextIO) -> int:
        code: int = args.action(args, out)
        return code

    return run(command)


def _parser() -> argparse.ArgumentParser:
    import skillopt

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
    config = verbs.add_parser("config", help="the configuration's schema, or its effective values")
    nouns = config.add_subparsers(required=True, metavar="WHAT")
    schema = nouns.add_parser("schema", help="print a JSON schema for editors")
    schema.set_defaults(action=_schema)
    values = nouns.add_parser("show", help="print every effective setting and where it came from")
    values.add_argument("--config", type=Path, default=None, help="a YAML file")
    values.add_argument("--cfg-options", nargs="*", default=[], metavar="KEY=VALUE")
    values.set_defaults(action=_values)
    return parser


def _schema(_: argparse.Namespace, out: TextIO) -> int:
    from skillopt.config.schema import json_schema

    print_json(json_schema(), out)
    return DONE


def _values(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.config.keys import is_secret
    from skillopt.config.providers import PROVIDERS
    from skillopt.config.resolve import resolve
    from skillopt.utils.redact import hide_in_addresses

    config = resolve(args.config, cfg_options=args.cfg_options, flags={}, command="train")
    for key, value in config.public().items():
        if is_secret(key):
            out.write(f"{key}: {value}\n")
        else:
            out.write(f"{key}: {value!r}  # {config.source(key)}\n")
    for role, settings in config.roles.items():
        for field in PROVIDERS[settings.backend].fields:
            value = settings.settings.get(field.name)
            if value not in (None, "") and not field.secret:
                shown = repr(hide_in_addresses(value) if isinstance(value, str) else value)
                out.write(f"{role}.{field.name}: {shown}  # {config.source(f'{role}.{field.name}')}\n")
    return DONE


def _calibrate(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.calibrate import calibrate_command

    return calibrate_command(args.config, args.cfg_options, out, as_json=args.json)


def _show(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.show import show_item, show_run

    if args.item is None:
        return show_run(args.run, out, as_json=args.json)
    return show_item(args.run, args.item, out, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
