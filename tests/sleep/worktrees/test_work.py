"""What is kept of an attempt's changes, and conditions on them."""

from __future__ import annotations

import json

import pytest

from skillopt_sleep.worktrees import Outcome, Work
from skillopt_sleep.worktrees.changes import Changed
from skillopt_sleep.worktrees.conditions import outcome_of_changes
from skillopt_sleep.worktrees.work import MOST_DIFF, said_last, shown_diff

KEY = "ghp_" + "a1B2" * 9
DIFF = """diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 kept = 1
-gone = 2
+Fresh = 3
"""


def test_work_survives_json() -> None:
    work = Work("diff", ("a", "b"), (Outcome("command", "true", True, "said"), Outcome("file_changed", "**", False)))
    assert Work.from_dict(json.loads(json.dumps(work.to_dict()))) == work
    assert Work.from_dict({}) == Work()


@pytest.mark.parametrize("data", [{"checks": [{"op": "x"}]}, {"checks": 3}, {"files": 3}, []])
def test_what_is_no_work_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="Work"):
        Work.from_dict(data)  # type: ignore[arg-type]


def test_a_diff_is_redacted_before_it_is_cut() -> None:
    assert shown_diff(f"+token = '{KEY}'\n").count(KEY) == 0
    for length in (MOST_DIFF - 20, 8 * MOST_DIFF - 30):
        shown = shown_diff("+" + "a b\n+" * (length // 5) + KEY * 3 + "\n" + "z " * MOST_DIFF)
        assert len(shown) == MOST_DIFF
        assert "ghp_" not in shown
        assert "diff cut" in shown.splitlines()[-1]


def test_the_end_of_an_output_is_kept_without_secrets() -> None:
    said = said_last("start\n" + "x y\n" * 5000 + f"\npassword={KEY}\nFAILED 1\n")
    assert said.endswith("FAILED 1")
    assert len(said) < 1600
    assert KEY not in said


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [("**", True), ("src/**", True), ("src", True), ("src/", True), ("**/b.py", True), ("*.py", False),
     ("src/*/b.py", True), ("src/*", True), ("src/?eep/b.py", True), ("sr", False), ("a.txt", True), ("A.TXT", False),
     ("**/a.txt", True), ("./a.txt", True), ("a.txt/x", False), ("a[.]txt", False), ("src\\deep\\b.py", True)],
)  # fmt: skip
def test_patterns_of_file_names(pattern: str, holds: bool) -> None:
    changed = Changed(("a.txt", "src/deep/b.py"), "")
    assert outcome_of_changes({"op": "file_changed", "arg": pattern}, changed).passed is holds
    other = outcome_of_changes({"op": "file_unchanged", "arg": pattern}, changed)
    assert other.passed is not holds
    assert bool(other.note) is holds


@pytest.mark.parametrize(
    ("text", "holds"), [("Fresh", True), ("fresh = 3", True), ("gone", False), ("kept", False), ("b/a.py", False)]
)
def test_texts_are_looked_for_in_the_added_lines(text: str, holds: bool) -> None:
    changed = Changed(("a.py",), DIFF)
    assert outcome_of_changes({"op": "diff_contains", "arg": text}, changed).passed is holds
    assert outcome_of_changes({"op": "diff_not_contains", "arg": text}, changed).passed is not holds


def test_an_added_line_that_looks_like_a_header_is_an_added_line() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n---- a\n+++ secret\n+two\n\\ No newline at end of file\n"
    changed = Changed(("x",), diff)
    assert outcome_of_changes({"op": "diff_contains", "arg": "++ secret\ntwo"}, changed).passed
    assert not outcome_of_changes({"op": "diff_contains", "arg": "b/x"}, changed).passed
