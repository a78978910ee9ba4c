"""Selection: of the merged edits, the best few that the step's budget allows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from skillopt.errors import ReplyError
from skillopt.model.values import Material
from skillopt.prompts import load_prompt
from skillopt.prompts.asking import Asks, Question, ask_typed
from skillopt.prompts.sections import advice_section, join_sections, section, skill_section
from skillopt.prompts.tokens import shorten_middle
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit
from skillopt.types import Edit, Patch

_LIST_TOKENS = 40_000  # what the whole list may take
_EDIT_TOKENS = 800  # what one edit may take in the list
_WHOLE_TEXT = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The usable numbers of a ranking reply, best first and each once, and what was left out of it."""

    indices: tuple[int, ...]
    reasoning: str = ""
    ignored: tuple[str, ...] = ()


def rank_and_select(
    patch: Patch,
    budget: int,
    skill: Skill,
    *,
    session: Asks,
    meta_skill_context: str = "",
    emit: Emit | None = None,
) -> Patch:
    """At most `budget` of the patch's edits, the best first.

    No call is made when the budget is 0 (an empty patch) or covers all edits (the patch as it is). Otherwise one
    ranking call decides. When it fails, or names no usable edit, the first `budget` edits are kept, a
    `ranking_fallback` event says why, and `ranking_details` has `fallback: true`.
    """
    if budget <= 0:
        return replace(patch, edits=())
    if len(patch.edits) <= budget:
        return patch
    question = _question(patch, budget, skill, meta_skill_context)
    answer = ask_typed(session, question, partial(parse_ranking, count=len(patch.edits)))
    if answer.value is None:
        return _fallback(patch, budget, answer.reason, emit)
    ranking = answer.value
    if ranking.ignored and emit is not None:
        emit("ranking_ignored", stage="ranking", ignored=list(ranking.ignored))
    chosen = ranking.indices[:budget]
    return _selected(patch, chosen, {"fallback": False, "reasoning": ranking.reasoning})


def _question(patch: Patch, budget: int, skill: Skill, meta_skill: str) -> Question:
    count = len(patch.edits)
    listed = "\n\n".join(describe_edit(index, edit) for index, edit in enumerate(patch.edits))
    user = join_sections(
        advice_section(meta_skill),
        skill_section(skill.body),
        section(f"Proposed edits (numbered 0 to {count - 1})", listed, "edits", _LIST_TOKENS),
        f"## Your choice\n\nChoose at most {budget} of the {count} edits.",
    )
    material = Material(edits=patch.edits, budget=budget, skill=skill.text)
    return Question("ranking", load_prompt("ranking"), user, material)


def describe_edit(index: int, edit: Edit) -> str:
    """One edit as the list of a ranking shows it."""
    facts = [edit.op]
    if edit.support_count is not None:
        facts.append(f"support {edit.support_count}")
    if edit.source_type:
        facts.append(f"from {edit.source_type}")
    if edit.merge_level is not None:
        facts.append(f"merge level {edit.merge_level}")
    rows = [f"[{index}] {', '.join(facts)}"]
    rows.extend(f"{name}: {text}" for name, text in (("target", edit.target), ("content", edit.content)) if text)
    return shorten_middle("\n".join(rows), _EDIT_TOKENS)


def parse_ranking(data: Mapping[str, Any], count: int) -> Ranking:
    """Read `{"selected_indices": [...]}` over `count` edits.

    Whole numbers count, also as text or as a float without a fraction, each once. Booleans, fractions, anything else
    and numbers out of range are left out and reported. Raises ReplyError (`wrong_shape`) when none is left.
    """
    rows = data.get("selected_indices")
    if not isinstance(rows, list):
        raise ReplyError('"selected_indices" must be a list of whole numbers', "wrong_shape")
    indices, ignored = _usable(rows, count)
    if not indices:
        found = "; ".join(ignored[:5]) or "the list is empty"
        raise ReplyError(f'"selected_indices" names no edit from 0 to {count - 1}: {found}', "wrong_shape")
    reasoning = data.get("reasoning")
    return Ranking(tuple(indices), reasoning if isinstance(reasoning, str) else "", tuple(ignored))


def _usable(rows: Sequence[object], count: int) -> tuple[list[int], list[str]]:
    indices: list[int] = []
    ignored: list[str] = []
    for row in rows:
        index = _whole(row)
        if index is None:
            ignored.append(f"{str(row)[:40]!r} is not a whole number")
        elif not 0 <= index < count:
            ignored.append(f"{index} is out of range")
        elif index not in indices:
            indices.append(index)
    return indices, ignored


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        return int(value) if _WHOLE_TEXT.fullmatch(value.strip()) else None
    return None


def _fallback(patch: Patch, budget: int, reason: str, emit: Emit | None) -> Patch:
    if emit is not None:
        emit("ranking_fallback", stage="ranking", reason=reason, kept=budget, n_edits=len(patch.edits))
    return _selected(patch, tuple(range(budget)), {"fallback": True, "reason": reason})


def _selected(patch: Patch, indices: tuple[int, ...], details: Mapping[str, Any]) -> Patch:
    edits = tuple(patch.edits[index] for index in indices)
    note = f"[selected {len(edits)} of {len(patch.edits)} edits]"
    reasoning = f"{patch.reasoning}\n{note}" if patch.reasoning else note
    return Patch(edits, reasoning, {**details, "selected_indices": list(indices), "n_available": len(patch.edits)})
