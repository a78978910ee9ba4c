"""Applying the selected edits."""

from __future__ import annotations

from skillopt.optimizer.update import update_skill
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
