"""Rewriting: the optimizer writes the whole body anew, from selected suggestions, or one of its full rewrites is taken.

The model sees and writes the body only. Front matter and protected regions are put back by code, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.errors import ReplyError
from skillopt.model.values import Material
from skillopt.prompts import load_prompt
from skillopt.prompts.asking import MAX_COMPLETION_TOKENS, Asks, Question, ask_typed
from skillopt.prompts.sections import join_sections, memory_section, section, skill_section
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, Patch, SkillCandidate

_SUGGESTION_TOKENS = 24_000


@dataclass(frozen=True, slots=True)
class RewriteSettings:
    """How the rewrite call is made. `prompt`: an own system prompt; `effort`: blank for that of the role."""

    max_completion_tokens: int = MAX_COMPLETION_TOKENS
    effort: str = ""
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A new body with what the model says about it, or `error`, why there is none (then `new_skill` is empty).

    `candidate`: the whole rewrite that was taken, in the mode that merges whole rewrites.
    """

    new_skill: str = ""
    reasoning: str = ""
    change_summary: tuple[str, ...] = ()
    error: str = ""
    candidate: SkillCandidate | None = None

    def to_dict(self) -> JsonObject:
        """The contents of `rewrite_result.json`."""
        return {
            "reasoning": self.reasoning,
            "change_summary": list(self.change_summary),
            "new_skill": self.new_skill,
            "error": self.error,
        }


def rewrite_skill_from_suggestions(
    skill: Skill,
    patch: Patch,
    *,
    session: Asks,
    settings: RewriteSettings,
    step_buffer_context: str = "",
) -> Rewrite:
    """One call, stage `rewrite`, that gives a complete new body; no call when there are no suggestions."""
    if not patch.edits:
        return Rewrite(error="there are no suggestions")
    listed = json.dumps([item.to_dict() for item in patch.edits], ensure_ascii=False, indent=1)
    user = join_sections(
        skill_section(skill.body),
        section(f"Suggestions ({len(patch.edits)})", listed, "suggestions", _SUGGESTION_TOKENS),
        memory_section(step_buffer_context),
    )
    system = settings.prompt if settings.prompt is not None else load_prompt("rewrite_skill")
    material = Material(skill=skill.text)
    question = Question("rewrite", system, user, material, settings.max_completion_tokens, settings.effort)
    answer = ask_typed(session, question, parse_rewrite)
    return answer.value if answer.value is not None else Rewrite(error=answer.reason)


def parse_rewrite(data: Mapping[str, Any]) -> Rewrite:
    """Read `{"reasoning": ..., "change_summary": [...], "new_skill": "..."}`. Raises ReplyError (`wrong_shape`)."""
    text = data.get("new_skill")
    if not isinstance(text, str) or not text.strip():
        raise ReplyError('"new_skill" must be the complete new text of the skill', "wrong_shape")
    reasoning, summary = data.get("reasoning"), data.get("change_summary")
    rows = summary if isinstance(summary, list) else []
    return Rewrite(
        new_skill=end_with_newline(text),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        change_summary=tuple(row for row in rows if isinstance(row, str) and row.strip()),
    )


def first_candidate(patch: Patch) -> Rewrite:
    """The first whole skill of a merged patch that has text."""
    for item in patch.edits:
        if isinstance(item, SkillCandidate) and item.new_skill.strip():
            return Rewrite(end_with_newline(item.new_skill), patch.reasoning, item.change_summary, candidate=item)
    return Rewrite(error="no candidate holds a text")


def end_with_newline(text: str) -> str:
    """`text` without white space at its end, and a line end."""
    return text.rstrip() + "\n"
