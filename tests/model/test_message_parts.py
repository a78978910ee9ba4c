"""Content that is refused before anything is sent."""

from __future__ import annotations

import pytest

from skillopt.errors import BadRequestError
from skillopt.model.message_parts import check_messages

GOOD = [
    "text",
    None,
    [],
    [{"type": "text", "text": "a"}],
    [{"type": "refusal", "refusal": "no"}],
    [{"type": "image_url", "image_url": {"url": "https://h/a.png"}}],
    [{"type": "image_url", "image_url": {"url": "DATA:image/png;base64,AA", "detail": "high"}}],
]
BAD = [
    (3, "content of type int"),
    ({"type": "text", "text": "a"}, "content of type dict"),
    (["a"], "part of type 'str'"),
    ([None], "part of type 'NoneType'"),
    ([{"text": "a"}], "part of type None"),
    ([{"type": "text", "text": 3}], 'part of type text without "text"'),
    ([{"type": "input_audio"}], "part of type 'input_audio'"),
    ([{"type": "image_url", "image_url": "https://h/a.png"}], 'without {"url"'),
    ([{"type": "image_url", "image_url": {"url": "file:///a.png"}}], "image at 'file:///a.png'"),
    ([{"type": "image_url", "image_url": {"url": "/etc/passwd"}}], "data: URL is expected"),
]


@pytest.mark.parametrize("content", GOOD)
def test_what_every_server_takes_passes(content: object) -> None:
    check_messages([{"role": "user", "content": content}], "target model 'm'")


@pytest.mark.parametrize(("content", "said"), BAD)
def test_other_content_is_refused_with_its_place(content: object, said: str) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": content}]
    with pytest.raises(BadRequestError) as caught:
        check_messages(messages, "target model 'm'")
    assert str(caught.value).startswith("target model 'm': message 2 ")
    assert said in str(caught.value)


@pytest.mark.parametrize("message", ["hi", {}, {"role": 3, "content": "x"}])
def test_a_message_needs_a_role(message: object) -> None:
    with pytest.raises(BadRequestError, match='mapping with "role"'):
        check_messages([message], "m")  # type: ignore[list-item]
