from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.skill.document import Skill
from skillopt.skill.edits import (
    EditOutcome,
    apply_edit,
    apply_edits,
    apply_patch,
    apply_patch_with_report,
)
from skillopt.skill.regions import (
    APPENDIX_END,
    APPENDIX_START,
    MARKERS,
    SLOW_UPDATE_END,
    SLOW_UPDATE_START,
    append_to_appendix_field,
)
from skillopt.types import Edit, Patch

HEAD = "# Invoices\n\n- Round to cents.\n- Round totals last.\n"
SLOW = f"\n{SLOW_UPDATE_START}\nWatch VAT.\n{SLOW_UPDATE_END}\n"
INVOICES = HEAD + SLOW
FRONT = "---\nname: demo\ndescription: d\n---\n"
THREE = "rule one\nrule two\nrule three\n"


def run(text: str, *edits: object, **options: Any) -> EditOutcome:
    return apply_edits(Skill.parse(text), edits, **options)


def one(text: str, **fields: object) -> tuple[str, str]:
    outcome = run(text, fields)
    (row,) = outcome.rows
    assert row.index == 1
    assert outcome.changed == (outcome.skill.text != text)
    return row.status, outcome.skill.text


# Plain cases: the texts that the four ops give.


@pytest.mark.parametrize(
    ("before", "fields", "status", "after"),
    [
        ("# A\n", {"op": "append", "content": " - x \n"}, "applied_append", "# A\n\n- x\n"),
        ("# A\n\n\n", {"op": "append", "content": "- x"}, "applied_append", "# A\n\n- x\n"),
        ("", {"op": "append", "content": "- x"}, "applied_append", "- x\n"),
        ("\n\n", {"op": "append", "content": "- x"}, "applied_append", "- x\n"),
        (
            INVOICES,
            {"op": "append", "content": "- x"},
            "applied_append_before_protected_region",
            f"{HEAD}\n- x\n{SLOW}",
        ),
        (
            f"# A\n{SLOW.strip()}\n## B\n",
            {"op": "append", "content": "- x"},
            "applied_append_before_protected_region",
            f"# A\n\n- x\n{SLOW}## B\n",
        ),
        (
            SLOW,
            {"op": "append", "content": "- x"},
            "applied_append_before_protected_region",
            f"- x\n{SLOW}",
        ),
        (
            SLOW.strip(),
            {"op": "append", "content": "- x"},
            "applied_append_before_protected_region",
            f"- x\n\n{SLOW.strip()}",
        ),
        ("A\nB\n", {"op": "insert_after", "target": "A", "content": "x"}, "applied_insert_after", "A\n\nx\nB\n"),
        ("Aa\nB\n", {"op": "insert_after", "target": "A", "content": "x"}, "applied_insert_after", "Aa\n\nx\nB\n"),
        ("A\nB\n", {"op": "insert_after", "target": "A\n", "content": "x"}, "applied_insert_after", "A\n\nx\nB\n"),
        (
            "A\n\nB\n",
            {"op": "insert_after", "target": "A\n\n", "content": "x"},
            "applied_insert_after",
            "A\n\nx\n\nB\n",
        ),
        ("A\nB", {"op": "insert_after", "target": "B", "content": "x"}, "applied_insert_after", "A\nB\nx\n"),
        ("A\nB\n", {"op": "insert_after", "target": "A\nB", "content": "x"}, "applied_insert_after", "A\nB\n\nx\n"),
        ("A b C\n", {"op": "replace", "target": "b", "content": "x"}, "applied_replace", "A x C\n"),
        ("A\nB\n", {"op": "replace", "target": "A\n", "content": "x"}, "applied_replace", "x\nB\n"),
        ("A b C\n", {"op": "replace", "target": "b ", "content": ""}, "applied_replace", "A C\n"),
        ("A\nB\n", {"op": "delete", "target": "A"}, "applied_delete", "\nB\n"),
        ("A\nB\n", {"op": "delete", "target": "A\n", "content": None}, "applied_delete", "B\n"),
        ("A\n", {"op": " APPEND ", "content": "x", "target": None}, "applied_append", "A\n\nx\n"),
        ("A\n", {"op": "Insert-After", "target": "A", "content": "x"}, "applied_insert_after", "A\n\nx\n"),
    ],
)
def test_plain_edits(before: str, fields: dict[str, object], status: str, after: str) -> None:
    assert one(before, **fields) == (status, after)
    assert apply_edit(before, fields) == after


