"""Update: what was selected gives the candidate, by applying edits or by taking a text that was written anew."""

from __future__ import annotations

from dataclasses import dataclass

from skillopt.errors import SkillFormatError
from skillopt.skill.document import Skill, shrink_ratio
from skillopt.skill.edits import EditOutcome, apply_edits
from skillopt.types import Patch

MOST_SHRINK = 0.5
"""A rewritten body that lost more than this share of its text is pointed out: a model may have cut it off."""


@dataclass(frozen=True, slots=True)
class Update:
    """The skill to be judged, what became of each edit, and whether it differs from the skill it came from.

    `outcome` has no rows when the text was rewritten. `changed` is False when the texts are the same but for white
    space: such a candidate needs no evaluation. `shrank`: a rewritten body lost more than half of its text.
    """

    skill: Skill
    outcome: EditOutcome
    changed: bool
    shrank: bool = False


def update_skill(skill: Skill, patch: Patch) -> Update:
    """Apply the edits of `patch` to `skill`. Pure; an edit that cannot apply has its reason in `outcome.rows`."""
    outcome = apply_edits(skill, patch.edits)
    return Update(outcome.skill, outcome, outcome.changed)


def replace_body(skill: Skill, new_body: str) -> Update | None:
    """`skill` with a body that was written anew; front matter and protected regions stay byte for byte.

    None when nothing usable is left of the new body once protected markers are taken out of it.
    """
    try:
        candidate = skill.with_body(new_body)
    except SkillFormatError:
        return None
    if not candidate.body.strip():
        return None
    changed = not candidate.same_as(skill)
    shrank = shrink_ratio(skill.body, candidate.body) > MOST_SHRINK
    return Update(candidate, EditOutcome(candidate, (), changed), changed, shrank)
