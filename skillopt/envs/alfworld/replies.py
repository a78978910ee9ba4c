"""What a reply of the target means: its reasoning, and the action that the game is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skillopt.envs.answers import AnswerTag

LONGEST_ACTION = 200
"""Characters of an action at most; no game has longer ones."""

_ACTION = AnswerTag("action", fallback="none")
_THINK = AnswerTag("think", which="first", fallback="none")
_EDGES = " \t.;:!\"'`*“”‘’"
_NOT_OFFERED = ("help",)


@dataclass(frozen=True, slots=True)
class Move:
    """A chosen action. `admissible`: it is one of those that the game offers, in the game's own spelling."""

    action: str
    admissible: bool


def offered(actions: Sequence[str]) -> list[str]:
    """The actions as shown to the target: those that do something."""
    return [action for action in actions if action not in _NOT_OFFERED]


def read_move(text: str, actions: Sequence[str]) -> Move | None:
    """The action between the last `<action>` tags of a reply, or None when there is none.

    Case, spaces, quotes and a final point do not matter where the game offers the action. Any other action is kept as
    it was written, in one line, for the game to refuse.
    """
    said = _plain(_ACTION(text))
    if not said:
        return None
    known = {_plain(action): action for action in actions}
    if said in known:
        return Move(known[said], admissible=True)
    return Move(said[:LONGEST_ACTION], admissible=False)


def read_thoughts(text: str) -> str:
    """What stands between the first `<think>` tags, or else before the action."""
    found = _THINK(text)
    return found or re.split(r"<(?:action|/think)\s*>", text, maxsplit=1, flags=re.IGNORECASE)[0].strip()


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(_EDGES)
