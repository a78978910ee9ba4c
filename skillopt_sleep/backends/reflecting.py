"""The prompt that asks for edits, and the edits in its reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from skillopt_sleep.backends.base import Pairs
from skillopt_sleep.judges.checks import label_of
from skillopt_sleep.judges.work import answer_in_short
from skillopt_sleep.prompts import render
from skillopt_sleep.show import clip
from skillopt_sleep.types import EditRecord, ReplayResult, TaskRecord
from skillopt_sleep.vendored.errors import ReplyError
from skillopt_sleep.vendored.utils.json_reply import read_reply

MAX_TOKENS = 1024
_FAILURES = 8
_CUT = 160
_CUT_OF_WORK = 320
_SYSTEM_CUT = 900
_REJECTED = 12
_OPS = ("add", "delete", "replace")

_MEANINGS = {
    "section_present": "the answer has a section named {arg}",
    "section_contains": "the answer has a heading that contains {arg}",
    "max_chars": "the answer has at most {arg} characters",
    "min_chars": "the answer has at least {arg} characters",
    "contains": "the answer contains {arg}",
    "not_contains": "the answer does not contain {arg}",
    "regex": "the answer matches the pattern {arg}",
    "no_refusal": "the answer does the work and does not decline",
    "tool_called": "the tool {arg} is really called",
    "command": "the command {arg} succeeds after the changes",
    "file_changed": "a file that matches {arg} is changed, added or removed",
    "file_unchanged": "no file that matches {arg} is changed, added or removed",
    "diff_contains": "an added line contains {arg}",
    "diff_not_contains": "no added line contains {arg}",
}

_INVARIANTS = (
    "- The form of answer that a task demands (tags, a schema, a file, a length) stays as it is.\n"
    "- A rule holds for every task of its kind, the ones that went well included."
)


def reflect_prompt(
    failures: Pairs,
    document: str,
    *,
    target: str,
    edit_budget: int,
    preferences: str = "",
    rejected: Sequence[EditRecord] = (),
) -> str:
    """What the optimizer is asked about the first eight failures."""
    tasks = [task for task, _ in failures]
    values = {
        "__EDIT_BUDGET__": str(edit_budget),
        "__TARGET__": target,
        "__CUR_DOC__": document,
        "__GUARD__": _guard(tasks, [edit for edit in rejected if edit.target in ("", target)]),
        "__CRITERIA__": _criteria(failures),
        "__PREFS__": preferences,
        "__FAILURES__": _listed(failures),
    }
    return render("reflect", values)


def firmer(prompt: str) -> str:
    """The prompt of the second request, after a reply without an edit."""
    return (
        f"{prompt}\n\nAn earlier reply held no usable edit. Look again at what the failures have in common, and answer "
        "with the JSON array alone: at least one object with `op`, `content`, `anchor` and `rationale`, no prose.\n"
    )


def output_guard(tasks: Iterable[TaskRecord]) -> str:
    """What no rule may break: the first task's own output contract, and what always holds."""
    system = next((task.system.strip() for task in tasks if task.system.strip()), "")
    contract = f"The tasks come with this contract:\n{clip(system, _SYSTEM_CUT)}\n\n" if system else ""
    return contract + _INVARIANTS


def read_edits(reply: str, *, target: str, edit_budget: int, cut: bool = False) -> list[EditRecord]:
    """At most `edit_budget` edits in a reply: an array, or an object with one array in it. [] when there is none.

    A delete needs an anchor or a content, a replace both, an add a content.
    """
    rows = _rows(reply, cut=cut)
    edits = (_edit(row, target) for row in rows if isinstance(row, dict))
    return [edit for edit in edits if edit is not None][: max(0, edit_budget)]


def _rows(reply: str, *, cut: bool) -> list[Any]:
    finish = "length" if cut else "stop"
    try:
        return list(read_reply(reply, expect=list, finish_reason=finish).value)
    except (ReplyError, ImportError):
        pass
    try:
        value = read_reply(reply, expect=dict, finish_reason=finish).value
    except (ReplyError, ImportError):
        return []
    lists = [item for item in value.values() if isinstance(item, list)]
    return lists[0] if len(lists) == 1 else [value]


def _edit(row: dict[str, Any], target: str) -> EditRecord | None:
    op = _text(row, "op").lower() or "add"
    content, anchor = _text(row, "content"), _text(row, "anchor")
    needed = {"delete": anchor or content, "replace": content and anchor}.get(op, content)
    if not needed:
        return None
    return EditRecord(target, op, content, anchor, clip(_text(row, "rationale"), 400))


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def _guard(tasks: Sequence[TaskRecord], rejected: Sequence[EditRecord]) -> str:
    guard = output_guard(tasks)
    if not rejected:
        return guard
    lines = (f"- {edit.op}: {clip(edit.content or edit.anchor, _CUT)}" for edit in rejected[-_REJECTED:])
    return f"{guard}\n\nThese were tried before and did not help; propose something else:\n" + "\n".join(lines)


def _criteria(failures: Pairs) -> str:
    """The checks that failed, most frequent first, in plain words."""
    counts: Counter[str] = Counter()
    for task, result in failures:
        reason = result.fail_reason or result.judge_rationale
        counts.update(
            _meaning(check) for check in _checks(task) if label_of(check.get("op"), check.get("arg")) in reason
        )
    return "\n".join(f"- {words}: {count} of {len(failures)}" for words, count in counts.most_common())


def _checks(task: TaskRecord) -> list[dict[str, Any]]:
    checks = task.judge.get("checks") if isinstance(task.judge, dict) else None
    return [check for check in checks if isinstance(check, dict)] if isinstance(checks, list) else []


def _meaning(check: dict[str, Any]) -> str:
    words = _MEANINGS.get(str(check.get("op")))
    arg = clip(repr(check.get("arg")), _CUT)
    return words.format(arg=arg) if words else clip(label_of(check.get("op"), check.get("arg")), _CUT)


def _listed(failures: Pairs) -> str:
    blocks = (
        f"{number}. Task: {_line(task.intent)}\n"
        f"   Answer: {answer_in_short(result.response, result.work, limit=_CUT)}\n"
        f"   Why it failed: {_why(result)}"
        for number, (task, result) in enumerate(failures[:_FAILURES], start=1)
    )
    return "\n".join(blocks)


def _why(result: ReplayResult) -> str:
    """Why it failed, longer for work: it tells how the output of a command ends."""
    return _line(result.fail_reason or result.judge_rationale, _CUT_OF_WORK if result.work else _CUT)


def _line(text: str, limit: int = _CUT) -> str:
    return clip(" ".join(text.split()), limit)
