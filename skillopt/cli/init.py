"""`skillopt init`: things to start from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TextIO

from skillopt.cli.common import DONE, add_json_option, print_json


def add_init_parser(verbs: Any) -> None:
    """Add the verb `init` and what can be started."""
    init = verbs.add_parser("init", help="write something to start from")
    nouns = init.add_subparsers(required=True, metavar="WHAT")
    env = nouns.add_parser("env", help="an environment of your own: code, prompts, data, configuration and tests")
    env.add_argument("name", metavar="NAME", help="of the environment and its package, as in my_task")
    env.add_argument("--dir", type=Path, default=None, metavar="DIR", help="folder to make; default: NAME")
    add_json_option(env)
    env.set_defaults(action=_env)


def _env(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.envs.scaffold import class_name, write_env

    folder = args.dir or Path(args.name)
    written = write_env(args.name, folder)
    if args.json:
        print_json({"folder": folder.as_posix(), "files": [path.as_posix() for path in written]}, out)
        return DONE
    out.write("".join(f"{path}\n" for path in written))
    out.write(f"Next, in {folder}: python -m pytest -q; skillopt-train --config offline.yaml\n")
    out.write(
        f"The environment's name is {args.name}.adapter:{class_name(args.name)}; README.md says what to change.\n"
    )
    return DONE
