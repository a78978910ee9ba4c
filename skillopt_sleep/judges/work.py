"""Conditions on what an attempt in a checkout did to the files there.

command           the command ends with status 0 in a fresh checkout that has the changes
file_changed      a file that the pattern names was changed, added or removed     file_unchanged    none was
diff_contains     a line that was added holds the text, in any case               diff_not_contains  none does

They are decided where the work is done; here lies only what they mean for a score. Patterns are relative to the top of
the repository, with `/` between folders; `**` stands for any number of folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_sleep.show import clip

GLOB_OPS = frozenset({"file_changed", "file_unchanged"})
WORK_OPS = GLOB_OPS | {"command", "diff_contains", "diff_not_contains"}
ANY_FILE = "**"

_NOTE_CHARS = 240
_DIFF_CHARS = 12_000
_SHORT_MESSAGE, _SHORT_DIFF = 160, 440
_MAX_ARG = 2000


def conditions_of(judge: Any) -> list[dict[str, Any]]:
    """The conditions on the work among the checks of a judge, in order; [] without any."""
    checks = judge.get("checks") if isinstance(judge, dict) else None
    rows = checks if isinstance(checks, list) else []
    return [row for row in rows if isinstance(row, dict) and row.get("op") in WORK_OPS]


def condition_problem(op: str, arg: Any) -> str:
    """What is wrong with the argument of a condition, in a few words; empty when nothing is."""
    if not isinstance(arg, str) or not arg.strip():
        return f"{op} needs a text that is not blank"
    if len(arg) > _MAX_ARG or "\0" in arg:
        return f"{op} needs a text of at most {_MAX_ARG} characters, without NUL"
    if op not in GLOB_OPS:
        return ""
    parts = arg.replace("\\", "/").split("/")
    if arg.startswith(("/", "\\", "~")) or ":" in parts[0] or ".." in parts:
        return f"{op} {clip(repr(arg), 80)} must be a relative pattern without `..`"
    return ""


def outcome_of(check: Mapping[str, Any], work: Mapping[str, Any] | None) -> tuple[bool, str] | None:
    """(holds, note) of a condition, as the checkout found it; None when nothing was found out about it.

    `work` is `ReplayResult.work`.
    """
    rows = work.get("checks") if work else None
    for row in rows if isinstance(rows, (list, tuple)) else ():
        if isinstance(row, Mapping) and (row.get("op"), row.get("arg")) == (check.get("op"), check.get("arg")):
            return row.get("passed") is True, _end_of(" ".join(str(row.get("note") or "").split()))
    return None


def shown_answer(message: str, work: Mapping[str, Any] | None) -> str:
    """The answer that people and judges see: the last message, then the changes as a fenced diff, cut where long."""
    if not work:
        return message
    diff = clip(str(work.get("diff") or ""), _DIFF_CHARS)
    if not diff.strip():
        return f"{message.rstrip()}\n\nNo file was changed.\n"
    fence = "`" * max(3, 1 + _longest_run(diff))
    return f"{message.rstrip()}\n\nThe changes:\n\n{fence}diff\n{diff.rstrip()}\n{fence}\n"


def answer_in_short(response: str, work: Mapping[str, Any] | None, *, limit: int) -> str:
    """An answer as a record shows it: `limit` characters on one line.

    Of work in a checkout it is how the message begins, and below, line by line, how the diff begins.
    """
    if not work:
        return clip(" ".join(response.split()), limit)
    message = clip(" ".join(response.removesuffix(shown_answer("", work)).split()), _SHORT_MESSAGE)
    lines = (line for line in str(work.get("diff") or "").splitlines() if not line.startswith("index "))
    diff = clip("\n".join(lines).strip(), _SHORT_DIFF)
    if not diff:
        return f"{message}\n   No file was changed."
    return f"{message}\n   The changes begin:\n" + "\n".join(f"     {line}" for line in diff.split("\n"))


def _end_of(note: str) -> str:
    """The end of what a command said, where its verdict stands."""
    return note if len(note) <= _NOTE_CHARS else "\u2026 " + note[-_NOTE_CHARS:].lstrip()


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
