"""The slow update: guidance for the target that outlives single steps, rewritten once an epoch.

It stands in a protected region of the skill, which no edit of a step reaches.
"""

from __future__ import annotations

from skillopt.optimizer.comparison import (
    COMPARISON_TOKENS,
    build_comparison_pairs,
    format_comparison_text,
    save_comparison_pairs,
)
from skillopt.optimizer.epoch_advice import Advice, EpochChange, Request, ask_about_epoch
from skillopt.prompts.asking import Asks
from skillopt.prompts.sections import section
from skillopt.skill.document import Skill
from skillopt.skill.regions import (
    extract_slow_update_field,
    has_slow_update_field,
    inject_empty_slow_update_field,
    replace_slow_update_field,
)

__all__ = [
    "build_comparison_pairs",
    "extract_slow_update_field",
    "format_comparison_text",
    "has_slow_update_field",
    "inject_empty_slow_update_field",
    "replace_slow_update_field",
    "run_slow_update",
    "save_comparison_pairs",
    "with_guidance",
]

STAGE = "slow_update"
_NONE_YET = "## Guidance so far\n\nThere is none yet."


def run_slow_update(
    change: EpochChange,
    *,
    session: Asks,
    refused: str = "",
    env: str | None = None,
    max_tokens: int = COMPARISON_TOKENS,
) -> Advice:
    """New guidance for the target, from how the skill's change played out.

    The guidance in force is read from the current skill; `refused` tells what was turned down last, and why.
    Raises fatal model errors, a used-up budget and an interruption; any other failure gives empty advice.
    """
    in_force = extract_slow_update_field(change.current.text)
    earlier = (
        section("Guidance so far", in_force, "guidance") or _NONE_YET,
        section("Refused last time", refused, "refused"),
    )
    request = Request(STAGE, "slow_update_content", earlier, env)
    return ask_about_epoch(session, request, change, max_tokens=max_tokens)


def with_guidance(skill: Skill, content: str) -> Skill:
    """The skill with `content` as its only guidance, at the end of the document; body and appendix stay."""
    return Skill.parse(replace_slow_update_field(skill.text, content), skill.files)
