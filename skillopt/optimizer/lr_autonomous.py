"""Learning-rate control by the optimizer itself: one question decides how many of the merged items a step applies."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from skillopt.errors import ReplyError
from skillopt.model.values import Material
from skillopt.prompts import load_prompt
from skillopt.prompts.asking import Asks, Question, ask_typed
from skillopt.prompts.modes import PATCH, UpdateMode, describe_item
from skillopt.prompts.sections import advice_section, join_sections, memory_section, section, skill_section
from skillopt.prompts.tokens import shorten_middle
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit
from skillopt.types import JsonObject, Patch

_LIST_TOKENS = 40_000  # what the whole list may take
_ITEM_TOKENS = 800  # what one item may take in the list
_INTEGER = re.compile(r"-?[0-9]+")
_CONFIDENCE = ("low", "medium", "high")
_SHOWN_REPLY = 4000  # characters of the reply that are kept
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the decision is made from, besides the items: the step's rollout, the memory and the advice."""

    rollout_n: int = 0
    rollout_hard: float = 0.0
    rollout_soft: float = 0.0
    step_buffer: str = ""
    meta_skill: str = ""


@dataclass(frozen=True, slots=True)
class LrDecision:
    """How many items a step applies and why.

    `raw_learning_rate` is the number as the model gave it, None without one; `clamped` when it lay outside of 0 to
    `available_update_items`. `fallback`: there was no usable answer (`error` says why), so the schedule decided.
    `asked` is False when there was nothing to decide.
    """

    learning_rate: int
    available_update_items: int
    raw_learning_rate: int | None = None
    clamped: bool = False
    fallback: bool = False
    asked: bool = True
    reasoning: str = ""
    confidence: str = ""
    risk_notes: tuple[str, ...] = ()
    raw_response: str = ""
    error: str = ""

    def to_dict(self) -> JsonObject:
        """The contents of `lr_decision.json`."""
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "risk_notes": list(self.risk_notes)}


@dataclass(frozen=True, slots=True)
class LrReply:
    """The usable parts of a reply."""

    learning_rate: int
    reasoning: str = ""
    confidence: str = ""
    risk_notes: tuple[str, ...] = field(default=())


def decide_autonomous_learning_rate(
    patch: Patch,
    skill: Skill,
    evidence: Evidence,
    *,
    session: Asks,
    scheduled: int,
    mode: UpdateMode = PATCH,
    emit: Emit | None = None,
) -> LrDecision:
    """How many of the patch's items to apply, between 0 and all of them.

    One call, stage `lr_autonomous`; none when there are fewer than two items, which are then applied. Without a usable
    answer the decision is `scheduled`, the value of the schedule, with `fallback: true` and an `lr_fallback` event.
    """
    available = len(patch.edits)
    if available < 2:
        return LrDecision(available, available, asked=False, reasoning="nothing to decide")
    answer = ask_typed(session, _question(patch, skill, evidence, mode), parse_learning_rate)
    shown = answer.text[:_SHOWN_REPLY]
    if answer.value is None:
        kept = _within(scheduled, available)
        if emit is not None:
            emit("lr_fallback", stage="lr_autonomous", reason=answer.reason, kept=kept, available=available)
        return LrDecision(
            kept, available, clamped=kept != scheduled, fallback=True, raw_response=shown, error=answer.reason
        )
    reply = answer.value
    decided = _within(reply.learning_rate, available)
    return LrDecision(
        learning_rate=decided,
        available_update_items=available,
        raw_learning_rate=reply.learning_rate,
        clamped=decided != reply.learning_rate,
        reasoning=reply.reasoning,
        confidence=reply.confidence,
        risk_notes=reply.risk_notes,
        raw_response=shown,
    )


def _within(number: int, available: int) -> int:
    return max(0, min(number, available))


def _question(patch: Patch, skill: Skill, evidence: Evidence, mode: UpdateMode) -> Question:
    items = (f"[{i}] {shorten_middle(describe_item(item), _ITEM_TOKENS)}" for i, item in enumerate(patch.edits))
    facts = (
        f"Tasks tried with the skill: {evidence.rollout_n}\n"
        f"Mean hard score: {evidence.rollout_hard:.6f}\n"
        f"Mean soft score: {evidence.rollout_soft:.6f}\n"
        f"Proposed: {mode.count(len(patch.edits))}"
    )
    user = join_sections(
        advice_section(evidence.meta_skill),
        skill_section(skill.body),
        f"## Evidence of this step\n\n{facts}",
        section(f"Proposed {mode.labels}", "\n\n".join(items), mode.labels.replace(" ", "_"), _LIST_TOKENS),
        memory_section(evidence.step_buffer),
    )
    material = Material(edits=patch.only_edits, budget=len(patch.edits), skill=skill.text)
    return Question("lr_autonomous", load_prompt("lr_autonomous"), user, material)


def parse_learning_rate(data: Mapping[str, Any]) -> LrReply:
    """Read `{"learning_rate": 3, "reasoning": ..., "confidence": ..., "risk_notes": [...]}`.

    The rate is a whole number, a finite float (its whole part), or a text (the first whole number in it). Raises
    ReplyError (`wrong_shape`) for a boolean and for anything without a number.
    """
    number = read_number(data.get("learning_rate"))
    if number is None:
        raise ReplyError('"learning_rate" must be a whole number from 0 on', "wrong_shape")
    reasoning, confidence, notes = data.get("reasoning"), data.get("confidence"), data.get("risk_notes")
    word = confidence.strip().lower() if isinstance(confidence, str) else ""
    rows = [notes] if isinstance(notes, str) else notes if isinstance(notes, list) else []
    return LrReply(
        learning_rate=number,
        reasoning=reasoning if isinstance(reasoning, str) else "",
        confidence=word if word in _CONFIDENCE else "",
        risk_notes=tuple(row for row in rows if isinstance(row, str) and row.strip()),
    )


def read_number(value: object) -> int | None:
    """The whole number that a value means, or None; never a boolean. Huge numbers are cut to nine digits of size."""
    if isinstance(value, str):
        found = _INTEGER.search(value)
        return None if found is None else int(found.group()[:_MOST_DIGITS])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    most = 10**_MOST_DIGITS - 1
    number = int(value)
    return most if number > most else -most if number < -most else number
