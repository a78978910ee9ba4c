"""Says which known name a person may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the nearest of `known`, or an empty text."""
    near = difflib.get_close_matches(name.strip().lower(), [word for word in known if word], n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
