"""Whether the conditions on changes hold: patterns of file names, texts in what was added."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt_sleep.show import clip
from skillopt_sleep.worktrees.changes import Changed
from skillopt_sleep.worktrees.work import Outcome

_MOST_NAMED = 5
_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|.", re.DOTALL)
_MEANINGS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def outcome_of_changes(condition: Mapping[str, Any], changed: Changed) -> Outcome:
    """The outcome of `file_changed`, `file_unchanged`, `diff_contains` or `diff_not_contains`.

    Patterns are relative to the top of the repository: `*` and `?` stay within a folder, `**` does not, and a pattern
    that names a folder means all that is in it. Texts are looked for, in any case, in the lines that were added.
    """
    op, arg = str(condition["op"]), str(condition.get("arg", ""))
    if op in ("file_changed", "file_unchanged"):
        found = _matching(changed.files, arg)
    else:
        found = [line for line in (arg,) if arg.casefold() in _added(changed.diff).casefold()]
    wanted = op in ("file_changed", "diff_contains")
    note = "" if wanted or not found else clip(", ".join(found[:_MOST_NAMED]), 400)
    return Outcome(op, arg, bool(found) is wanted, note)


def _matching(files: Sequence[str], pattern: str) -> list[str]:
    plain = pattern.replace("\\", "/").removeprefix("./").rstrip("/")
    shape = "".join(_MEANINGS.get(token, re.escape(token)) for token in _TOKENS.findall(plain))
    wanted = re.compile(f"{shape}(?:/.*)?", re.DOTALL)
    return [name for name in files if wanted.fullmatch(name)]


def _added(diff: str) -> str:
    """The lines that a unified diff adds, without what stands between the hunks."""
    kept: list[str] = []
    old = new = 0
    for line in diff.split("\n"):
        if old <= 0 and new <= 0:
            sizes = _HUNK.match(line)
            old, new = (int(size or 1) for size in sizes.groups()) if sizes else (0, 0)
        elif line.startswith("+"):
            kept.append(line[1:])
            new -= 1
        elif line.startswith("-"):
            old -= 1
        elif not line.startswith("\\"):
            old, new = old - 1, new - 1
    return "\n".join(kept)


_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
