"""Selection: of the merged items (edits or suggestions), the best few that the step's budget allows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from skillopt.errors import ReplyError
from skillopt.model.values import Material
from skillopt.prompts.asking import Asks, Question, ask_typed
from skillopt.prompts.modes import PATCH, UpdateMode, describe_item
from skillopt.prompts.sections import advice_section, join_sections, section, skill_section
from skillopt.prompts.tokens import shorten_middle
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit
from skillopt.types import Patch, PatchItem

_LIST_TOKENS = 40_000  # what the whole list may take
_ITEM_TOKENS = 800  # what one item may take in the list
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
    mode: UpdateMode = PATCH,
) -> Patch:
    """At most `budget` of the patch's items, the best first.

    No call is made when the budget is 0 (an empty patch) or covers all items (the patch as it is). Otherwise one
    ranking call decides. When it fails, or names no usable item, the first `budget` items are kept, a
    `ranking_fallback` event says why, and `ranking_details` has `fallback: true`.
    """
    if budget <= 0:
        return replace(patch, edits=())
    if len(patch.edits) <= budget:
        return patch
    question = _question(patch, budget, skill, meta_skill_context, mode)
    answer = ask_typed(session, question, partial(parse_ranking, count=len(patch.edits)))
    if answer.value is None:
        return _fallback(patch, budget, answer.reason, emit, mode)
    ranking = answer.value
    if ranking.ignored and emit is not None:
        emit("ranking_ignored", stage="ranking", ignored=list(ranking.ignored))
    chosen = ranking.indices[:budget]
    return _selected(patch, chosen, {"fallback": False, "reasoning": ranking.reasoning}, mode)


def _question(patch: Patch, budget: int, skill: Skill, meta_skill: str, mode: UpdateMode) -> Question:
    count = len(patch.edits)
    listed = "\n\n".join(describe_edit(index, item) for index, item in enumerate(patch.edits))
    user = join_sections(
        advice_section(meta_skill),
        skill_section(skill.body),
        section(f"Proposed {mode.labels} (numbered 0 to {count - 1})", listed, mode.labels, _LIST_TOKENS),
        f"## Your choice\n\nChoose at most {budget} of the {mode.count(count)}.",
    )
    material = Material(edits=patch.only_edits, budget=budget, skill=skill.text)
    return Question("ranking", mode.prompt("ranking"), user, material)


def describe_edit(index: int, item: PatchItem) -> str:
    """One item as the list of a ranking shows it."""
    return shorten_middle(f"[{index}] {describe_item(item)}", _ITEM_TOKENS)


def parse_ranking(data: Mapping[str, Any], count: int) -> Ranking:
    """Read `{"selected_indices": [...]}` over `count` items.

    Whole numbers count, also as text or as a float without a fraction, each once. Booleans, fractions, anything else
    and numbers out of range are left out and reported. Raises ReplyError (`wrong_shape`) when none is left.
    """
    rows = data.get("selected_indices")
    if not isinstance(rows, list):
        raise ReplyError('"selected_indices" must be a list of whole numbers', "wrong_shape")
    indices, ignored = _usable(rows, count)
    if not indices:
        found = "; ".join(ignored[:5]) or "the list is empty"
        raise ReplyError(f'"selected_indices" names no item from 0 to {count - 1}: {found}', "wrong_shape")
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


def _fallback(patch: Patch, budget: int, reason: str, emit: Emit | None, mode: UpdateMode) -> Patch:
    if emit is not None:
        emit("ranking_fallback", stage="ranking", reason=reason, kept=budget, n_edits=len(patch.edits))
    return _selected(patch, tuple(range(budget)), {"fallback": True, "reason": reason}, mode)


def _selected(patch: Patch, indices: tuple[int, ...], details: Mapping[str, Any], mode: UpdateMode) -> Patch:
    items = tuple(patch.edits[index] for index in indices)
    note = f"[selected {len(items)} of {mode.count(len(patch.edits))}]"
    reasoning = f"{patch.reasoning}\n{note}" if patch.reasoning else note
    return Patch(items, reasoning, {**details, "selected_indices": list(indices), "n_available": len(patch.edits)})
