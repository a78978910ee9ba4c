"""The one way to put a question to the optimizer and get typed JSON back.

A reply that cannot be used is answered once with what is wrong with it; a reply that was cut off is asked for once
more with a larger limit, unless the call path has tried that; a refusal is not argued with. What remains after that is
a value here, not an exception: the stage decides what to do without the answer. Errors after which no other call can
succeed are raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from skillopt.errors import ModelError, ReplyError, TruncatedError
from skillopt.prompts import load_prompt
from skillopt.prompts.fence import fence
from skillopt.prompts.tokens import shorten_middle

if TYPE_CHECKING:
    from skillopt.model.values import Material, ModelReply

T = TypeVar("T")

MAX_COMPLETION_TOKENS = 16384
_SHOWN_REPLY_TOKENS = 4000
_ADVICE: Mapping[str, str] = {
    "ambiguous": "Reply with one JSON object only.",
    "unparsed": "Reply with one JSON object that a strict parser accepts.",
    "wrong_shape": "Reply with the JSON object in exactly the shape that was described.",
}


class Asks(Protocol):
    """What a stage needs of a model session."""

    def ask(
        self,
        role: str,
        system: str,
        user: str,
        *,
        stage: str,
        max_completion_tokens: int = MAX_COMPLETION_TOKENS,
        material: Material | None = None,
        effort: str = "",
    ) -> ModelReply:
        """One call of `role`, with everything that the call path does for it."""
        ...


@runtime_checkable
class Counts(Protocol):
    """A session that wants to know what became of every question."""

    def count(self, answer: Asked[Any]) -> None:
        """Hear of a question that was answered, or not."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the optimizer.

    `material` is the same evidence as values, for optimizers without a model. `effort`: the reasoning effort; blank for
    that of the role.
    """

    stage: str
    system: str
    user: str
    material: Material | None = None
    max_completion_tokens: int = MAX_COMPLETION_TOKENS
    effort: str = ""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """The typed answer, or the reason why there is none.

    `calls` counts the calls that it took. `repaired`: the answer is from a second call, or from JSON that had to be
    mended. `text`: the last reply as it came. `unanswered`: what was asked, as often as it was, when all was in vain.
    """

    value: T | None
    calls: int
    error: ReplyError | ModelError | None = None
    repaired: bool = False
    text: str = ""
    unanswered: tuple[Question, ...] = ()

    @property
    def reason(self) -> str:
        """Why there is no answer: the kind of error and its text; empty if there is one."""
        return "" if self.error is None else f"{type(self.error).__name__}: {self.error}"


def ask_typed(session: Asks, question: Question, parse: Callable[[Mapping[str, Any]], T]) -> Asked[T]:
    """Ask, read one JSON object, and turn it into a value with `parse`, which raises ReplyError for a wrong shape.

    At most two calls. Model errors that leave hope for other calls end up in `Asked.error`; fatal ones, a used-up
    budget and an interruption are raised.
    """
    vain: tuple[Question, ...] = ()
    first = _attempt(session, question, parse)
    if _may_be_mended(first.problem):
        again = _again(question, first)
        second = _attempt(session, again, parse)
        vain = () if second.problem is None else (question, again)
        answer = Asked(second.value, 2, second.problem, second.value is not None, second.text, vain)
    else:
        vain = () if first.problem is None else (question,)
        answer = Asked(first.value, 1, first.problem, first.mended, first.text, vain)
    if isinstance(session, Counts):
        session.count(answer)
    return answer


@dataclass(frozen=True, slots=True)
class _Attempt(Generic[T]):
    """What became of one call: a value or a problem, and the text.

    `cut`: the limit on the reply ended it. `mended`: its JSON had to be repaired.
    """

    value: T | None = None
    problem: ReplyError | ModelError | None = None
    text: str = ""
    cut: bool = False
    mended: bool = False


def _attempt(session: Asks, question: Question, parse: Callable[[Mapping[str, Any]], T]) -> _Attempt[T]:
    from skillopt.utils.invisible import replace_surrogates
    from skillopt.utils.json_reply import read_reply

    try:
        reply = session.ask(
            "optimizer",
            question.system,
            question.user,
            stage=question.stage,
            max_completion_tokens=question.max_completion_tokens,
            material=question.material,
            effort=question.effort,
        )
    except ModelError as error:
        if error.fatal:
            raise
        return _Attempt(problem=error, cut=isinstance(error, TruncatedError))
    text = replace_surrogates(reply.text)  # halves of surrogate pairs fit into no file and no request
    try:
        read = read_reply(text, expect=dict, finish_reason=reply.finish_reason)
        value = parse(json.loads(replace_surrogates(json.dumps(read.value, ensure_ascii=False))))
    except ReplyError as error:
        return _Attempt(problem=error, text=text, cut=reply.finish_reason == "length")
    return _Attempt(value, text=text, mended=read.repaired)


def _may_be_mended(problem: ReplyError | ModelError | None) -> bool:
    """Whether a second call with other words or a larger limit can do better."""
    return isinstance(problem, ReplyError) or (isinstance(problem, TruncatedError) and not problem.final)


def _again(question: Question, attempt: _Attempt[T]) -> Question:
    """The same question with a larger limit, or with the unusable reply and what is wrong with it."""
    if attempt.cut:
        return replace(question, max_completion_tokens=2 * question.max_completion_tokens)
    outcome = attempt.problem.outcome if isinstance(attempt.problem, ReplyError) else ""
    advice = _ADVICE.get(outcome, _ADVICE["unparsed"])
    shown = fence(shorten_middle(attempt.text, _SHOWN_REPLY_TOKENS), "reply")
    repair = load_prompt("repair").format(problem=attempt.problem, advice=advice, reply=shown)
    return replace(question, user=f"{question.user}\n{repair}")
