"""The command lines of `skillopt-train` and `skillopt-eval`: parsing only.

Flags come from the table of keys. Nothing heavy is imported, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from skillopt.config.flags import Command, FlagSpec, flag_specs
from skillopt.config.keys import KEYS, SHORT_FLAGS

SPLITS = ("all", "train", "val", "test", "selection", "valid_seen", "valid_unseen")

_TEXTS: Mapping[str, tuple[str, str, str]] = {
    "train": (
        "skillopt-train",
        "Train a skill: keep an edit only when held-out scores rise.",
        "skillopt-train --config FILE [options]\n"
        "       skillopt-train --skill S.md --data D.csv --scorer exact [options]",
    ),
    "eval": (
        "skillopt-eval",
        "Score a skill on a split.",
        "skillopt-eval --config FILE --skill S.md [--split NAME] [options]\n"
        "       skillopt-eval --skill S.md --data D.csv --scorer exact [options]",
    ),
}
_USUAL = (  # in the short help
    *("backend", "target_backend", "optimizer_backend", "target_model", "optimizer_model"),
    *("openai_compatible_base_url", "model_prices", "num_epochs", "batch_size", "edit_budget", "seed", "gate_metric"),
    *("out_root", "split_mode", "split_ratio", "split_dir", "prompt", "system_prompt", "extract", "extract_arg"),
    *("scorer", "scorer_options", "workers", "limit", "budget_max_calls", "budget_max_cost_usd"),
)
_EPILOG = (
    "Order, lowest first: built-in values, environment variables, base files, the file, --cfg-options, flags. "
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped by the budget, 130 interrupted."
)
_GROUPS: Mapping[str, str] = {
    "model": "models and backends",
    "train": "training",
    "gradient": "reflection",
    "optimizer": "edits",
    "evaluation": "gate and test",
    "env": "environment and data",
    "budget": "budget",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """One parsed command line. `flags` holds the given flags by flat or short name, ready for `config.resolve.resolve`.

    `plan` and `yes` are for `train`: only say what the run would take; start it without a question. `skill` and
    `split` are for `eval`: the skill file to score and where.
    """

    config_path: Path | None
    cfg_options: tuple[str, ...] = ()
    flags: Mapping[str, object] = field(default_factory=dict)
    json: bool = False
    plan: bool = False
    yes: bool = False
    skill: Path | None = None
    split: str = "all"


class _Parser(argparse.ArgumentParser):
    """Says which flag may have been meant."""

    def error(self, message: str) -> NoReturn:
        words = message.split()
        hint = ""
        if message.startswith("unrecognized arguments:") and len(words) > 2:
            known = [name for action in self._actions for name in action.option_strings]
            given = words[2].split("=")[0]
            named = [f"--{key.flat}" for key in KEYS if given == f"--{key.name}" and f"--{key.flat}" in known]
            near = named or difflib.get_close_matches(given, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
        super().error(f"{message}{hint} (-h lists the usual flags, --help all)")


class _ShortHelp(argparse.Action):
    """Prints the flags that most runs need, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        command: Command = "eval" if parser.prog == _TEXTS["eval"][0] else "train"
        build_parser(command, usual=True).print_help()
        parser.exit()


def build_parser(command: Command, *, usual: bool = False) -> argparse.ArgumentParser:
    """The parser of one command, with a group of flags for each section and each backend.

    `usual`: only with the flags that most runs need, for the short help.
    """
    prog, description, usage = _TEXTS[command]
    parser = _Parser(
        prog=prog, description=description, usage=usage, epilog=_EPILOG, allow_abbrev=False, add_help=False
    )
    parser.add_argument("-h", action=_ShortHelp, nargs=0, help="Show the usual flags and exit.")
    parser.add_argument("--help", action="help", help="Show every flag and exit.")
    parser.add_argument("--config", metavar="FILE", help="YAML configuration file.")
    parser.add_argument(
        "--cfg-options",
        nargs="*",
        metavar="KEY=VALUE",
        default=[],
        help="Settings by dotted name, e.g. train.seed=1. When repeated, the last list holds.",
    )
    skill = "Skill file to start from (as --skill_init)." if command == "train" else "Skill file to score."
    parser.add_argument("--skill", metavar="FILE", required=command == "eval", help=skill)
    parser.add_argument("--data", metavar="FILE", help="Your own tasks, CSV, JSON or JSON Lines (as --data_path).")
    if command == "eval":
        parser.add_argument("--split", choices=SPLITS, default="all", help="Split to score. Default: all.")
    else:
        parser.add_argument("--plan", action="store_true", help="Only print calls, tokens and price; spend nothing.")
        parser.add_argument("--yes", action="store_true", help="Start without asking, however large the run may get.")
    parser.add_argument("--json", action="store_true", help="Print one JSON document on stdout; the rest on stderr.")
    add_setting_flags(parser, command, usual=usual)
    return parser


