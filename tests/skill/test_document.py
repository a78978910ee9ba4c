from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import SkillFormatError
from skillopt.skill.document import Skill, Splice, shrink_ratio, skill_hash
from skillopt.skill.regions import APPENDIX_END, APPENDIX_START, SLOW_UPDATE_END, SLOW_UPDATE_START

SLOW = f"{SLOW_UPDATE_START}\nWatch VAT.\n{SLOW_UPDATE_END}"
INVOICES = f"# Invoices\n\n- Round to cents.\n- Round totals last.\n\n{SLOW}\n"
FRONT = "---\nname: demo\ndescription: >\n  Folded over\n  two lines.\n---\n"

pieces = st.sampled_from(
    [
        "\ufeff",
        "---\n",
        "---\r\n",
        "name: x\n",
        "...\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        "text",
        "- rule\n",
        "- rule\r\n",
        "```\n",
        SLOW_UPDATE_START,
        SLOW_UPDATE_END,
        APPENDIX_START,
        APPENDIX_END,
        SLOW,
        f"{APPENDIX_START}\r\n{APPENDIX_END}",
        "\u2028",
        "é",
    ]
)
documents = st.lists(pieces, max_size=14).map("".join)


@given(documents)
def test_every_text_that_parses_is_written_back_exactly(text: str) -> None:
    try:
        skill = Skill.parse(text)
    except SkillFormatError:
        return
    assert skill.text == text
    assert Skill.parse(skill.text) == skill
    assert "\r\n" not in skill.body or "\r" in text.replace("\r\n", "")
    assert SLOW_UPDATE_START not in skill.body or SLOW_UPDATE_START not in text


@given(documents, documents)
def test_a_new_body_leaves_front_matter_and_regions_alone(text: str, new: str) -> None:
    try:
        skill = Skill.parse(text)
    except SkillFormatError:
        return
    changed = skill.with_body(new)
    assert [r.text for r in changed.regions] == [r.text for r in skill.regions]
    assert changed.bom == skill.bom
    assert changed.text.startswith(skill.front_matter, skill.bom)
    assert changed.front_matter.rstrip("\r\n") == skill.front_matter.rstrip("\r\n")


def test_parts_of_a_document() -> None:
    skill = Skill.parse("\ufeff" + FRONT + "\n" + INVOICES)
    assert skill.bom
    assert skill.front_matter == FRONT
    assert skill.body == "\n# Invoices\n\n- Round to cents.\n- Round totals last.\n"
    (region,) = skill.regions
    assert (region.kind, region.text, region.content) == ("slow_update", SLOW, "Watch VAT.")
    assert skill.newline == "\n"


def test_c050_folded_description_is_kept_and_read_whole() -> None:
    skill = Skill.parse(FRONT + INVOICES)
    changed = skill.with_body("# New\n")
    assert changed.text.startswith(FRONT)
    assert changed.metadata() == {"name": "demo", "description": "Folded over two lines.\n"}
    assert Skill.parse("# none\n").metadata() == {}


def test_broken_front_matter_is_named() -> None:
    with pytest.raises(SkillFormatError, match="front matter"):
        Skill.parse("---\na: [1\n---\n").metadata()
    assert Skill.parse("---\n- a\n---\n").metadata() == {}


def test_a_rule_at_the_start_is_not_front_matter() -> None:
    skill = Skill.parse("---\n\nA text without a second fence.\n")
    assert skill.front_matter == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"# A\n{SLOW_UPDATE_START}\ntext\n", "Line 2: .* never closed"),
        (f"{APPENDIX_START}\n", "APPENDIX_END --> is missing"),
        (f"{SLOW_UPDATE_END}\n{SLOW_UPDATE_START}\n", "Line 1: .* no start marker"),
        (f"{SLOW}\n\n{SLOW}\n", "Line 5: .*first in line 1"),
        (f"{SLOW_UPDATE_START}\n{APPENDIX_START}\n{APPENDIX_END}\n{SLOW_UPDATE_END}", "Line 2: .* inside the region"),
        (f"{SLOW_UPDATE_START}\n{APPENDIX_END}\n", "Line 2: .* inside the region"),
        (f"---\na: {SLOW_UPDATE_START}\n---\n{SLOW_UPDATE_END}", "Line 2: .* front matter"),
    ],
)
def test_c040_c041_markers_without_partner_are_refused_with_line_numbers(text: str, message: str) -> None:
    with pytest.raises(SkillFormatError, match=message):
        Skill.parse(text)


