"""Search results within a length: whole documents as long as they fit."""

from __future__ import annotations

import re

LIMIT = 6000
"""Characters of search results in a prompt."""

CUT_MARK = "\n[text cut off]"
_DOCUMENT = re.compile(r"(?=\[DOC\])")


def shorten_context(context: str, limit: int = LIMIT) -> str:
    """`context`, if it is too long only its first documents that fit into `limit` characters together.

    A document begins with the mark `[DOC]`; text before the first mark is one, too. If not even the first one fits, its
    first `limit` characters and a mark that there was more.
    """
    if len(context) <= limit:
        return context
    end = 0
    for document in _DOCUMENT.split(context):
        if len(context[: end + len(document)].rstrip()) > limit:
            break
        end += len(document)
    return context[:end].rstrip() or context[:limit] + CUT_MARK