@pytest.mark.parametrize(
    ("before", "fields", "status"),
    [
        pytest.param(INVOICES, {"op": "replace", "target": "- Round to euros.", "content": "x"},
                     "skipped_replace_target_not_found", id="c031"),
        pytest.param(INVOICES, {"op": "insert_after", "target": "## Taxes", "content": "- VAT 20 %"},
                     "skipped_insert_after_target_not_found", id="c032"),
        pytest.param(INVOICES, {"op": "delete", "target": "no"}, "skipped_delete_target_not_found", id="delete"),
        pytest.param(INVOICES, {"op": "replace", "content": "x"}, "skipped_replace_missing_target", id="no-target"),
        pytest.param(INVOICES, {"op": "delete"}, "skipped_delete_missing_target", id="no-target-delete"),
        pytest.param(INVOICES, {"op": "insert_after", "content": "x"}, "skipped_insert_after_missing_target",
                     id="no-target-insert"),
        pytest.param(THREE, {"op": "delete", "target": "rule"}, "skipped_delete_target_ambiguous", id="c034"),
        pytest.param(THREE, {"op": "replace", "target": "rule", "content": "ONE RULE"},
                     "skipped_replace_target_ambiguous", id="c035"),
        pytest.param(THREE, {"op": "insert_after", "target": "rule", "content": "x"},
                     "skipped_insert_after_target_ambiguous", id="ambiguous-insert"),
        pytest.param("aaa\n", {"op": "delete", "target": "aa"}, "skipped_delete_target_ambiguous", id="overlapping"),
        pytest.param(INVOICES, {"op": "delete", "target": f"- Round totals last.\n\n{SLOW_UPDATE_START}\nWatch VAT."},
                     "skipped_protected_region", id="c037"),
        pytest.param(INVOICES, {"op": "replace", "target": "Watch VAT.", "content": "x"},
                     "skipped_protected_region", id="inside-region"),
        pytest.param(INVOICES, {"op": "append", "target": "Watch VAT.", "content": "x"},
                     "skipped_protected_region", id="append-with-region-target"),
        pytest.param(f"# A\n{SLOW}\n## B\n", {"op": "delete", "target": "A\n\n## B"},
                     "skipped_protected_region", id="across-hidden-region"),
        pytest.param(FRONT + HEAD, {"op": "delete", "target": "name: demo"}, "skipped_front_matter", id="c049"),
        pytest.param(FRONT + HEAD, {"op": "replace", "target": "---\n# Inv", "content": "x"},
                     "skipped_front_matter", id="c049-across"),
        pytest.param(INVOICES, {"op": "append", "content": "- Round to cents."}, "skipped_duplicate", id="c053"),
        pytest.param(INVOICES, {"op": "append", "content": "*  Round to   cents.\n\n- Round totals last."},
                     "skipped_duplicate", id="c053-spacing"),
        pytest.param("- one rule\n", {"op": "delete", "target": "- one rule\n"}, "skipped_would_be_empty", id="c055"),
        pytest.param("- one rule\n", {"op": "replace", "target": "- one rule", "content": ""},
                     "skipped_would_be_empty", id="c055-replace"),
        pytest.param(INVOICES, {"op": "prepend", "content": "x"}, "skipped_unknown_op", id="c058-prepend"),
        pytest.param(INVOICES, {"op": "move", "content": None}, "skipped_unknown_op", id="c058-move"),
        pytest.param(INVOICES, {"op": "rewrite_all", "target": []}, "skipped_unknown_op", id="c058-rewrite"),
        pytest.param(INVOICES, {"op": "append", "content": " \n"}, "skipped_empty_content", id="empty"),
        pytest.param(INVOICES, {"op": "insert_after", "target": "# Inv"}, "skipped_empty_content", id="empty-insert"),
        pytest.param(INVOICES, {"op": "append", "content": SLOW_UPDATE_END}, "skipped_empty_content", id="marker-only"),
        pytest.param(INVOICES, {"op": "replace", "target": "cents", "content": "cents"}, "skipped_no_change", id="eq"),
        pytest.param("<!-- SLOW_UPDATE_X -->\n", {"op": "replace", "target": "X", "content": "START"},
                     "skipped_protected_region", id="forms-a-marker"),
        pytest.param("x\n---\na: 1\n---\nb\n", {"op": "delete", "target": "x\n"}, "skipped_front_matter",
                     id="forms-front-matter"),
        pytest.param(INVOICES, {"op": "append", "content": None}, "error", id="c016-null"),
        pytest.param(INVOICES, {"op": "replace", "target": ["a"], "content": "x"}, "error", id="c016-list"),
        pytest.param(INVOICES, {"op": "replace", "target": None, "content": "x"}, "error", id="c016-null-target"),
        pytest.param(INVOICES, {"op": 1, "content": "x"}, "error", id="c016-int"),
        pytest.param(INVOICES, {"content": "x"}, "error", id="c016-missing"),
    ],
)  # fmt: skip
def test_refused_edits_change_nothing(before: str, fields: dict[str, object], status: str) -> None:
    assert one(before, **fields) == (status, before)


