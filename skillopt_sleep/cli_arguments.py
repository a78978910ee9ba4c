"""The command line: its actions, its flags, and the settings that the flags make."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from skillopt_sleep.config_keys import BACKENDS, SOURCES
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.nearest import suggestion

ACTIONS = {
    "run": "a whole night: learn from what is new and stage a proposal",
    "dry-run": "the same computation and the same calls, with nothing staged, adopted or remembered",
    "status": "nights so far, what waits to be adopted, what went wrong",
    "diff": "what adopting would change",
    "adopt": "make a staged change",
    "undo": "take the last adoption back, verified",
    "reject": "turn a staged change down; its rules do not come back unnoticed",
    "recover": "clean up after an adoption that was killed",
    "harvest": "the tasks that `run` would work with, found without a model",
    "schedule": "run a night of the project every day",
    "unschedule": "stop that",
}
_PLAIN_PATHS = ("codex_path", "claude_home", "codex_home")
_HOME_PATHS = (
    *("cursor_path", "pi_path", "opencode_path", "cursor_home", "pi_home"),
    *("vscode_workspace_storage", "copilot_cli_session_store"),
)
_COUNTS = {
    "edit_budget": "most edits of one reflection (at least 1)",
    "max_sessions": "most sessions a night reads; 0: three for each task",
    "max_tasks": "most tasks a night works with (at least 1)",
}
_LEAST = {"max_sessions": 0}
_NAMES = {"max_sessions": "max_sessions_per_night", "max_tasks": "max_tasks_per_night"}


class Parser(argparse.ArgumentParser):
    """Raises UsageProblem where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        """Every mistake in the arguments ends here."""
        raise UsageProblem(f"{message}. `{self.prog} --help` shows what there is.")


