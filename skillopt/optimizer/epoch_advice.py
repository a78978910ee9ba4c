"""One question about a whole epoch: what do the pairs of two skills teach? Asked in parts where they are many.

The slow update asks it for the target, the meta skill for the optimizer. Pairs that do not fit into one prompt are
shown in several; each gives a draft, and a last call makes one text of the drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skillopt.errors import ReplyError
from skillopt.model.values import Material
from skillopt.optimizer.comparison import COMPARISON_TOKENS, Pair, format_comparison_text, split_pairs
from skillopt.prompts import load_prompt
from skillopt.prompts.asking import Asked, Asks, Question, ask_typed
from skillopt.prompts.sections import CONTEXT_TOKENS, SKILL_TOKENS, join_sections, section
from skillopt.prompts.tokens import count_tokens
from skillopt.skill.document import Skill
from skillopt.skill.regions import neutralize_markers


@dataclass(frozen=True, slots=True)
class EpochChange:
    """What an epoch, or several, did to the skill: both texts, and the pairs that show the effect."""

    previous: Skill
    current: Skill
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """What the optimizer wrote. `content` is empty when it wrote nothing, or when the calls failed (`errors`).

    `errors` names the parts that gave nothing; `calls` counts the calls.
    """

    content: str = ""
    reasoning: str = ""
    calls: int = 0
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A stage's question.

    `key`: the field of the reply that holds the text; `earlier`: sections before the pairs; `env`: the environment,
    which may bring a prompt of its own.
    """

    stage: str
    key: str
    earlier: tuple[str, ...] = ()
    env: str | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    content: str
    reasoning: str


def ask_about_epoch(
    session: Asks, request: Request, change: EpochChange, *, max_tokens: int = COMPARISON_TOKENS
) -> Advice:
    """One text from all pairs: one call where they fit into `max_tokens`, else a call a part and one to join.

    No pairs make no call. A part whose call fails is left out and named in `errors`; when the last call fails, nothing
    is left. Raises fatal model errors, a used-up budget and an interruption.
    """
    parts = split_pairs(change.pairs, max_tokens)
    if not parts:
        return Advice(errors=("no item to compare",))
    answers = [
        _ask(session, request, change, _comparison_section(part, number, len(parts)))
        for number, part in enumerate(parts, 1)
    ]
    calls = sum(answer.calls for answer in answers)
    errors = tuple(
        f"part {number} of {len(parts)}: {answer.reason}"
        for number, answer in enumerate(answers, 1)
        if answer.value is None
    )
    read = [answer.value for answer in answers if answer.value is not None]
    drafts = [draft for draft in read if draft.content]
    if len(drafts) <= 1:
        only = (drafts or read or [_Draft("", "")])[0]
        return Advice(only.content, only.reasoning, calls, errors)
    joined = _ask(session, request, change, _drafts_section(drafts, max_tokens))
    if joined.value is None:
        return Advice("", "", calls + joined.calls, (*errors, f"joining the drafts: {joined.reason}"))
    return Advice(joined.value.content, joined.value.reasoning, calls + joined.calls, errors)


def _ask(session: Asks, request: Request, change: EpochChange, evidence: str) -> Asked[_Draft]:
    user = join_sections(
        section("The skill before", change.previous.body, "skill", SKILL_TOKENS) or _empty("The skill before"),
        section("The skill now", change.current.body, "skill", SKILL_TOKENS) or _empty("The skill now"),
        *request.earlier,
        evidence,
    )
    material = Material(skill=change.current.text)
    parse: Callable[[Mapping[str, Any]], _Draft] = partial(_parse, request.key)
    return ask_typed(session, Question(request.stage, load_prompt(request.stage, request.env), user, material), parse)


def _empty(title: str) -> str:
    return f"## {title}\n\nThe document is empty."


def _comparison_section(part: Sequence[Pair], number: int, total: int) -> str:
    which = "" if total == 1 else f", part {number} of {total}"
    return f"## The comparison{which}\n\n{format_comparison_text(part)}"


def _drafts_section(drafts: Sequence[_Draft], max_tokens: int) -> str:
    each = min(CONTEXT_TOKENS, max_tokens // len(drafts))
    shown = (section(f"Draft {number}", draft.content, "draft", each) for number, draft in enumerate(drafts, 1))
    intro = f"## Drafts\n\nThe tasks were shown in {len(drafts)} parts. Make one text of these drafts."
    return join_sections(intro, *shown)


def _parse(key: str, data: Mapping[str, Any]) -> _Draft:
    """Read `{"reasoning": ..., key: ...}`. Null or blank text is an answer: nothing to say."""
    if key not in data:
        raise ReplyError(f'the key "{key}" is missing', "wrong_shape")
    value = data[key]
    if value is not None and not isinstance(value, str):
        raise ReplyError(f'"{key}" must be text', "wrong_shape")
    content = neutralize_markers(value or "").strip()
    size = count_tokens(content)
    if size > CONTEXT_TOKENS:
        raise ReplyError(f'"{key}" is too long: about {size} tokens, at most {CONTEXT_TOKENS}', "wrong_shape")
    reasoning = data.get("reasoning")
    return _Draft(content, reasoning if isinstance(reasoning, str) else "")
