"""Scripted replies instead of a model, for tests and dry runs.

The setting `script` is the path of a JSON or JSONL file with a list of replies, or, from Python, a
`skillopt.testing.ScriptedModel` (or any object with `reply(call, ctx) -> ModelReply`). A reply is a text or an object:

    {"text": "Paris", "match": "France", "finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    {"error": "rate_limit", "retry_after": 0.05}

The first reply whose `match` (a regular expression) is found in the last user message answers, any number of times.
Calls that match none take the replies without `match` one after another. With several workers the order of calls is
not fixed, so give `match` to whatever has to be reproducible.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol, cast

from skillopt.errors import ConfigError, DataError
from skillopt.model.replies import check_answer, settle
from skillopt.model.scripted import ScriptedModel
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig


class Script(Protocol):
    """Whatever answers calls."""

    def reply(self, call: ModelCall, ctx: CallContext) -> ModelReply:
        """The reply to one call, or an exception."""


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """The script's reply.

    Raises what the script says, EmptyReplyError or TruncatedError for an empty text, ConfigError for no script.
    """
    if ctx.cancel is not None:
        ctx.cancel.raise_if_cancelled()
    reply = _script(role, ctx).reply(call, ctx)
    who = f"{role.role} model {role.model!r}"
    check_answer(reply, who)
    return settle(reply, role.role, who, remote=not reply.text.strip())


def _script(role: RoleConfig, ctx: CallContext) -> Script:
    given = role.settings.get("script")
    if hasattr(given, "reply"):
        return cast("Script", given)
    if not given:
        raise ConfigError("The backend mock_chat needs a file of replies; set model.mock_chat_script.")
    path = Path(str(given))
    return ctx.resources.get(("mock_chat", str(path)), lambda: _read(path))


def _read(path: Path) -> Script:
    """The script in a file; what is wrong with it ends the run, since no call can succeed."""
    try:
        return ScriptedModel.from_file(path)
    except DataError as error:
        raise ConfigError(f"model.mock_chat_script: {error}") from error
    except re.error as error:
        raise ConfigError(
            f"model.mock_chat_script: {path}: {error.pattern!r} is no regular expression: {error}."
        ) from error
