"""The size of a text in tokens, estimated, and a cut that keeps both ends.

The estimate is a quarter of the UTF-8 bytes. It needs no tables, and it is the same on every machine: a prompt that
was cut with it stays the same text, so a stored reply to it is found again.
"""

from __future__ import annotations

BYTES_PER_TOKEN = 4
_NOTE_TOKENS = 16  # what the note about the gap takes


def count_tokens(text: str) -> int:
    """The estimated number of tokens of `text`, rounded up."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def shorten_middle(text: str, max_tokens: int) -> str:
    """`text` itself if it fits, else its beginning and its end around a note of how much is missing.

    Two thirds of the room go to the beginning. The result never exceeds `max_tokens` (below 32 it is only a beginning).
    """
    if count_tokens(text) <= max_tokens:
        return text
    room = max(0, max_tokens) * BYTES_PER_TOKEN
    if max_tokens < 2 * _NOTE_TOKENS:
        return _head(text, room)
    room -= _NOTE_TOKENS * BYTES_PER_TOKEN
    head = _head(text, room * 2 // 3)
    tail = _head(text[len(head) :][::-1], room - room * 2 // 3)[::-1]
    missing = len(text) - len(head) - len(tail)
    return f"{head}\n[... {missing} characters left out here ...]\n{tail}"


def _head(text: str, max_bytes: int) -> str:
    """The longest beginning of `text` within `max_bytes` of UTF-8."""
    low, high = 0, min(len(text), max_bytes)
    while low < high:
        middle = (low + high + 1) // 2
        if len(text[:middle].encode("utf-8", "surrogatepass")) <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return text[:low]
