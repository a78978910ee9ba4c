"""The meta skill: what the optimizer notes for itself at the end of an epoch. The target never sees it."""

from __future__ import annotations

from skillopt.optimizer.comparison import COMPARISON_TOKENS
from skillopt.optimizer.epoch_advice import Advice, EpochChange, Request, ask_about_epoch
from skillopt.prompts.asking import Asks
from skillopt.prompts.sections import CONTEXT_TOKENS, section
from skillopt.prompts.tokens import shorten_middle

STAGE = "meta_skill"
_NONE_YET = "## Your notes so far\n\nThere are none yet."


def run_meta_skill(
    change: EpochChange,
    *,
    session: Asks,
    memory: str = "",
    env: str | None = None,
    max_tokens: int = COMPARISON_TOKENS,
) -> Advice:
    """New notes for later optimizer calls, in the place of the earlier ones (`memory`).

    Raises fatal model errors, a used-up budget and an interruption; any other failure gives empty advice.
    """
    earlier = (section("Your notes so far", memory, "notes") or _NONE_YET,)
    return ask_about_epoch(session, Request(STAGE, "meta_skill_content", earlier, env), change, max_tokens=max_tokens)


def format_meta_skill_context(content: str) -> str:
    """The notes as `meta_skill_context` of analyst, merge, ranking and learning-rate calls; empty without notes.

    Title and fence are added by `skillopt.prompts.sections.advice_section`, as each of those calls does.
    """
    return shorten_middle(content.strip(), CONTEXT_TOKENS)
