"""The program inside a reply."""

from __future__ import annotations

import re

_OPENING = re.compile(r"```[^\n`]*\n")
_CLOSING = re.compile(r"^[ \t]*```", re.MULTILINE)


def extract_code(reply: str) -> str:
    """The first fenced block of a reply, whatever its language; without a fence the whole reply.

    A block ends at the first line that begins with a fence, else at the next fence anywhere; a block that never ends
    (the reply was cut off) reaches to the end of the reply. Blank lines around the program are left out.
    """
    opening = _OPENING.search(reply)
    if opening is None:
        return "" if re.fullmatch(r"\s*```\w*\s*", reply) else _trimmed(reply)
    body = reply[opening.end() :]
    closing = _CLOSING.search(body)
    end = closing.start() if closing else body.find("```")
    return _trimmed(body[:end] if end >= 0 else body)


def _trimmed(text: str) -> str:
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    return "\n".join(lines).rstrip() if lines else ""
