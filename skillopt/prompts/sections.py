"""The parts that messages to the optimizer are made of, each within a size of its own."""

from __future__ import annotations

from skillopt.prompts.fence import fence
from skillopt.prompts.tokens import shorten_middle

SKILL_TOKENS = 24_000
"""What the skill may take in a prompt. Text beyond it is not shown, so no edit can aim at it."""

CONTEXT_TOKENS = 4_000
"""What advice of earlier epochs may take in a prompt."""

MEMORY_TOKENS = 6_000
"""What the memory of earlier steps may take in a prompt."""


def section(title: str, text: str, label: str, max_tokens: int = CONTEXT_TOKENS) -> str:
    """A heading with the text below it, shortened to `max_tokens` and fenced; nothing at all for a blank text."""
    return f"## {title}\n\n{fence(shorten_middle(text, max_tokens), label)}" if text.strip() else ""


def skill_section(body: str) -> str:
    """The editable text of the skill."""
    empty = "## The skill\n\nThe document is still empty: there is nothing in it to aim at or to keep."
    return section("The skill", body, "skill", SKILL_TOKENS) or empty


def memory_section(text: str) -> str:
    """What earlier steps of the run did, as the step buffer tells it; nothing before the first step."""
    return section("Earlier steps of this run", text, "memory", MEMORY_TOKENS)


def advice_section(text: str) -> str:
    """What the optimizer wrote for itself at the end of earlier epochs; nothing if there is none."""
    return section("Advice from earlier epochs", text, "advice")


def join_sections(*sections: str) -> str:
    """The sections that are not empty, a blank line between them."""
    return "\n\n".join(part for part in sections if part) + "\n"
