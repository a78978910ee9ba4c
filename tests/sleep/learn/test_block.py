"""The learned block: found by its markers, spliced in place, everything else byte for byte as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.errors import SleepError
from skillopt_sleep.learn.block import (
    LEARNED_END,
    LEARNED_START,
    MalformedBlock,
    check_document,
    find_region,
    newline_of,
    with_region,
)
from skillopt_sleep.learn.rules import (
    clean_rule,
    current_learned_lines,
    ensure_skill_scaffold,
    extract_learned,
    parse_pieces,
    render_rule,
    set_learned,
)

BLOCK = f"{LEARNED_START}\n## Learned preferences & procedures\n\n- one\n- two\n{LEARNED_END}\n"


def outside(document: str) -> tuple[str, str]:
    region = find_region(document)
    assert region is not None
    return document[: region.start], document[region.end :]


def test_a_rule_is_added_in_place_and_the_text_around_keeps_its_bytes() -> None:  # D3, C044
    before, after = "# Mine\n\n```\na\n\n\n\nb\n```\n\n", "\n\n\n## After  \n\ttext   \n\n\n"
    changed = set_learned(before + BLOCK + after, ["one", "two", "three"])
    assert changed == before + BLOCK.replace("- two\n", "- two\n- three\n") + after


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (f"a\n{LEARNED_START}\n- r\n\n## Mine\n\ntext\n", "line 2 starts a learned block and no later line ends it"),
        (f"a\n- r\n{LEARNED_END}\ntext\n", "line 3 ends a learned block that no earlier line starts"),
        (f"{LEARNED_END}\n{LEARNED_START}\n", "do not pair up (end in line 1, start in line 2)"),
        (f"{BLOCK}\n{BLOCK}", "do not pair up (start in line 1, end in line 6, start in line 8, end in line 13)"),
        (f"{LEARNED_START}\n{LEARNED_START}\n{LEARNED_END}\n", "keep one start with one end after it"),
        (f"{LEARNED_START}\n- r {LEARNED_END}\nmine\n", "no later line ends it"),
        ("# Mine\n```\ncode\n", "the code fence in line 2 is never closed"),
    ],
)
def test_markers_that_do_not_make_one_block_are_refused_with_line_and_hint(document: str, words: str) -> None:
    # D2, C040, C041
    with pytest.raises(MalformedBlock) as caught:
        set_learned(document, ["new"], name="CLAUDE.md")
    assert str(caught.value).startswith("CLAUDE.md: ")
    assert words in str(caught.value)
    assert isinstance(caught.value, SleepError)
    assert caught.value.exit_code == 2
    with pytest.raises(MalformedBlock):
        check_document(document)


@pytest.mark.parametrize(
    "shown",
    [
        f"```\n{BLOCK}```\n",
        f"~~~~ md\n```\n{BLOCK}~~~~\n",
        f"    {LEARNED_START}\n    - r\n",
        f"The block between `{LEARNED_START}` and `{LEARNED_END}` is made at night.\n",
    ],
)
def test_markers_in_code_and_in_prose_are_the_persons_text(shown: str) -> None:
    changed = set_learned(shown, ["rule"])
    assert changed.startswith(shown)
    assert current_learned_lines(changed) == ["rule"]
    assert current_learned_lines(shown) == []


def test_a_fence_that_is_open_before_the_block_hides_it_and_is_named() -> None:
    with pytest.raises(MalformedBlock, match="code fence in line 2"):
        set_learned(f"text\n```sh\nls\n\n{BLOCK}", ["new"])


def test_windows_line_ends_stay_everywhere() -> None:  # C046
    document = "# A\r\n\r\ntext\r\n"
    first = set_learned(document, ["one", "two\nmore"])
    assert first.startswith(document)
    assert first.count("\n") == first.count("\r\n")
    second = set_learned(first, ["one", "two\nmore", "three"])
    assert second.count("\n") == second.count("\r\n")
    assert current_learned_lines(second) == ["one", "two\nmore", "three"]
    assert "\r" not in extract_learned(second)


def test_byte_order_mark_and_missing_last_newline_are_kept() -> None:  # C047
    changed = set_learned("\ufeffno newline", ["rule"])
    assert changed.startswith(f"\ufeffno newline\n\n{LEARNED_START}\n")
    only = set_learned("\ufeff", ["rule"])
    assert only.startswith(f"\ufeff{LEARNED_START}\n")
    assert set_learned(only, ["rule", "two"]).startswith(f"\ufeff{LEARNED_START}\n")
    tight = BLOCK.removesuffix("\n")
    assert outside(set_learned(tight, ["x"])) == ("", "")
    assert set_learned(tight, ["x"]).endswith(LEARNED_END)


def test_rules_of_several_lines_and_leading_dashes_survive() -> None:  # D4, C043
    rules = [
        "--dry-run before any deploy",
        "Run it like this:\n\n```\nmake x\n  deep\n```\nand look",
        "-n is a flag",
        "last",
    ]
    document = set_learned("# A\n", rules)
    assert current_learned_lines(document) == rules
    assert set_learned(document, rules) == document
    changed = set_learned(document, rules[1:])
    assert current_learned_lines(changed) == rules[1:]


def test_a_bullet_that_a_caller_left_on_a_rule_is_not_doubled() -> None:
    assert current_learned_lines(set_learned("", ["- one", "-  - two", "  three  ", "", "- "])) == [
        "one",
        "two",
        "three",
        "-",
    ]


def test_what_a_person_wrote_inside_the_block_stays_and_so_do_unchanged_rules() -> None:
    head = "# My heading\nkeep this note\n\n"
    inner = f"{head}-   odd   spacing  \n   and more\n\n<!-- mine -->\n\n- two\nlazy line\n\n> quote\n"
    document = f"top\n{LEARNED_START}\n{inner}{LEARNED_END}\nrest"
    assert current_learned_lines(document) == ["odd   spacing\n and more", "two\nlazy line"]
    changed = set_learned(document, ["odd   spacing\n and more", "new"])
    assert changed == document.replace("- two\nlazy line\n", "- new\n")
    emptied = set_learned(document, [])
    assert emptied == document.replace("-   odd   spacing  \n   and more\n", "").replace("- two\nlazy line\n", "")


def test_no_rule_and_no_block_change_nothing() -> None:
    assert set_learned("text", []) == "text"
    assert set_learned(BLOCK, ["one", "two"]) is BLOCK or set_learned(BLOCK, ["one", "two"]) == BLOCK
    assert extract_learned("text") == ""
    assert extract_learned(BLOCK) == "## Learned preferences & procedures\n\n- one\n- two"


def test_the_scaffold_is_made_only_for_an_empty_document() -> None:
    made = ensure_skill_scaffold(" \n", name="my-skill", description='Says: "hello"\n# twice')
    assert made.startswith('---\nname: my-skill\ndescription: "Says: \\"hello\\" # twice"\n---\n\n# my-skill\n')
    import yaml

    assert yaml.safe_load(made.split("---")[1]) == {"name": "my-skill", "description": 'Says: "hello" # twice'}
    for text in ("---\nname: x\n---\n", "\ufeff# mine", "mine"):
        assert ensure_skill_scaffold(text, name="n", description="d") == text
    odd = ensure_skill_scaffold("", name="a: b", description="d")
    assert yaml.safe_load(odd.split("---")[1])["name"] == "a: b"


LINES = st.sampled_from(
    ["", " ", "text", "- mine", "  indented", "```", "~~~", "# head", "\ttab", "x  ", "\u00a0", "a\rb", "---",
     "<!-- note -->", "    code", "> q", "1. one", f"    {LEARNED_START}", f"see {LEARNED_END}", "\u2028odd",
     "``` `a` ```", "`````"]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n"])
DOCUMENTS = st.lists(st.tuples(LINES, ENDS), max_size=12).map(lambda rows: "".join(a + b for a, b in rows))
TEXTS = st.tuples(DOCUMENTS, st.sampled_from(["", "tail", "\ufeff"])).map(lambda pair: pair[0] + pair[1])
RULES = st.lists(
    st.lists(st.sampled_from(["word", "-n", "  deep", "", "- sub", "é ß", "1. x", "\tt", "a\u00a0", "`c`"]),
             min_size=1, max_size=4).map("\n".join),
    max_size=5,
)  # fmt: skip


@given(TEXTS, TEXTS, RULES, RULES, ENDS)
def test_whatever_stands_around_the_block_never_changes(
    before: str, after: str, first: list[str], second: list[str], end: str
) -> None:
    document = f"{before}\n{LEARNED_START}{end}{''.join(map(render_rule, first))}{LEARNED_END}{end}{after}"
    try:
        region = find_region(document)
    except MalformedBlock:
        return
    if region is None:
        return
    around = outside(document)
    changed = set_learned(document, second)
    assert outside(changed) == around
    again = current_learned_lines(changed)
    assert set_learned(changed, again) == changed
    assert set_learned(document, current_learned_lines(document)) == document
    assert changed == set_learned(document, second)


@given(TEXTS, RULES)
def test_a_new_block_goes_behind_the_text_and_is_found_again(document: str, rules: list[str]) -> None:
    try:
        changed = set_learned(document, rules)
    except MalformedBlock:
        return
    assert changed.startswith(document)
    kept = current_learned_lines(changed)
    assert set_learned(changed, kept) == changed
    if kept:
        assert LEARNED_START in changed
        assert set_learned(changed, [*kept, "and one more"]).startswith(document)
        assert current_learned_lines(set_learned(changed, [*kept, "and one more"])) == [*kept, "and one more"]


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_can_be_a_rule_and_reads_back_as_it_was_kept(document: str, rules: list[str]) -> None:
    try:
        changed = set_learned(document, rules)
    except MalformedBlock:
        return
    kept = [rule for rule in map(clean_rule, rules) if rule]
    assert changed.startswith(document)
    assert current_learned_lines(changed) == kept


@given(TEXTS)
def test_pieces_make_up_the_text_again(body: str) -> None:
    unix = body.replace("\r\n", "\n")
    assert "".join(piece.raw for piece in parse_pieces(unix)) == unix


def test_the_line_end_of_a_document() -> None:
    assert newline_of("a") == "\n"
    assert newline_of("a\r\nb") == "\r\n"
    assert newline_of("a\nb\r\nc\n") == "\n"
    assert with_region("a\r\n", "x\n") == f"a\r\n\r\n{LEARNED_START}\r\nx\r\n{LEARNED_END}\r\n"