def test_rows_say_why() -> None:
    outcome = run(
        THREE,
        {"op": "delete", "target": "rule"},
        {"op": "append", "content": None, "target": "x" * 300},
        Edit("append", "y" * 300),
        {"op": "replace", "target": "nowhere", "content": "x"},
    )
    rows = [row.to_dict() for row in outcome.rows]
    assert rows[0]["detail"] == "matches 3 places"
    assert rows[1]["error"] == rows[1]["detail"] == "content is null; expected text"
    assert rows[1]["target"] == "x" * 200
    assert rows[1]["content_preview"] == "<NoneType>"
    assert rows[2] == {
        "index": 3,
        "op": "append",
        "target": "",
        "content_preview": "y" * 200,
        "status": "applied_append",
    }
    assert rows[3]["target"] == "nowhere"
    assert outcome.summary() == {"total": 4, "applied": 1, "skipped": 2, "errors": 1}


def test_c038_markers_in_content_are_neutralized() -> None:
    outcome = run(INVOICES, {"op": "append", "content": f"{SLOW_UPDATE_END}\n- free text\n<!--\u200bappendix_start-->"})
    assert outcome.skill.text == f"{HEAD}\n- free text\n{SLOW}"
    assert "removed protected markers" in outcome.rows[0].notice


def test_c043_dashes_at_the_start_are_stored_exactly() -> None:
    status, text = one(INVOICES, op="append", content="--dry-run before any deploy")
    assert status == "applied_append_before_protected_region"
    assert "\n--dry-run before any deploy\n" in text


def test_c044_empty_lines_elsewhere_stay() -> None:
    code = "# A\n\n```\na\n\n\n\nb\n```\n"
    assert one(code, op="append", content="- x")[1] == f"{code}\n- x\n"


def test_c046_crlf_stays_crlf() -> None:
    text = "a\r\nb\r\nc\r\n" + SLOW.replace("\n", "\r\n")
    outcome = run(
        text,
        {"op": "replace", "target": "a\nb", "content": "x\ny"},
        {"op": "insert_after", "target": "c\r\n", "content": "d\ne"},
        {"op": "append", "content": "f\r\ng"},
    )
    assert [row.applied for row in outcome.rows] == [True] * 3
    assert outcome.skill.text.replace("\r\n", "").count("\n") == 0
    assert outcome.skill.body == "x\ny\nc\n\nd\ne\n\nf\ng\n"


