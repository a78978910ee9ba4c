"""The content of messages, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillopt.errors import BadRequestError
from skillopt.model.values import Message

IMAGE_SCHEMES = ("http://", "https://", "data:")


def check_messages(messages: Iterable[Message], who: str) -> None:
    """Raise BadRequestError for content that no Chat Completions server takes; `who` begins the message.

    Content is a text, nothing, or a list of parts `{"type": "text", "text": …}` and `{"type": "image_url",
    "image_url": {"url": …}}` with an http(s) or `data:` address.
    """
    for number, message in enumerate(messages, 1):
        wrong = _wrong_with(message)
        if wrong:
            raise BadRequestError(f"{who}: message {number} {wrong}; nothing was sent.")


def _wrong_with(message: Any) -> str:
    """What is wrong with a message, completing "message 3 …"; an empty string for nothing."""
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        return 'must be a mapping with "role" and "content"'
    content = message.get("content")
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list | tuple):
        return f"has content of type {type(content).__name__}, where a text or a list of parts is expected"
    return next((wrong for wrong in map(_wrong_with_part, content) if wrong), "")


def _wrong_with_part(part: Any) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind in ("text", "refusal"):
        return "" if isinstance(part.get(kind), str) else f'has a part of type {kind} without "{kind}"'
    if kind != "image_url":
        return f"has a part of type {kind!r}, where text or image_url is expected"
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else None
    if not isinstance(url, str):
        return 'has an image_url part without {"url": …}'
    if not url.lower().startswith(IMAGE_SCHEMES):
        return f"has an image at {url[:60]!r}, where an http(s) address or a data: URL is expected"
    return ""
