"""Does a proposal copy single tasks into the skill? Looks for item ids and reference texts in its words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillopt.prompts.modes import item_text
from skillopt.types import Edit, PatchItem, RolloutResult

_SHORTEST_ID = 4  # shorter ids are ordinary words and numbers
_SHORTEST_REFERENCE = 12  # shorter references are ordinary answers ("Paris", "yes", "2024-05-01")


def find_leaks(items: Sequence[PatchItem], results: Sequence[RolloutResult]) -> tuple[str, ...]:
    """One line for each item id or reference text of `results` that an item's text holds word for word.

    Case and white space do not matter. Ids count when they hold a digit and at least 4 characters, references from
    12 characters on. A hint for a reader, not a proof: the caller reports it and goes on.
    """
    found = []
    for number, item in enumerate(items, 1):
        text = _plain(item_text(item))
        name = f"{'edit' if isinstance(item, Edit) else 'proposal'} {number}"
        for result in results:
            if _is_telling_id(result.id) and _holds(text, result.id):
                found.append(f"{name} names item {result.id!r}")
            if len(_plain(result.reference_text)) >= _SHORTEST_REFERENCE and _holds(text, result.reference_text):
                found.append(f"{name} holds the reference of item {result.id!r}")
    return tuple(found)


def _is_telling_id(item_id: str) -> bool:
    return len(item_id) >= _SHORTEST_ID and any(char.isdigit() for char in item_id)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _holds(text: str, part: str) -> bool:
    """Whether `part` stands in `text` with no letter or digit right before or after it."""
    return re.search(rf"(?<!\w){re.escape(_plain(part))}(?!\w)", text) is not None
