"""Applying the selected edits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.optimizer.update import replace_body, update_skill
from skillopt.skill.document import Skill
from skillopt.types import Edit, Patch

SKILL = Skill.parse("# Cities\n\n- Answer in a sentence.\n")


def test_edits_give_a_changed_candidate() -> None:
    candidate = update_skill(SKILL, Patch((Edit("replace", "- One word.", "- Answer in a sentence."),)))
    assert candidate.changed
    assert "- One word." in candidate.skill.text
    assert [row.status for row in candidate.outcome.rows] == ["applied_replace"]
    assert SKILL.text == "# Cities\n\n- Answer in a sentence.\n"


def test_edits_that_apply_nowhere_change_nothing() -> None:  # defect 12
    candidate = update_skill(SKILL, Patch((Edit("replace", "x", "no such line"), Edit("delete", "", "nor this"))))
    assert not candidate.changed
    assert candidate.skill.text == SKILL.text
    assert all(row.status.startswith("skipped") for row in candidate.outcome.rows)


def test_an_empty_patch_changes_nothing() -> None:
    assert not update_skill(SKILL, Patch()).changed


REGIONS = (
    "<!-- SLOW_UPDATE_START -->\nslow\n<!-- SLOW_UPDATE_END -->",
    "<!-- APPENDIX_START -->\nnotes\n<!-- APPENDIX_END -->",
)
FULL = Skill.parse(f"---\nname: x\n---\n# Cities\n\n- Answer in a sentence.\n\n{REGIONS[0]}\n\n{REGIONS[1]}\n")


@given(st.text())
def test_a_new_body_leaves_regions_and_front_matter_as_they_are(body: str) -> None:
    candidate = replace_body(FULL, body)
    if candidate is None:
        return
    assert [region.raw for region in candidate.skill.regions] == [region.raw for region in FULL.regions]
    assert candidate.skill.text.startswith("---\nname: x\n---\n")
    assert Skill.parse(candidate.skill.text) == candidate.skill


@pytest.mark.parametrize("body", ["", " \n", "<!-- SLOW_UPDATE_START -->", REGIONS[1].replace("notes", "")])
def test_a_body_without_text_is_none(body: str) -> None:
    assert replace_body(FULL, body) is None


def test_a_body_that_says_the_same_is_no_change() -> None:
    same = replace_body(FULL, FULL.body + "\n\n")
    assert same is not None
    assert not same.changed


@pytest.mark.parametrize(("kept", "shrank"), [(40, True), (50, False), (100, False)])
def test_losing_more_than_half_is_noticed(kept: int, shrank: bool) -> None:  # C056
    skill = Skill.parse("x" * 100)
    candidate = replace_body(skill, "y" * kept)
    assert candidate is not None
    assert candidate.shrank is shrank
