"""Update: the selected edits applied to the skill give the candidate."""

from __future__ import annotations

from dataclasses import dataclass

from skillopt.skill.document import Skill
from skillopt.skill.edits import EditOutcome, apply_edits
from skillopt.types import Patch


@dataclass(frozen=True, slots=True)
class Update:
    """The skill to be judged, what became of each edit, and whether it differs from the skill it came from.

    `changed` is False when the texts are the same but for white space: such a candidate needs no evaluation.
    """

    skill: Skill
    outcome: EditOutcome
    changed: bool


def update_skill(skill: Skill, patch: Patch) -> Update:
    """Apply the edits of `patch` to `skill`. Pure; an edit that cannot apply has its reason in `outcome.rows`."""
    outcome = apply_edits(skill, patch.edits)
    return Update(outcome.skill, outcome, outcome.changed)
