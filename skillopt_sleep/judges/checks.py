"""The conditions that a program can test on an answer: nine operators, each a pure function of answer and argument.

section_present   a heading that ends with the name, a bold line that holds it, or a line `name:`
section_contains  an ATX heading that holds the text
max_chars         at most so many characters        min_chars     at least so many
contains          the text, in any case             not_contains  not the text
regex             a Python pattern, within two seconds
no_refusal        more than a bare refusal
tool_called       the tool was called, as its record shows; text that claims a call proves nothing

Conditions on what was changed in a checkout are in `work`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges.pattern import PatternTimeout, regex_problem, search
from skillopt_sleep.judges.work import WORK_OPS, outcome_of
from skillopt_sleep.show import clip
from skillopt_sleep.vendored.scoring.refusal import is_refusal

SHAPE_OPS = frozenset({"section_present", "section_contains", "max_chars", "min_chars"})
TEXT_OPS = frozenset(
    {"section_present", "section_contains", "contains", "not_contains", "regex", "tool_called"}
)  # their argument is a text that is not blank
BOUND_OPS = frozenset({"max_chars", "min_chars"})
KNOWN_OPS = TEXT_OPS | BOUND_OPS | {"no_refusal"}

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_LINE_END = re.compile(r"\r\n|\r|\n")
_LOOSE_HEADING = re.compile(r" {0,3}#{1,6}(.*)", re.DOTALL)
_ATX_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t](.*))?", re.DOTALL)
_BOLD_LINE = re.compile(r"\s*\*\*(.+?)\*\*\s*[:\uff1a]?\s*", re.DOTALL)
_LIST_MARKS = re.compile(r"(?:[\s>*_#`\"'~+\u2022\u2013\u2014\u201c\u201d\u2018\u2019-]|\d{1,3}[.)]\s)*")
_ABSTAINS = re.compile(
    r"(?:(?:i['\u2019]?m |i am )?sorry[,.;:]? (?:but )?)?"
    r"(?:unable to (?:help|assist|comply|answer|do)|i (?:refuse|decline)\b|i (?:don['\u2019]?t|do not) know\b"
    r"|no answer\b|n/a\b)"
)
_OPENING = 160
_LONGEST_REFUSAL = 600


class Undecidable(UsageProblem):
    """A check cannot be decided for an answer: its operator is unknown, or its pattern takes too long."""

    code = "judge_undecidable"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether one check holds. `label` names it; `note` says what is wrong with the check itself, if anything."""

    passed: bool
    label: str
    note: str = ""


def char_bound(arg: object) -> int:
    """The number of characters that `arg` means: an integer, an integral float, or decimal digits with a sign or not.

    Raises ValueError for everything else, truth values and numbers that are not finite included.
    """
    if isinstance(arg, bool):
        pass
    elif isinstance(arg, int):
        return arg
    elif isinstance(arg, float) and math.isfinite(arg) and arg.is_integer():
        return int(arg)
    elif isinstance(arg, str) and _INTEGER.fullmatch(arg.strip()):
        return int(arg.strip())
    raise ValueError(f"{clip(repr(arg), 60)} is no whole number of characters")


def label_of(op: object, arg: object) -> str:
    """How a check is named in a rationale: `op=arg`, or the operator alone when it has no argument."""
    return str(op) if arg in (None, "") else f"{op}={arg}"


def run_check(
    check: Any, response: str, tools_called: Sequence[str] | None, work: Mapping[str, Any] | None = None
) -> CheckResult:
    """Whether `check` (`{op, arg}`) holds for an answer; `tools_called`: names whose call was recorded.

    `work` is what an attempt in a checkout changed (`ReplayResult.work`); conditions on the work hold as it says.
    A malformed argument fails with a note. Raises Undecidable for what is no known operator, for a slow pattern, and
    for a condition that no checkout has decided.
    """
    op = check.get("op") if isinstance(check, dict) else None
    if isinstance(op, str) and op in WORK_OPS:
        return _condition(check, work)
    if not isinstance(op, str) or op not in KNOWN_OPS:
        raise Undecidable(
            f"The check {clip(repr(check), 80)} has no known operator; known: {', '.join(sorted(KNOWN_OPS))}."
        )
    arg = check.get("arg")
    label = label_of(op, arg)
    if op == "no_refusal":
        return CheckResult(not refuses(response), label)
    if op in BOUND_OPS:
        return _bounded(op, arg, len(response), label)
    if not isinstance(arg, str) or not arg.strip():
        return CheckResult(False, label, f"{op} needs a text")
    if op == "tool_called":
        return CheckResult(arg.strip().casefold() in {name.casefold() for name in tools_called or ()}, label)
    if op == "regex":
        return _matches(arg, response, label)
    return CheckResult(_TEXT_CHECKS[op](response, arg), label)


def refuses(response: str) -> bool:
    """True for a blank answer and for one that only declines, however it is quoted, listed or emphasised.

    A long answer is none, and neither is one that declines and goes on to answer.
    """
    marks = _LIST_MARKS.match(response)
    said = response[marks.end() :].strip() if marks else response.strip()
    if not said:
        return True
    if len(said) >= _LONGEST_REFUSAL:
        return False
    return is_refusal(said) or (len(said) <= _OPENING and _ABSTAINS.match(said.lower()) is not None)


def _condition(check: Mapping[str, Any], work: Mapping[str, Any] | None) -> CheckResult:
    label = label_of(check.get("op"), check.get("arg"))
    outcome = outcome_of(check, work)
    if outcome is None:
        raise Undecidable(
            f"The check {clip(label, 80)} is about files, and this attempt was not made in a checkout; replay the task "
            "with replay_mode worktree."
        )
    return CheckResult(outcome[0], label, outcome[1] if not outcome[0] else "")


def _bounded(op: str, arg: object, length: int, label: str) -> CheckResult:
    try:
        bound = char_bound(arg)
    except ValueError as error:
        return CheckResult(False, label, str(error))
    return CheckResult(length <= bound if op == "max_chars" else length >= bound, label)


def _matches(pattern: str, response: str, label: str) -> CheckResult:
    problem = regex_problem(pattern)
    if problem:
        return CheckResult(False, label, f"invalid regex {problem}")
    try:
        return CheckResult(search(pattern, response), label)
    except PatternTimeout as error:
        raise Undecidable(str(error)) from None


def _lines(response: str) -> Iterator[str]:
    return iter(_LINE_END.split(response))


def _section_present(response: str, name: str) -> bool:
    wanted = name.strip().casefold()
    return any(_names_section(line, wanted) for line in _lines(response))


def _names_section(line: str, wanted: str) -> bool:
    heading = _LOOSE_HEADING.fullmatch(line)
    if heading and heading[1].rstrip().rstrip("#").rstrip().casefold().endswith(wanted):
        return True
    bold = _BOLD_LINE.fullmatch(line)
    if bold and wanted in bold[1].casefold():
        return True
    return line.strip().casefold().startswith((f"{wanted}:", f"{wanted}\uff1a"))


def _section_contains(response: str, text: str) -> bool:
    wanted = text.strip().casefold()
    headings = (_ATX_HEADING.fullmatch(line) for line in _lines(response))
    return any(wanted in (heading[1] or "").casefold() for heading in headings if heading)


def _contains(response: str, text: str) -> bool:
    return text.lower() in response.lower()


def _not_contains(response: str, text: str) -> bool:
    return not _contains(response, text)


_TEXT_CHECKS: dict[str, Callable[[str, str], bool]] = {
    "section_present": _section_present,
    "section_contains": _section_contains,
    "contains": _contains,
    "not_contains": _not_contains,
}
