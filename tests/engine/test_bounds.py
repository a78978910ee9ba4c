"""What the optimizer is sent has a largest size, whatever the run holds."""

from __future__ import annotations

from typing import Any

from skillopt.engine.bounds import warn_oversized
from skillopt.gradient.trajectories import GROUP_TOKENS, TRAJECTORY_TOKENS, fmt_minibatch_trajectories
from skillopt.prompts.sections import SKILL_TOKENS
from skillopt.prompts.tokens import count_tokens
from skillopt.skill.document import Skill
from skillopt.types import RolloutResult

LONG = Skill.parse("- A rule.\n" * SKILL_TOKENS)
SHORT = Skill.parse("- A rule.\n")


def notices(skill: Skill, before: Skill | None) -> list[str]:
    seen: list[Any] = []
    warn_oversized(lambda kind, **data: seen.append((kind, data["text"])), skill, before)
    assert all(kind == "notice" for kind, _ in seen)
    return [text for _, text in seen]


def test_a_skill_that_outgrows_the_prompt_is_told_once() -> None:
    assert len(notices(LONG, None)) == len(notices(LONG, SHORT)) == 1
    assert "24,000" in notices(LONG, SHORT)[0]
    assert notices(LONG, LONG) == notices(SHORT, LONG) == notices(SHORT, None) == []


def test_a_large_group_shares_the_room_of_its_trajectories() -> None:
    def group(number: int, size: int) -> str:
        entry = {"role": "assistant", "content": "word " * size}
        return fmt_minibatch_trajectories([RolloutResult(id=f"i{n}", trajectory=(entry,)) for n in range(number)])

    assert TRAJECTORY_TOKENS - 10 < count_tokens(group(1, 100_000)) < TRAJECTORY_TOKENS + 30
    assert count_tokens(group(8, 20_000)) > 8 * (TRAJECTORY_TOKENS - 10)
    assert count_tokens(group(200, 2_000)) < GROUP_TOKENS + 200 * 30
    assert "characters left out here" not in group(200, 100)
