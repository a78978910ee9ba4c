from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillopt.skill.document import Skill
from skillopt.skill.regions import (
    APPENDIX_END,
    APPENDIX_START,
    MARKERS,
    SLOW_UPDATE_END,
    SLOW_UPDATE_START,
    append_to_appendix_field,
    extract_appendix_notes,
    extract_slow_update_field,
    has_appendix_field,
    has_slow_update_field,
    inject_empty_appendix_field,
    inject_empty_slow_update_field,
    neutralize_markers,
    replace_slow_update_field,
)

EMPTY = f"{SLOW_UPDATE_START}\n{SLOW_UPDATE_END}\n"
messy = st.lists(st.sampled_from([*MARKERS, "\n", "\n\n\n", "text", "- note\n", " "]), max_size=12).map("".join)


def test_empty_slow_update_is_added_once() -> None:
    text = inject_empty_slow_update_field("# A\n\n\n")
    assert text == f"# A\n\n{EMPTY}"
    assert inject_empty_slow_update_field(text) == text
    assert has_slow_update_field(text)
    assert not has_slow_update_field("# A")
    assert extract_slow_update_field(text) == ""
    assert inject_empty_slow_update_field("") == EMPTY


def test_slow_update_is_replaced_and_moved_to_the_end() -> None:
    text = f"# A\n\n{SLOW_UPDATE_START}\nold\n{SLOW_UPDATE_END}\n\n- b\n"
    new = replace_slow_update_field(text, f"  new {APPENDIX_START}text\n")
    assert new == f"# A\n\n- b\n\n{SLOW_UPDATE_START}\nnew text\n{SLOW_UPDATE_END}\n"
    assert extract_slow_update_field(new) == "new text"


def test_markers_without_partner_are_repaired_on_a_write() -> None:
    start_only = replace_slow_update_field(f"# A\n{SLOW_UPDATE_START}\nkept\n", "x")
    assert start_only == f"# A\n\nkept\n\n{SLOW_UPDATE_START}\nx\n{SLOW_UPDATE_END}\n"
    end_first = replace_slow_update_field(f"{SLOW_UPDATE_END}\nA\n{SLOW_UPDATE_START}\n", "x")
    assert Skill.parse(end_first).regions[0].content == "x"
    assert extract_slow_update_field(f"{SLOW_UPDATE_END} a {SLOW_UPDATE_START}") == ""


def test_c044_empty_lines_away_from_the_region_stay() -> None:
    code = "```\na\n\n\n\nb\n```"
    assert replace_slow_update_field(code, "x").startswith(code + "\n\n")


def test_crlf_and_bom_are_kept() -> None:
    new = replace_slow_update_field("\ufeffa\r\nb\r\n", "x\ny")
    assert new == f"\ufeffa\r\nb\r\n\r\n{SLOW_UPDATE_START}\r\nx\r\ny\r\n{SLOW_UPDATE_END}\r\n"
    assert replace_slow_update_field("\ufeff", "x") == f"\ufeff{SLOW_UPDATE_START}\nx\n{SLOW_UPDATE_END}\n"


def test_appendix_is_added_once_and_reads_its_notes() -> None:
    text = inject_empty_appendix_field("# A\n")
    assert text == f"# A\n\n{APPENDIX_START}\n## Execution Notes Appendix\n{APPENDIX_END}\n"
    assert inject_empty_appendix_field(text) == text
    assert has_appendix_field(text)
    assert extract_appendix_notes(text) == []
    text = append_to_appendix_field(text, ["Check  units.", "", "  ", "--dry-run first"])
    assert extract_appendix_notes(text) == ["Check units.", "--dry-run first"]
    assert text.endswith(f"Appendix\n\n- Check units.\n- --dry-run first\n{APPENDIX_END}\n")


def test_appendix_drops_near_duplicates_and_stays_one_region() -> None:
    text = append_to_appendix_field("# A\n", ["Check units."])
    assert append_to_appendix_field(text, ["check units", " CHECK units;", ""]) == text
    text = append_to_appendix_field(text, ["Second", f"Third {APPENDIX_END}"])
    assert extract_appendix_notes(text) == ["Check units.", "Second", "Third"]
    assert text.count(APPENDIX_START) == text.count(APPENDIX_END) == 1
    assert append_to_appendix_field("# A\n", ["", "."]) == "# A\n"
    assert append_to_appendix_field("# A\n", [None]) == "# A\n"  # type: ignore[list-item]


def test_both_regions_live_together_and_the_last_written_is_last() -> None:
    text = append_to_appendix_field(replace_slow_update_field("# A\n", "slow"), ["note"])
    assert [r.kind for r in Skill.parse(text).regions] == ["slow_update", "appendix"]
    swapped = replace_slow_update_field(text, "slow 2")
    assert [r.kind for r in Skill.parse(swapped).regions] == ["appendix", "slow_update"]
    assert [r.content for r in Skill.parse(swapped).regions] == ["## Execution Notes Appendix\n\n- note", "slow 2"]


def test_nested_markers_do_not_survive_neutralizing() -> None:
    assert neutralize_markers("<!-- SLOW_<!-- APPENDIX_END -->UPDATE_END -->x<!--slow_update_start-->") == "x"


@given(messy, st.text(max_size=20) | st.sampled_from(MARKERS))
def test_a_written_slow_update_is_always_one_region(text: str, content: str) -> None:
    new = replace_slow_update_field(text, content)
    assert new.count(SLOW_UPDATE_START) == new.count(SLOW_UPDATE_END) == 1
    assert new.endswith(f"{SLOW_UPDATE_END}\n")
    assert replace_slow_update_field(new, content) == new


@given(messy, st.lists(st.text(max_size=12), max_size=4))
def test_written_notes_are_read_again(text: str, notes: list[str]) -> None:
    once = append_to_appendix_field(text, notes)
    assert append_to_appendix_field(once, notes) == once