def add_setting_flags(parser: argparse.ArgumentParser, command: Command, *, usual: bool = False) -> None:
    """Add the flags of the settings, a group for each section and each backend; `given_flags` reads them."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for spec in flag_specs(command):
        if usual and spec.name not in _USUAL:
            continue
        title = _GROUPS.get(spec.group, spec.group)
        if spec.hidden:
            parser.add_argument(f"--{spec.name}", dest=_dest(spec), type=_reader(spec), help=argparse.SUPPRESS)
            continue
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add_flag(groups[title], spec)


def add_training_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a training, for a command that looks at one; `training_flags` reads them."""
    parser.add_argument("--skill", dest="flag:skill", metavar="FILE", help="Skill file to start from.")
    parser.add_argument("--data", dest="flag:data", metavar="FILE", help="Your own tasks (as --data_path).")
    add_setting_flags(parser, "train")


def training_flags(known: Mapping[str, object]) -> dict[str, object]:
    """The flags of a training by name; without a configuration file, data mean the environment `jsonl`."""
    flags = given_flags(known)
    if known.get("config") is None and flags.keys() & {"data", "data_path"}:
        flags.setdefault("env", "jsonl")
    return flags


def given_flags(known: Mapping[str, object]) -> dict[str, object]:
    """The flags that a parsed command line gave, by flat name."""
    flags = {name.removeprefix("flag:"): value for name, value in known.items() if name.startswith("flag:")}
    return {name: value for name, value in flags.items() if value is not None}


def _dest(spec: FlagSpec) -> str:
    return f"flag:{spec.key.flat_name if spec.key else spec.name}"


def _add_flag(group: argparse._ArgumentGroup, spec: FlagSpec) -> None:
    help_text = spec.help.replace("%", "%%")
    metavar = spec.metavar.replace("%", "%%")
    group.add_argument(f"--{spec.name}", dest=_dest(spec), type=_reader(spec), metavar=metavar, help=help_text)


def _reader(spec: FlagSpec) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return spec.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def parse(command: Command, argv: Sequence[str] | None = None) -> Parsed:
    """Parse a command line. Wrong usage ends the process with exit code 2, as argparse does."""
    parser = build_parser(command)
    known = vars(parser.parse_args(argv))
    flags = given_flags(known)
    _add_short_forms(parser, command, known, flags)
    return Parsed(
        config_path=Path(known["config"]) if known["config"] else None,
        cfg_options=tuple(known["cfg_options"]),
        flags=flags,
        json=known["json"],
        plan=known.get("plan", False),
        yes=known.get("yes", False),
        skill=Path(known["skill"]) if command == "eval" else None,
        split=known.get("split", "all"),
    )


def _add_short_forms(
    parser: argparse.ArgumentParser, command: Command, known: Mapping[str, object], flags: dict[str, object]
) -> None:
    """Add `--skill` and `--data`, settings as well; without a file, data mean the environment `jsonl`."""
    for short, name in SHORT_FLAGS.items():
        if known[short] is None or (short, command) == ("skill", "eval"):  # there, the skill to score
            continue
        if name in flags:
            parser.error(f"--{short} and --{name} are the same setting; give one of them")
        flags[short] = known[short]
    if known["config"]:
        return
    if flags.keys() & {"data", "data_path"}:
        flags.setdefault("env", "jsonl")
    elif "env" not in flags:
        needed = "--skill S.md --data D.csv --scorer NAME" if command == "train" else "--data D.csv --scorer NAME"
        parser.error(f"give a configuration with --config FILE, or your own data with {needed}")