def build_parser() -> Parser:
    """The parser of `skillopt-sleep`."""
    parser = Parser(
        prog="skillopt-sleep",
        description="Your coding agent learns overnight from your own sessions; you review and adopt what it learned.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for name, words in ACTIONS.items():
        action = actions.add_parser(
            name, help=words, description=words[0].upper() + words[1:] + ".", allow_abbrev=False
        )
        _add_common(action)
        _OWN.get(name, _add_nothing)(action)
    return parser


def overrides_of(args: argparse.Namespace) -> dict[str, Any]:
    """The settings that the flags override; None means that a flag was not given."""
    found: dict[str, Any] = {
        "backend": args.backend or None,
        "model": args.model or None,
        "transcript_source": args.source or None,
        "lookback_hours": args.lookback_hours,
        "preferences": args.preferences or None,
        "progress": args.progress or None,
        "auto_adopt": args.auto_adopt or None,
        "opencode_tool_replay": args.opencode_tool_replay or None,
        "max_tokens_per_night": args.max_tokens,
        "max_calls_per_night": args.max_calls,
        "replay_mode": getattr(args, "replay_mode", "") or None,
    }
    found |= {_NAMES.get(name, name): getattr(args, name) for name in _COUNTS}
    found |= {name: _absolute(getattr(args, name)) for name in _PLAIN_PATHS}
    found |= {name: _absolute(getattr(args, name), home=True) for name in _HOME_PATHS}
    found["opencode_db"] = (
        args.opencode_db if args.opencode_db == ":memory:" else _absolute(args.opencode_db, home=True)
    )
    if args.project:
        found |= {"invoked_project": _absolute(args.project, home=True), "projects": "invoked"}
    if args.scope:
        found["projects"] = args.scope
    base = Path(_absolute(args.project, home=True) or Path.cwd())
    found["target_skill_path"] = _under(base, args.target_skill_path)
    found["skill_roots"] = [_under(base, root) for root in args.skill_root] or None
    return found


def wants_json(argv: list[str]) -> bool:
    """Whether a failure is to be told as JSON, also when the arguments themselves are wrong."""
    return "--json" in argv[: argv.index("--") if "--" in argv else len(argv)]


def _at_least(least: int) -> Callable[[str], int]:
    """A whole number that is not too small."""

    def read(text: str) -> int:
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, not {text!r}")
        return int(text)

    return read


def _one_of(*choices: str) -> Callable[[str], str]:
    """One of these words, or an empty text, which stands for the configured value."""

    def read(text: str) -> str:
        if text not in ("", *choices):
            named = " or ".join(map(repr, choices))
            raise argparse.ArgumentTypeError(f"expected {named}, not {text!r}{suggestion(text, choices)}")
        return text

    return read


def _absolute(path: str, *, home: bool = False) -> str | None:
    if not path:
        return None
    return os.path.abspath(os.path.expanduser(path) if home else path)  # noqa: PTH100, PTH111 - links are kept


def _under(base: Path, path: str) -> str | None:
    return os.path.abspath(base / Path(path).expanduser()) if path else None  # noqa: PTH100


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--project", default="", metavar="PATH", help="the project of this night (default: the current folder)")
    add("--scope", default="", type=_one_of("all", "invoked"), metavar="all|invoked", help="whose sessions are read")
    add("--backend", default="", metavar="NAME", help=f"what answers model calls: {', '.join(BACKENDS)}")
    add("--model", default="", metavar="NAME", help="the backend's model")
    add("--source", default="", metavar="NAME", help=f"whose transcripts are read: {', '.join(SOURCES)}")
    for name in (*_PLAIN_PATHS, *_HOME_PATHS, "opencode_db"):
        add(f"--{name.replace('_', '-')}", default="", metavar="PATH", help=f"setting {name}")
    add("--opencode-tool-replay", action="store_true", help="OpenCode may be given stand-ins of required tools")
    add("--lookback-hours", type=int, metavar="N", help="how far back the first harvest looks; 0: everything")
    for name, words in _COUNTS.items():
        add(f"--{name.replace('_', '-')}", type=_at_least(_LEAST.get(name, 1)), metavar="N", help=words)
    add("--max-tokens", type=int, metavar="N", help="hard cap on tokens of the night; 0: none may be spent")
    add("--max-calls", type=int, metavar="N", help="hard cap on model calls of the night")
    add("--target-skill-path", default="", metavar="P", help="the managed SKILL.md (relative: under the project)")
    add("--skill-root", action="append", default=[], metavar="P", help="one more folder of named skills (repeatable)")
    add("--tasks-file", default="", metavar="P", help="work with the tasks of this file instead of harvesting")
    add("--progress", action="store_true", help="say on stderr what the night is doing")
    add("--auto-adopt", action="store_true", help="adopt an accepted managed change at once")
    add("--preferences", default="", metavar="TEXT", help="your wishes in your words; reflection reads them")
    add("--json", action="store_true", help="one JSON document on stdout")


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """This action has no flags of its own."""


def _add_mode(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--replay-mode",
        default="",
        type=_one_of("mock", "worktree"),
        metavar="mock|worktree",
        help="worktree: tasks that changed files are done in a fresh checkout; mock: all are answered in text",
    )


def _add_plan(parser: argparse.ArgumentParser) -> None:
    _add_mode(parser)
    parser.add_argument("--plan", action="store_true", help="show what would be sent, and to whom; send nothing")


def _add_night(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--staging", default="", metavar="DIR", help="this night's folder, not the newest pending one")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    _add_night(parser)
    parser.add_argument("--skill", action="append", default=[], metavar="NAME", help="this named skill (repeatable)")


def _add_adopt(parser: argparse.ArgumentParser) -> None:
    _add_choice(parser)
    parser.add_argument("--all-skills", action="store_true", help="every pending named skill")
    parser.add_argument("--legacy", action="store_true", help="the managed skill and memory")
    parser.add_argument("--trust-unsigned", action="store_true", help="also what this installation cannot have signed")
    parser.add_argument("--git-commit", action="store_true", help="commit exactly the adopted files")


def _add_recover(parser: argparse.ArgumentParser) -> None:
    _add_night(parser)
    parser.add_argument("--keep-edited", action="store_true", help="leave files that were edited since as they are")
    parser.add_argument("--trust-unsigned", action="store_true", help="also the journal of an older version")


def _add_harvest(parser: argparse.ArgumentParser) -> None:
    _add_mode(parser)
    parser.add_argument("--output", default="", metavar="FILE", help="write the tasks to this file, for review")
    parser.add_argument("--preview", action="store_true", help="show what mining would send to a model; send nothing")
    parser.add_argument("--all", action="store_true", help="also sessions that earlier nights have worked with")


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    _add_mode(parser)
    parser.add_argument("--hour", type=int, default=3, metavar="H", help="0 to 23 (default 3)")
    parser.add_argument("--minute", type=int, default=17, metavar="M", help="0 to 59 (default 17)")
    parser.add_argument("--via", default="auto", choices=("auto", "cron", "systemd", "windows"), help="which scheduler")


def _add_unschedule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="the jobs of all projects")


_OWN = {
    "run": _add_plan,
    "dry-run": _add_plan,
    "diff": _add_choice,
    "adopt": _add_adopt,
    "undo": _add_night,
    "reject": _add_choice,
    "recover": _add_recover,
    "harvest": _add_harvest,
    "schedule": _add_schedule,
    "unschedule": _add_unschedule,
}
