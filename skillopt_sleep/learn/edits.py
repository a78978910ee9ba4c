"""Applies edits to the learned rules of a document, one after the other, and says of each what became of it.

An edit touches a rule only when it says without doubt which one. Nothing that an edit holds can leave the block: text
with markers, headings, separators or an open code fence is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skillopt_sleep.learn.block import fence_after
from skillopt_sleep.learn.rules import HEAD, clean_rule, current_learned_lines, render_rule, set_learned
from skillopt_sleep.types import EditRecord

MOST_RULES = 80
MOST_BLOCK_CHARS = 12_000
MOST_RULE_CHARS = 1_500

_CONTROL = re.compile(r"<!--|-->|SKILLOPT-SLEEP|SLOW_UPDATE_(?:START|END)|APPENDIX_(?:START|END)", re.IGNORECASE)
_HEADING = re.compile(r"^[ \t]*#{1,6}(?:[ \t]|$)|^[ \t]*(?:=+|-+|(?:[-*_][ \t]*){3,})[ \t]*$", re.MULTILINE)
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff]")


@dataclass(frozen=True, slots=True)
class EditRow:
    """What became of one edit: `applied`, `unmatched` (it changes nothing) or `refused`, and why."""

    edit: EditRecord
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """The document after all edits, and a row for each of them, in order."""

    document: str
    rows: tuple[EditRow, ...]

    @property
    def applied(self) -> list[EditRecord]:
        """The edits that changed the document."""
        return [row.edit for row in self.rows if row.status == "applied"]

    @property
    def unmatched(self) -> list[EditRecord]:
        """The edits that changed nothing, refused ones included."""
        return [row.edit for row in self.rows if row.status != "applied"]

    @property
    def reasons(self) -> list[str]:
        """Why each of `unmatched` changed nothing."""
        return [row.reason for row in self.rows if row.status != "applied"]


class _Refused(Exception):
    """An edit that must not be applied."""


class _Unmatched(Exception):
    """An edit that changes nothing."""


def apply_edits(document: str, edits: Sequence[EditRecord]) -> tuple[str, list[EditRecord]]:
    """(document, applied edits). Raises MalformedBlock when the document's markers do not pair up."""
    outcome = run_edits(document, edits)
    return outcome.document, outcome.applied


def apply_edits_detailed(document: str, edits: Sequence[EditRecord]) -> tuple[str, list[EditRecord], list[EditRecord]]:
    """(document, applied edits, edits that changed nothing). Raises MalformedBlock as `apply_edits` does."""
    outcome = run_edits(document, edits)
    return outcome.document, outcome.applied, outcome.unmatched


def run_edits(document: str, edits: Sequence[EditRecord], *, name: str = "the document") -> EditOutcome:
    """As `apply_edits_detailed`, with a reason for each edit that changed nothing."""
    before = current_learned_lines(document)
    rules = list(before)
    rows = []
    for edit in edits:
        try:
            rules = _applied(rules, edit)
            rows.append(EditRow(edit, "applied"))
        except _Refused as problem:
            rows.append(EditRow(edit, "refused", str(problem)))
        except _Unmatched as problem:
            rows.append(EditRow(edit, "unmatched", str(problem)))
    changed = set_learned(document, rules, name=name) if rules != before else document
    return EditOutcome(changed, tuple(rows))


def norm(text: str) -> str:
    """The form in which texts are compared: lower case, blanks collapsed."""
    return " ".join(text.lower().split())


def unsafe_content(content: str) -> str:
    """Why a text must not become a rule, or "" when it may."""
    if _CONTROL.search(content):
        return "it holds a marker or an HTML comment"
    if _HEADING.search(content):
        return "it holds a heading or a separator line"
    if _UNSEEN.search(content):
        return "it holds control characters"
    fence = ""
    for line in render_rule(content).split("\n"):
        fence = fence_after(line.removeprefix("- ").strip(), fence)
    if fence:
        return "it opens a code fence and does not close it"
    return ""


def _applied(rules: list[str], edit: EditRecord) -> list[str]:
    op = edit.op.strip().lower() or "add"
    if op == "add":
        return _added(rules, edit)
    if op == "delete":
        index = _matched(rules, edit.anchor if edit.anchor.strip() else edit.content)
        return rules[:index] + rules[index + 1 :]
    if op == "replace":
        return _replaced(rules, edit)
    raise _Unmatched(f"unknown operation {edit.op!r}; known are add, delete and replace")


def _added(rules: list[str], edit: EditRecord) -> list[str]:
    content = _content(edit)
    if norm(content) in map(norm, rules):
        raise _Unmatched("duplicate: the rule is there already")
    return _within_cap(rules, [*rules, content])


def _replaced(rules: list[str], edit: EditRecord) -> list[str]:
    index = _matched(rules, edit.anchor)
    content = _content(edit)
    if content == rules[index]:
        raise _Unmatched("no change: the rule reads like that already")
    others = rules[:index] + rules[index + 1 :]
    if norm(content) in map(norm, others):
        raise _Unmatched("duplicate: another rule reads like that already")
    return _within_cap(rules, [*rules[:index], content, *rules[index + 1 :]])


def _content(edit: EditRecord) -> str:
    content = clean_rule(edit.content)
    if not content:
        raise _Unmatched("it has no content")
    problem = unsafe_content(content)
    if problem:
        raise _Refused(f"{problem}, which would leave the learned block")
    if len(content) > MOST_RULE_CHARS:
        raise _Refused(f"a rule may have {MOST_RULE_CHARS} characters, this has {len(content)}")
    return content


def _matched(rules: list[str], anchor: str) -> int:
    """The index of the one rule that an anchor means: the one that equals it, else the only one that contains it."""
    wanted = norm(clean_rule(anchor))
    if not wanted:
        raise _Unmatched("it has no anchor")
    texts = [norm(rule) for rule in rules]
    hits = [index for index, text in enumerate(texts) if text == wanted]
    hits = hits[:1] or [index for index, text in enumerate(texts) if wanted in text]
    if not hits:
        raise _Unmatched("anchor not found among the learned rules")
    if len(hits) > 1:
        raise _Refused(f"the anchor matches {len(hits)} rules; it has to say which one")
    return hits[0]


def _within_cap(before: list[str], after: list[str]) -> list[str]:
    """`after`, unless it makes a block that is too large even larger."""
    size, old = _size(after), _size(before)
    if len(after) > max(MOST_RULES, len(before)) or (size > MOST_BLOCK_CHARS and size > old):
        raise _Refused(
            f"the learned block is full ({len(before)} rules, {old} characters; at most {MOST_RULES} and "
            f"{MOST_BLOCK_CHARS}); replace or delete a rule instead"
        )
    return after


def _size(rules: list[str]) -> int:
    return len(HEAD) + sum(len(render_rule(rule)) for rule in rules)
