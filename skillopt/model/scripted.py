"""A model that says what a script says: a list, a function, or a file. Used by the backend `mock_chat`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillopt import errors
from skillopt.errors import DataError, ModelError
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig, Usage
from skillopt.utils.files import read_text

Answer = str | ModelReply | Exception | Mapping[str, Any]

ERRORS: Mapping[str, Callable[[str, float | None], ModelError]] = {
    "auth": lambda text, _: errors.AuthError(text),
    "setup": lambda text, _: errors.ModelSetupError(text),
    "bad_request": lambda text, _: errors.BadRequestError(text),
    "context": lambda text, _: errors.ContextTooLongError(text),
    "rate_limit": errors.RateLimitError,
    "transient": errors.TransientError,
    "empty": lambda text, _: errors.EmptyReplyError(text),
    "truncated": lambda text, _: errors.TruncatedError(text),
}
_FIELDS = frozenset({"text", "match", "finish_reason", "usage", "model", "reasoning", "tool_calls"})
_ERROR_FIELDS = frozenset({"error", "match", "message", "retry_after"})


@dataclass(frozen=True, slots=True)
class _Line:
    answer: ModelReply | Exception
    match: re.Pattern[str] | None = None


class ScriptedModel:
    """A script: a function of the call, or a list of replies.

    A function `(call) -> str | ModelReply | Exception | dict` depends on nothing but the call, so it gives the same run
    with any number of workers. A list answers by `match` first (see `skillopt.model.backends.mock_chat`), then in the
    order of the calls. `calls` holds every call made, in order of arrival. Errors of ours that a script raises or
    gives are raised as they are; anything else that a function raises becomes a ModelError.

        model = ScriptedModel(lambda call: "Paris" if "France" in call.last_user else "?")
        session = Session({"target": model.role("target")})
    """

    def __init__(
        self, script: Sequence[Answer] | Callable[[ModelCall], Answer], *, name: str = "script", loop: bool = False
    ) -> None:
        self._function = script if callable(script) else None
        lines = [] if callable(script) else [_line(answer, f"{name}, reply {n}") for n, answer in enumerate(script, 1)]
        self._matching = [line for line in lines if line.match is not None]
        self._ordered = [line for line in lines if line.match is None]
        self._name, self._loop = name, loop
        self._lock = threading.Lock()
        self._next = 0
        self.calls: list[ModelCall] = []

    def __repr__(self) -> str:
        return f"ScriptedModel({self._name})"

    @classmethod
    def from_file(cls, path: Path) -> ScriptedModel:
        """Read a script from a JSON list or from JSON lines. Raises DataError naming file and place."""
        text = read_text(path)
        try:
            if path.suffix.lower() == ".jsonl":
                data = [json.loads(line) for line in text.split("\n") if line.strip()]
            else:
                data = json.loads(text)
        except ValueError as error:
            raise DataError(f"{path}: not readable as JSON ({error}).") from error
        if not isinstance(data, list):
            raise DataError(f"{path}: expected a list of replies (texts or objects).")
        return cls(data, name=str(path))

    def role(self, role: str = "target", *, model: str = "scripted", **settings: Any) -> RoleConfig:
        """A role that is answered by this script."""
        return RoleConfig(role=role, backend="mock_chat", model=model, settings={"script": self, **settings})

    def _ask_function(self, call: ModelCall) -> Any:
        if self._function is None:
            return None
        try:
            return self._function(call)
        except errors.SkillOptError:
            raise
        except Exception as error:
            raise errors.ModelError(f"{self._name}: the function raised {type(error).__name__}: {error}") from error

    def reply(self, call: ModelCall, ctx: CallContext) -> ModelReply:  # noqa: ARG002 - a backend's signature
        """The reply to one call. Raises what the script says, and ModelSetupError when a list is used up."""
        with self._lock:
            self.calls.append(call)
        given = self._ask_function(call)
        answer = self._from_list(call) if given is None else _line(given, self._name).answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _from_list(self, call: ModelCall) -> ModelReply | Exception:
        for line in self._matching:
            if line.match is not None and line.match.search(call.last_user):
                return line.answer
        with self._lock:
            if self._loop and self._next >= len(self._ordered):
                self._next = 0
            if self._next >= len(self._ordered):
                raise errors.ModelSetupError(
                    f"{self._name}: the script has no reply left for call {len(self.calls)} "
                    f"(stage {call.stage!r}): {call.last_user[:200]!r}"
                )
            self._next += 1
            return self._ordered[self._next - 1].answer


def _line(answer: Answer, where: str) -> _Line:
    """One reply of a script, checked."""
    if isinstance(answer, Exception):
        return _Line(answer)
    if isinstance(answer, ModelReply):
        return _Line(answer)
    if isinstance(answer, str):
        return _Line(ModelReply(answer, usage=Usage(calls=1)))
    if not isinstance(answer, Mapping):
        raise DataError(f"{where}: expected a text or an object, not {type(answer).__name__}.")
    match = re.compile(str(answer["match"]), re.DOTALL) if "match" in answer else None
    return replace(_line(_error(answer, where) if "error" in answer else _reply(answer, where), where), match=match)


def _reply(answer: Mapping[str, Any], where: str) -> ModelReply:
    _refuse_unknown(answer, _FIELDS, where)
    usage = {"calls": 1, **(answer.get("usage") or {})}
    return ModelReply.from_dict({"text": "", **answer, "usage": usage})


def _error(answer: Mapping[str, Any], where: str) -> ModelError:
    _refuse_unknown(answer, _ERROR_FIELDS, where)
    make = ERRORS.get(str(answer["error"]))
    if make is None:
        raise DataError(f"{where}: unknown error {answer['error']!r}; expected one of {', '.join(ERRORS)}.")
    return make(str(answer.get("message") or f"Scripted: {answer['error']}."), answer.get("retry_after"))


def _refuse_unknown(answer: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    unknown = sorted(set(answer) - known)
    if unknown:
        raise DataError(f"{where}: unknown field {unknown[0]!r}; expected {', '.join(sorted(known))}.")
