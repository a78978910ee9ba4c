"""The text of `docs/reference/sleep.md`: actions, flags, settings, files, checks and exit codes from the tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from skillopt_sleep.cli_arguments import ACTIONS, build_parser
from skillopt_sleep.config_keys import BACKEND_ALIASES, KEYS, Key

_HEAD = """\
# SkillOpt-Sleep: every action, flag and setting

Generated from the tables that the program reads; `make docs` writes it again. How it is used:
[SkillOpt-Sleep](../guide/sleep.md).
"""

EXIT_CODES = (
    ("0", "done; also a night that rejects its candidate, one that finds no tasks, and `adopt` with nothing to adopt"),
    ("1", "it could not be done: staging or adoption was refused, a model call failed for good, the scheduler failed"),
    ("2", "something has to change first: a flag, a setting, a file that was not reviewed, or another night runs"),
    ("3", "prompts of a handoff night wait for answers"),
    ("130", "interrupted; the same command goes on"),
)

CHECKS = (
    ("section_present", "a name", "a heading that ends with it, a bold line that holds it, or a line `name:`"),
    ("section_contains", "a text", "an ATX heading that holds it"),
    ("max_chars", "a number", "the answer has at most so many characters"),
    ("min_chars", "a number", "the answer has at least so many characters"),
    ("contains", "a text", "the answer holds it, in any case"),
    ("not_contains", "a text", "the answer does not hold it"),
    ("regex", "a pattern", "Python's `re.search` finds it, within two seconds"),
    ("no_refusal", "none", "the answer is more than a bare refusal"),
    ("tool_called", "a tool's name", "the record of calls has it; text that claims a call proves nothing"),
)

CONDITIONS = (
    ("command", "a command", "it ends with exit code 0 in a second fresh checkout with the changes"),
    ("file_changed", "a pattern", "a file that it names was changed, added or removed"),
    ("file_unchanged", "a pattern", "no file that it names was"),
    ("diff_contains", "a text", "a line that was added holds it, in any case"),
    ("diff_not_contains", "a text", "no line that was added holds it"),
)

GATE_ACTIONS = (
    ("accept_new_best", "the held-out score is better and was confirmed with fresh samples"),
    ("reject", "it is not better, or a held-out task got worse"),
    ("inconclusive", "there are too few validation tasks (`gate_min_val`), or too many results without a score"),
    ("reject_unverified", "it looks better, but the tasks that decide are those that taught"),
    ("greedy_applied, greedy_noop", "the gate is off: edits were taken unchecked, or there were none"),
)

FILES = (
    (
        "`<home>`, which is SKILLOPT_SLEEP_HOME or `~/.skillopt-sleep`",
        (
            ("config.json, config.yaml or config.yml", "your settings; the first that is there"),
            ("prompts.json", "your own prompt templates, by name"),
            ("env", "secrets for scheduled nights, lines `NAME=value`, mode 0600"),
            (
                "state.json, state.json.bak",
                "nights so far, cursors, splits, archived tasks; the copy before the last write",
            ),
            ("harvest.sqlite", "what of each session was read, so that nothing is read twice"),
            ("nights/PROJECT/", "journal and paid calls of a night in progress"),
            (
                "jobs/PROJECT/job.json, config.json, last.json",
                "a scheduled job, its settings, how its last night ended",
            ),
            ("backups/", "crontabs and units as they were before `schedule` changed them"),
            ("evidence/", "what dry runs did"),
            ("locks/, staging.key", "locks of the operating system; the key that signs what is staged"),
        ),
    ),
    (
        "`<project>/.skillopt-sleep`, which ignores itself for git",
        (
            ("staging/NIGHT/report.md, report.json", "what the night did, for people and for programs"),
            ("staging/NIGHT/proposed_SKILL.md, proposed_CLAUDE.md", "the whole documents as they would be"),
            ("staging/NIGHT/proposed_SKILL.NAME.md", "the same for a named skill"),
            ("staging/NIGHT/manifest.json", "what belongs where, with hashes of proposal and present text, signed"),
            ("staging/NIGHT/evidence.jsonl, diagnostics.json", "every call and decision, redacted"),
            ("staging/NIGHT/backup/, adopted_legacy.json, adopted_skills.json", "the texts before adoption; receipts"),
            ("cron.log, run.ps1", "output of scheduled nights; the helper of a Windows task"),
        ),
    ),
    (
        "`<project>/.skillopt-sleep-handoff`, or SKILLOPT_SLEEP_HANDOFF_DIR",
        (
            ("PROMPTS.md, pending.json", "the prompts that wait, for people and for programs"),
            ("answers/KEY.md", "one answer each"),
            ("digests.json, tasks.json", "sessions and tasks as the first round found them"),
        ),
    ),
)

VARIABLES = (
    ("SKILLOPT_SLEEP_HOME", "the folder of everything that is yours"),
    ("SKILLOPT_SLEEP_CONFIG", "a configuration file in place of the one in that folder"),
    ("SKILLOPT_SLEEP_WORKERS", "attempts at a time (setting `workers`)"),
    ("SKILLOPT_SLEEP_PROMPTS_PATH", "a file of prompt templates in place of prompts.json"),
    ("SKILLOPT_SLEEP_HANDOFF_DIR", "the folder of a handoff"),
    ("SKILLOPT_SLEEP_CLAUDE_PATH, SKILLOPT_SLEEP_CLAUDE_MODEL", "program and model of the backend `claude`"),
    ("SKILLOPT_SLEEP_CODEX_PATH, SKILLOPT_SLEEP_CODEX_MODEL", "program and model of the backend `codex`"),
    ("SKILLOPT_SLEEP_NEG_FEEDBACK, SKILLOPT_SLEEP_POS_FEEDBACK", "further words of blame and praise, with commas"),
    ("SKILLOPT_SLEEP_AGENT_MARKERS", "further marks of sessions that a program started, with commas"),
    ("SKILLOPT_SLEEP_COMPAT_MAX_TOKENS, SKILLOPT_SLEEP_CHAT_EXTRA_BODY", "token limit and further fields of requests"),
    ("SKILLOPT_SLEEP_DEBUG", "1 shows where a fault of the program happened"),
    ("AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY", "address and key of the backend `azure_openai`"),
    ("AZURE_OPENAI_AUTH_MODE", "`api_key`, `azure_cli`, `managed_identity` or `openai_compatible`"),
    ("AZURE_OPENAI_DEPLOYMENT, AZURE_OPENAI_API_VERSION", "its model or deployment; its version"),
    ("AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID, AZURE_OPENAI_AD_SCOPE", "which identity signs in, and for what"),
)


def env_section() -> str:
    """The part of `.env.example` with the variables that only the night reads."""
    lines = ["", "# --- skillopt-sleep"]
    for names, text in VARIABLES:
        own = [name for name in names.split(", ") if name.startswith("SKILLOPT_SLEEP_")]
        if own:
            lines += [f"# {text[0].upper()}{text[1:].replace('`', '')}.", *(f"# {name}=" for name in own)]
    return "\n".join(lines) + "\n"


def sleep_page() -> str:
    """The whole page."""
    parsers = _parsers()
    common = _shared(parsers)
    parts = [
        _HEAD,
        "## Actions\n\n" + _table(("action", "what it does"), ((_code(name), text) for name, text in ACTIONS.items())),
        "`skillopt-sleep ACTION [flags]`; `python -m skillopt_sleep` is the same.\n",
        "## Flags of all actions\n\n" + _flags(common.values()),
        "## Flags of single actions\n\n" + _own_flags(parsers, common),
        "## Exit codes\n\n" + _table(("code", "meaning"), EXIT_CODES),
        "## Settings\n\nLater wins: defaults, the configuration file, the environment, flags. Unknown names, wrong\n"
        "types and values out of range are errors.\n\n" + _settings(),
        "## Environment\n\n" + _table(("variable", "meaning"), ((_codes(names), text) for names, text in VARIABLES)),
        "## What the gate answers\n\n"
        + _table(("action", "when"), ((_codes(name), text) for name, text in GATE_ACTIONS)),
        "## Checks of `rule` judges\n\nA task passes when all its checks hold; its soft score is the share that do.\n\n"
        + _table(("op", "arg", "holds when"), ((_code(op), arg, text) for op, arg, text in CHECKS)),
        "## Conditions on work in a checkout\n\nFor tasks with a `workspace`, in `judge.checks`, whatever the task is "
        "judged by besides. Patterns are relative to\nthe repository; `**` stands for any folders.\n\n"
        + _table(("op", "arg", "holds when"), ((_code(op), arg, text) for op, arg, text in CONDITIONS)),
        "## Files\n\nFolders have mode 0700 and files 0600.\n",
        *(
            f"### {title}\n\n" + _table(("file", "what it is"), ((_codes(n), t) for n, t in rows))
            for title, rows in FILES
        ),
    ]
    return "\n".join(parts)


def _parsers() -> dict[str, argparse.ArgumentParser]:
    actions = next(one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(actions.choices)


def _shared(parsers: dict[str, argparse.ArgumentParser]) -> dict[str, argparse.Action]:
    """The flags that every action has, by name."""
    named = [
        {one.option_strings[-1]: one for one in parser._actions if one.option_strings} for parser in parsers.values()
    ]
    return {name: one for name, one in named[0].items() if all(name in other for other in named) and name != "--help"}


def _own_flags(parsers: dict[str, argparse.ArgumentParser], common: dict[str, argparse.Action]) -> str:
    rows = []
    for name, parser in parsers.items():
        own = [one for one in parser._actions if one.option_strings and one.option_strings[-1] not in common]
        rows += [(_code(name), *_flag(one)) for one in own if one.option_strings[-1] != "--help"]
    return _table(("action", "flag", "meaning"), rows)


def _flags(actions: Iterable[argparse.Action]) -> str:
    return _table(("flag", "meaning"), map(_flag, actions))


def _flag(action: argparse.Action) -> tuple[str, str]:
    value = f" {action.metavar or (action.dest.upper() if action.nargs != 0 else '')}".rstrip()
    return _code(action.option_strings[-1] + value), str(action.help or "")


def _settings() -> str:
    rows = ((_code(key.name), _expected(key), _default(key), key.meaning) for key in KEYS)
    aliases: dict[str, list[str]] = {}
    for alias, name in BACKEND_ALIASES.items():
        aliases.setdefault(name, []).append(alias)
    named = "; ".join(f"`{name}`: {', '.join(map(_code, words))}" for name, words in sorted(aliases.items()))
    table = _table(("key", "value", "default", "meaning"), rows)
    return f"{table}\nOther names of backends, which mean the same: {named}.\n"


def _expected(key: Key) -> str:
    if key.kind != "choice":
        return key.expected
    return "one of " + ", ".join(_code(choice) for choice in key.choices if choice)


def _default(key: Key) -> str:
    if key.default is None:
        return "null"
    if isinstance(key.default, bool):
        return _code(str(key.default).lower())
    return "empty" if key.default in ("", []) else _code(str(key.default))


def _codes(names: str) -> str:
    """Every name of a list in code marks."""
    marked = (" or ".join(map(_code, part.split(" or "))) for part in names.split(", "))
    return ", ".join(marked)


def _code(text: str) -> str:
    return f"`{text}`"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)
