"""How an answer is taken out of a reply: one extractor for every environment that asks for an answer in tags."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal


def last_line(text: str) -> str:
    """The last line that is not blank, without surrounding spaces."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


@dataclass(frozen=True, slots=True)
class AnswerTag:
    """Takes the text of `<answer>…</answer>` out of a reply; call it with the reply.

    A tag may span lines, and case does not matter. An opening tag without its end is no tag, and of nested ones the
    innermost counts. A tag that holds nothing is an empty answer.

    `name`: of the tag. `which`: the `last` tag (default), the `first`, or `outer`, what stands between the last opening
    and the last closing tag. `fallback`: what a reply without a tag answers: its `last_line` (default), the `whole`
    reply, or `none`, nothing.
    """

    name: str = "answer"
    which: Literal["last", "first", "outer"] = "last"
    fallback: Literal["last_line", "whole", "none"] = "last_line"
    _mark: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_mark", re.compile(rf"<(/?){re.escape(self.name)}\s*>", re.IGNORECASE))

    def find(self, text: str) -> str | None:
        """The text of the tag, without surrounding spaces, or None if `text` holds no such tag."""
        start: int | None = None
        found: str | None = None
        for mark in self._mark.finditer(text):
            if not mark[1]:
                start = mark.end()
                found = None if self.which == "outer" else found
            elif start is not None:
                found = text[start : mark.start()].strip()
                if self.which == "first":
                    return found
                start = start if self.which == "outer" else None
        return found

    def __call__(self, text: str) -> str:
        """The answer in `text`: the tag's, or else what `fallback` says."""
        found = self.find(text)
        if found is not None:
            return found
        if self.fallback == "none":
            return ""
        return text.strip() if self.fallback == "whole" else last_line(text)