def test_c047_bom_and_missing_final_newline() -> None:
    assert one("\ufeff# A\nlast", op="append", content="- x")[1] == "\ufeff# A\nlast\n\n- x\n"
    assert one("# A\nlast", op="replace", target="A", content="B")[1] == "# B\nlast"


def test_c050_front_matter_is_kept_byte_for_byte() -> None:
    front = "---\r\ndescription: >\r\n  over\r\n  two lines\r\n---\r\n"
    assert one(front + "# A\n", op="append", content="- x")[1] == front + "# A\n\r\n- x\r\n"
    assert one(FRONT, op="append", content="- x")[1] == FRONT + "\n- x\n"
    assert one(FRONT.rstrip(), op="append", content="- x")[1] == FRONT + "\n- x\n"


def test_c052_edits_that_cancel_are_no_change() -> None:
    outcome = run(INVOICES, {"op": "append", "content": "- x"}, {"op": "delete", "target": "- x"})
    assert outcome.skill.text == INVOICES
    assert not outcome.changed
    assert [row.status for row in outcome.rows] == ["skipped_cancelled", "skipped_cancelled"]
    assert outcome.skill.hash == Skill.parse(INVOICES).hash
    back = run("a\nb\n", {"op": "delete", "target": "a\n"}, {"op": "replace", "target": "b", "content": "a\nb"})
    assert not back.changed


def test_spaces_alone_are_no_change() -> None:
    outcome = run("a \n\nb\n", {"op": "replace", "target": "a ", "content": "a"})
    assert outcome.rows[0].applied
    assert not outcome.changed


def test_anchors_are_those_of_the_original_text() -> None:
    outcome = run(
        "a\nb\n",
        {"op": "replace", "target": "a", "content": "b b b"},
        {"op": "replace", "target": "b", "content": "c"},
        {"op": "insert_after", "target": "b b b", "content": "x"},
    )
    assert outcome.skill.text == "b b b\nc\n"
    assert outcome.rows[2].status == "skipped_insert_after_target_not_found"


def test_overlapping_edits_the_later_is_refused() -> None:
    outcome = run(
        "one two three\nfour\n",
        {"op": "replace", "target": "two three\nfour", "content": "2"},
        {"op": "delete", "target": "one two"},
        {"op": "insert_after", "target": "one", "content": "x"},
        {"op": "insert_after", "target": "four", "content": "y"},
    )
    assert [row.status for row in outcome.rows] == [
        "applied_replace",
        "skipped_overlap",
        "skipped_overlap",
        "applied_insert_after",
    ]
    assert outcome.skill.text == "one 2\n\ny\n"


def test_several_edits_at_one_place_keep_their_order() -> None:
    edits = [{"op": "insert_after", "target": "A", "content": c} for c in "xy"]
    appends = [{"op": "append", "content": c} for c in "pq"]
    assert run("A\nB\n", *edits, *appends).skill.text == "A\n\nx\n\ny\nB\n\np\n\nq\n"


def test_a_line_can_be_moved_in_either_order() -> None:
    away, back = {"op": "delete", "target": "- a\n"}, {"op": "insert_after", "target": "- b", "content": "- a"}
    for edits in ((away, back), (back, away)):
        outcome = run("- a\n- b\n", *edits)
        assert outcome.skill.text == "- b\n\n- a\n"
    twice = run("- b\n", {"op": "append", "content": "- a"}, back)
    assert twice.rows[1].status == "skipped_duplicate"