def test_regions_in_the_middle_stay_in_place() -> None:
    text = f"# A\n\n{SLOW}\n\n## B\n\n- b\n"
    skill = Skill.parse(text)
    assert skill.body == "# A\n\n## B\n\n- b\n"
    assert skill.with_body("# A\n\n## B\n\n- c\n").text == text.replace("- b", "- c")
    assert skill.with_body("# A2\n- a\n\n## B\n\n- b\n").text == text.replace("# A\n", "# A2\n- a\n")
    assert skill.with_body("One line").text == f"One line\n\n{SLOW}\n"


def test_with_body_at_a_trailing_region() -> None:
    skill = Skill.parse(INVOICES)
    assert skill.with_body("# New").text == f"# New\n\n{SLOW}\n"
    assert skill.with_body("# New\n").text == f"# New\n\n{SLOW}\n"
    assert skill.with_body("").text == f"\n{SLOW}\n"
    assert skill.with_body(skill.body) is skill
    assert skill.with_body(f"x {SLOW_UPDATE_END} y\n").text == f"x  y\n\n{SLOW}\n"


def test_with_body_drops_a_copied_front_matter_and_forms_none() -> None:
    skill = Skill.parse(FRONT + "# A\n")
    assert skill.with_body(FRONT + "# B\n").text == FRONT + "# B\n"
    plain = Skill.parse("# A\n").with_body("---\nname: x\n---\n# B\n")
    assert plain.front_matter == ""
    assert plain.text == "\n---\nname: x\n---\n# B\n"


def test_crlf_everywhere_or_as_it_was() -> None:
    skill = Skill.parse("a\r\nb\r\n")
    assert skill.body == "a\nb\n"
    assert skill.with_body("a\nc\nb\n").text == "a\r\nc\r\nb\r\n"
    mixed = Skill.parse("a\r\nb\r\nc\nd\r\n")
    assert (mixed.newline, mixed.body) == ("\r\n", "a\nb\nc\nd\n")
    assert mixed.with_body("a\nx\nb\nc\nd\n").text == "a\r\nx\r\nb\r\nc\nd\r\n"
    unixish = Skill.parse("a\r\nb\nc\n")
    assert unixish.with_body("a\nb\nx\n").text == "a\r\nb\nx\n"


def test_splices_keep_their_order_and_the_line_of_a_region() -> None:
    skill = Skill.parse(f"A\n{SLOW}\nB\n")
    assert skill.spliced([Splice(0, 2, "C")]).text == f"C\n{SLOW}\nB\n"
    assert skill.spliced([Splice(2, 2, "1\n"), Splice(2, 2, "2\n")]).text == f"A\n1\n2\n{SLOW}\nB\n"
    assert skill.spliced([Splice(2, 3, "X")]).text == f"A\n{SLOW}\nX\n"


def test_hash_and_sameness() -> None:
    skill = Skill.parse(INVOICES)
    assert skill.hash == skill_hash(INVOICES) == Skill.parse(INVOICES).hash
    assert len(skill.hash) == 16
    assert int(skill.hash, 16) >= 0
    with_file = Skill.parse(INVOICES, {"a.py": "1"})
    assert with_file.hash != skill.hash
    assert with_file.hash != Skill.parse(INVOICES, {"a.py": "2"}).hash
    assert not with_file.same_as(skill)
    assert skill.same_as(Skill.parse(INVOICES.replace("\n", "\r\n")))
    assert Skill.parse("a \n\n\n\nb").same_as(Skill.parse("\na\n\nb\n"))
    assert not Skill.parse("a").same_as(Skill.parse("b"))
    assert isinstance(hash(with_file), int)
    assert len(skill_hash("\ud800")) == 16


def test_c056_shrink_ratio() -> None:
    assert shrink_ratio("a" * 100, "a" * 40) == pytest.approx(0.6)
    assert shrink_ratio("a b", " a\nb\n") == 0.0
    assert shrink_ratio("", "x") == 0.0
