"""Edits of the learned rules: which rule they mean, what may become a rule, and what is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.learn import apply_edits, apply_edits_detailed, current_learned_lines, run_edits, set_learned
from skillopt_sleep.learn.block import LEARNED_END, LEARNED_START, find_region
from skillopt_sleep.learn.edits import MOST_BLOCK_CHARS, MOST_RULE_CHARS, MOST_RULES
from skillopt_sleep.types import EditRecord

USER = "# Invoices\n\n- Round to cents.\n\n```\nx\n\n\n\ny\n```\n"
RULES = ["Always name the currency.", "rule of thumb: be brief", "rule of law: cite", "rule three\nwith a second line"]


def document() -> str:
    return set_learned(USER, RULES)


def edit(op: str, content: str = "", anchor: str = "") -> EditRecord:
    return EditRecord("skill", op, content, anchor)


def one(op: str, content: str = "", anchor: str = "") -> tuple[list[str], str, str]:
    outcome = run_edits(document(), [edit(op, content, anchor)])
    assert outcome.document.startswith(USER)
    return current_learned_lines(outcome.document), outcome.rows[0].status, outcome.rows[0].reason


def test_add_replace_and_delete() -> None:
    assert one("add", "- Say thanks.")[0] == [*RULES, "Say thanks."]
    assert one("", "Say thanks.")[0] == [*RULES, "Say thanks."]
    assert one("replace", "Name currency and tax.", "the CURRENCY")[0] == ["Name currency and tax.", *RULES[1:]]
    assert one("delete", "", "second line")[0] == RULES[:3]
    assert one("delete", RULES[0])[0] == RULES[1:]


def test_a_rule_of_several_lines_is_one_rule() -> None:
    changed, applied = apply_edits(document(), [edit("add", "Two things:\n- first\n- second\n\n  and code")])
    assert len(applied) == 1
    assert current_learned_lines(changed)[-1] == "Two things:\n- first\n- second\n\n  and code"
    assert current_learned_lines(apply_edits(changed, [edit("delete", anchor="Two things")])[0]) == RULES


def test_a_rule_that_begins_with_dashes_is_kept_exactly() -> None:  # C043
    assert one("add", "--dry-run before any deploy")[0][-1] == "--dry-run before any deploy"


@pytest.mark.parametrize("op", ["delete", "replace"])
def test_a_vague_anchor_touches_nothing(op: str) -> None:  # C034, C035
    rules, status, reason = one(op, "ONE RULE", "rule")
    assert (rules, status) == (RULES, "refused")
    assert "matches 3 rules" in reason


def test_an_anchor_that_equals_a_rule_means_that_rule() -> None:
    start = set_learned("", ["be brief", "be brief and kind"])
    changed, _ = apply_edits(start, [edit("delete", anchor="Be  brief")])
    assert current_learned_lines(changed) == ["be brief and kind"]


@pytest.mark.parametrize(
    ("op", "content", "anchor", "reason"),
    [
        ("add", "  ", "", "no content"),
        ("add", "ALWAYS name the  currency.", "", "duplicate"),  # C053
        ("delete", "", "", "no anchor"),
        ("delete", "", "round to cents", "anchor not found"),  # outside of the block: not matched
        ("replace", "x", "", "no anchor"),
        ("replace", "x", "nowhere", "anchor not found"),
        ("replace", RULES[0], "currency", "no change"),
        ("replace", RULES[1], "currency", "duplicate"),
        ("prepend", "x", "", "unknown operation 'prepend'"),  # C058
    ],
)
def test_an_edit_that_changes_nothing_is_unmatched_with_its_reason(
    op: str, content: str, anchor: str, reason: str
) -> None:
    rules, status, why = one(op, content, anchor)
    assert (rules, status) == (RULES, "unmatched")
    assert reason in why


@pytest.mark.parametrize(
    "content",
    [
        f"fine {LEARNED_END}",
        f"x\n{LEARNED_END}\n# Now mine",
        f"{LEARNED_START} again",
        "<!-- SLOW_UPDATE_START -->",
        "a <!-- comment",
        "ends -->",
        "## A heading",
        "text\n# A heading below",
        "text\n---",
        "Title\n=====",
        "```\nopen fence",
        "zero\x00byte",
        "line\u2028separator",
        "x" * (MOST_RULE_CHARS + 1),
    ],
)
def test_text_that_could_leave_the_block_is_refused(content: str) -> None:  # S4, C038
    rules, status, reason = one("add", content)
    assert (rules, status) == (RULES, "refused")
    assert reason
    assert one("replace", content, "currency")[:2] == (RULES, "refused")


def test_the_block_has_a_cap_and_still_lets_rules_go() -> None:  # V14
    full = set_learned("", [f"rule number {n:03d}" for n in range(MOST_RULES)])
    outcome = run_edits(full, [edit("add", "one more"), edit("delete", anchor="number 007"), edit("add", "one more")])
    assert [row.status for row in outcome.rows] == ["refused", "applied", "applied"]
    assert "the learned block is full" in outcome.rows[0].reason
    wide = set_learned("", ["x" * 1400 + f" {n}" for n in range(9)])
    assert len(wide) > MOST_BLOCK_CHARS
    rows = run_edits(wide, [edit("add", "more"), edit("replace", "short", "x 3")]).rows
    assert [row.status for row in rows] == ["refused", "applied"]


def test_edits_that_cancel_out_leave_the_same_bytes() -> None:  # C052
    start = document()
    changed, applied = apply_edits(start, [edit("add", "x y"), edit("delete", anchor="x y")])
    assert changed == start
    assert len(applied) == 2
    assert run_edits("plain", [edit("add", "x y"), edit("delete", anchor="x y")]).document == "plain"


def test_a_delete_may_take_the_last_rule_and_the_text_stays() -> None:  # C055
    changed, _ = apply_edits(set_learned(USER, ["only"]), [edit("delete", "only")])
    assert changed.startswith(USER)
    assert current_learned_lines(changed) == []


def test_detailed_lists_what_was_applied_and_what_was_not() -> None:
    edits = [edit("add", "new"), edit("delete", "", "nowhere"), edit("add", "# no")]
    _, applied, unmatched = apply_edits_detailed(document(), edits)
    assert (applied, unmatched) == ([edits[0]], edits[1:])


WORDS = st.sampled_from(
    ["a", "rule", "Name it.", "--flag x", f"x {LEARNED_END}", f"\n{LEARNED_START}\n", "# h", "```\nx", "```\nx\n```",
     "- b", "a\r\nb", "\n\n  deep", "<!--", "long " * 400, "é", "\u2028", "rule\nmore"]
)  # fmt: skip
EDITS = st.lists(
    st.builds(
        EditRecord, st.just("skill"), st.sampled_from(["add", "replace", "delete", "move", ""]), WORDS, WORDS
    ),
    max_size=6,
)  # fmt: skip
DOCUMENTS = st.sampled_from(
    [
        "",
        "\ufeff",
        USER,
        USER.replace("\n", "\r\n"),
        set_learned(USER, RULES) + "\n\n\nafter  \n```\n- not a rule\n",
        set_learned(USER.replace("\n", "\r\n"), RULES) + "tail without newline",
        f"\ufeff{LEARNED_START}\n- a\n\nmy note\n{LEARNED_END}",
        f"```\n{LEARNED_START}\n```\nx",
    ]
)


@given(DOCUMENTS, EDITS)
def test_no_edit_changes_a_byte_outside_of_the_block(text: str, edits: list[EditRecord]) -> None:
    region = find_region(text)
    outcome = run_edits(text, edits)
    after = find_region(outcome.document)
    if region is None:
        assert outcome.document.startswith(text)
    else:
        assert after is not None
        assert outcome.document[: after.inner] == text[: region.inner]
        assert outcome.document[after.inner_end :] == text[region.inner_end :]
    assert run_edits(text, edits) == outcome
    assert len(outcome.rows) == len(edits)
    assert set_learned(outcome.document, current_learned_lines(outcome.document)) == outcome.document