def test_c023_invisible_characters_are_removed_and_shown() -> None:
    outcome = run("# A\n", {"op": "append", "content": "- do\u200b it\u202e\U000e0041"})
    (row,) = outcome.rows
    assert outcome.skill.text == "# A\n\n- do it\n"
    assert row.notice == "removed invisible characters: U+200B, U+202E, U+E0041"
    assert row.content_preview == "- do\\u200b it\\u202e\\U000e0041"


def test_c022_lone_surrogates_are_replaced_and_reported() -> None:
    outcome = run("# A\n", {"op": "append", "content": "bad \ud800 char", "target": "\udfff"})
    assert outcome.skill.text == "# A\n\nbad \ufffd char\n"
    assert "U+FFFD" in outcome.rows[0].notice
    json.dumps(outcome.rows[0].to_dict(), ensure_ascii=False).encode()


def test_c059_insert_inside_a_code_fence() -> None:
    text = "```\n- a\n- b\n```\n\n- c\n"
    outcome = run(text, {"op": "insert_after", "target": "- b", "content": "- x"})
    assert outcome.skill.text == "```\n- a\n- b\n- x\n```\n\n- c\n"
    assert outcome.rows[0].notice == "inside code block"
    after = run(text, {"op": "insert_after", "target": "- c", "content": "- x"})
    assert after.rows[0].notice == ""
    still_open = run("~~~\na", {"op": "append", "content": "x"})
    assert still_open.rows[0].notice == "inside code block"


def test_insert_fallback() -> None:
    edit = {"op": "insert_after", "target": "## Taxes", "content": "- VAT"}
    plain = run("# A\n", edit, {"op": "insert_after", "content": "- B"}, insert_fallback="append")
    assert plain.skill.text == "# A\n\n- VAT\n\n- B\n"
    assert {row.status for row in plain.rows} == {"applied_insert_after_fallback_append"}
    region = run(INVOICES, edit, insert_fallback="append")
    assert region.rows[0].status == "applied_insert_after_fallback_before_protected_region"
    assert region.skill.text == f"{HEAD}\n- VAT\n{SLOW}"
    assert apply_edit("# A\n", edit, insert_fallback="append") == "# A\n\n- VAT\n"
    unclear = run(THREE, {**edit, "target": "rule"}, insert_fallback="append")
    assert unclear.rows[0].status == "skipped_insert_after_target_ambiguous"


def test_both_regions_stay_and_appends_go_before_both() -> None:
    text = append_to_appendix_field(INVOICES, ["note"])
    outcome = run(text, {"op": "append", "content": "- x"}, {"op": "delete", "target": "- note"})
    assert outcome.skill.text.startswith(f"{HEAD}\n- x\n{SLOW}")
    assert outcome.rows[1].status == "skipped_protected_region"
    assert [r.text for r in outcome.skill.regions] == [r.text for r in Skill.parse(text).regions]


def test_patches_as_text() -> None:
    patch = Patch((Edit("append", "- x"), Edit("move", "y")))
    text, rows = apply_patch_with_report("# A\n", patch)
    assert text == apply_patch("# A\n", patch.to_dict()) == "# A\n\n- x\n"
    assert [row["status"] for row in rows] == ["applied_append", "skipped_unknown_op"]
    assert apply_patch_with_report("# A\n", {}) == ("# A\n", [])
    for wrong in ({"edits": "append a"}, {"edits": {"0": {}}}, None, "x"):
        text, (row,) = apply_patch_with_report("# A\n", wrong)
        assert (text, row["status"]) == ("# A\n", "error")
        assert "expected a list of edits" in row["error"]


class Hostile(dict[str, object]):
    def get(self, *_: object) -> object:
        raise RuntimeError("no")


def test_objects_of_any_shape_give_a_row() -> None:
    outcome = run("# A\n", None, 1, [], "append x", {}, Hostile(op="append"), Edit(op=None), object())  # type: ignore[arg-type]
    assert [row.status for row in outcome.rows] == ["error"] * 8
    assert [row.index for row in outcome.rows] == list(range(1, 9))
    assert all(row.detail for row in outcome.rows)


