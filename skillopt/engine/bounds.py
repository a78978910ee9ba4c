"""Notices about what does not fit: the optimizer sees a skill only up to a limit, and nobody should learn that late."""

from __future__ import annotations

from skillopt.prompts.sections import SKILL_TOKENS
from skillopt.prompts.tables import token_counter
from skillopt.prompts.tokens import count_tokens
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit


def warn_oversized(emit: Emit, skill: Skill, before: Skill | None = None) -> None:
    """Tell, once, that `skill` no longer fits into the optimizer's prompts.

    `before` is the skill it takes the place of (None at the start of a run): nothing is said when that was too long
    as well.
    """
    if _fits(skill) or (before is not None and not _fits(before)):
        return
    counter = token_counter()
    emit(
        "notice",
        text=f"The skill has {counter.count(skill.body):,} tokens (by {counter.name}), more than the prompts of the "
        f"optimizer hold ({SKILL_TOKENS:,} by estimate): it sees the beginning and the end, and can only change those. "
        "Shorten the skill, or split it.",
    )


def _fits(skill: Skill) -> bool:
    return count_tokens(skill.body) <= SKILL_TOKENS