# Properties

BODY = "# Invoices\n\n- Round to cents.\n- Round totals last.\n\n```\ncode\n```\n"
DOCUMENTS = (
    "",
    "one",
    BODY,
    "\ufeff" + FRONT + BODY + SLOW,
    f"{FRONT}# A\n{SLOW}\n- b\n\n{APPENDIX_START}\n- note\n{APPENDIX_END}\n\n- c\n",
    f"a {SLOW_UPDATE_START}x{SLOW_UPDATE_END} b\nc",
    (FRONT + BODY + SLOW).replace("\n", "\r\n"),
    "a\r\nb\nc\r\n" + SLOW,
)
fragments = st.sampled_from(
    ["# A", "- b", "a", "b", " ", "\n", "\r\n", "code", "```", "---\n", "name: x", "Round", "cents.\n", "one", "Watch",
     "\u200b", "\ud800", "\ufeff", "<!-- SLOW_", "UPDATE_START -->", *MARKERS]
)  # fmt: skip
texts = st.lists(fragments, max_size=4).map("".join)
anything = st.none() | st.integers() | texts | st.lists(texts, max_size=1)
operations = st.sampled_from(["append", "insert_after", "replace", "delete", "DELETE", "move", ""])
good = st.builds(Edit, op=operations, content=texts, target=texts)
wild = st.dictionaries(st.sampled_from(["op", "content", "target"]), anything, max_size=3) | anything


@given(st.sampled_from(DOCUMENTS), st.lists(good | wild, max_size=5), st.sampled_from(["refuse", "append"]))
def test_edits_never_reach_what_is_frozen(text: str, edits: list[object], fallback: Any) -> None:
    before = Skill.parse(text)
    outcome = apply_edits(before, edits, insert_fallback=fallback)
    after = outcome.skill
    assert [row.index for row in outcome.rows] == list(range(1, len(edits) + 1))
    assert sum(outcome.summary().values()) == 2 * len(edits)
    assert [r.text for r in after.regions] == [r.text for r in before.regions]
    assert (after.front_matter, after.bom) == (before.front_matter, before.bom)
    assert Skill.parse(after.text) == after
    assert after.body.strip() or not before.body.strip()
    assert outcome.changed == (not after.same_as(before))
    if not any(row.applied for row in outcome.rows):
        assert after.text == text
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        assert "\n" not in after.text.replace("\r\n", "")
    after.text.encode()
    json.dumps([row.to_dict() for row in outcome.rows], ensure_ascii=False).encode()


@given(st.lists(st.sampled_from(["- a", "- b", "- c", "text", ""]), max_size=6), good)
def test_one_edit_keeps_all_lines_that_it_does_not_name(lines: list[str], edit: Edit) -> None:
    text = "".join(f"{line}\n" for line in lines)
    outcome = run(text, edit)
    if outcome.rows[0].applied and edit.op in ("append", "insert_after"):
        new_lines = iter(outcome.skill.body.split("\n"))
        assert all(line in new_lines for line in lines if line)


def test_a_rule_that_differs_by_a_dash_inside_is_no_duplicate() -> None:
    assert one("- a - b\n", op="append", content="- a b")[0] == "applied_append"
    assert one("- use -v\n", op="append", content="- use -V")[0] == "applied_append"


def test_taking_back_an_addition_cannot_form_front_matter() -> None:
    text = "x\n---\na: 1\n---\nb\n"
    outcome = run(
        text,
        {"op": "insert_after", "target": "x", "content": "- new"},
        {"op": "delete", "target": "x\n"},
        {"op": "delete", "target": "- new"},
    )
    assert outcome.skill.front_matter == ""
    assert [row.status for row in outcome.rows] == ["applied_insert_after", "applied_delete", "skipped_front_matter"]
    assert outcome.skill.text == "\n- new\n---\na: 1\n---\nb\n"
