"""Images of a request as bytes: from data: URLs and files, nothing else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from skillopt.errors import BadRequestError
from skillopt.model import attachments
from skillopt.model.attachments import read_image, write_images
from skillopt.model.transcript import render
from skillopt.model.values import ModelCall

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
JPG = b"\xff\xd8\xff" + b"1" * 20


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def test_images_of_a_conversation_are_labelled_and_written_in_order(tmp_path: Path) -> None:
    source = tmp_path / "a photo.bin"
    source.write_bytes(JPG)
    content = [
        {"type": "text", "text": "Compare"},
        {"type": "image_url", "image_url": {"url": data_url(PNG)}},
        {"type": "input_image", "image_url": source.as_uri()},
        {"type": "image_url", "image_url": str(source)},
    ]
    sent = render(ModelCall(messages=({"role": "user", "content": content},)))
    assert sent.prompt == "Compare\n[Attached image 1]\n[Attached image 2]\n[Attached image 3]"
    folder = tmp_path / "out"
    folder.mkdir()
    paths = write_images(sent.images, folder)
    assert [p.name for p in paths] == ["image_1.png", "image_2.jpg", "image_3.jpg"]
    assert [p.read_bytes() for p in paths] == [PNG, JPG, JPG]


@pytest.mark.parametrize(
    ("data", "suffix"),
    [(PNG, ".png"), (JPG, ".jpg"), (b"GIF89a....", ".gif"), (b"RIFF0000WEBPVP8 ", ".webp")],
)
def test_the_bytes_say_what_it_is_whatever_the_address_says(data: bytes, suffix: str) -> None:
    assert read_image(data_url(data, "image/tiff")).suffix == suffix


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://user:pw@h/a.png?sig=abc", "network"),
        ("data:image/png,abc", "without base64"),
        ("data:text/html;base64,AAAA", "text/html"),
        ("data:image/png;base64,%%%%", "broken"),
        (data_url(b"#!/bin/sh"), "not a PNG"),
        ("file://elsewhere/a.png", "another machine"),
        ("/no/such/file.png", "not a file"),
        ("a\0b", "image"),
        ("x" * 5000, "image"),
        ("", "not a file"),
    ],
)
def test_everything_else_is_refused(address: str, said: str) -> None:
    with pytest.raises(BadRequestError, match=said) as caught:
        read_image(address)
    assert "pw" not in str(caught.value)
    assert "abc" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_file_that_is_no_image_and_one_too_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "id_rsa"
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----")
    with pytest.raises(BadRequestError, match="not a PNG"):
        read_image(str(key))
    monkeypatch.setattr(attachments, "MAX_IMAGE_BYTES", 10)
    large = tmp_path / "large.png"
    large.write_bytes(PNG)
    with pytest.raises(BadRequestError, match="larger"):
        read_image(str(large))
    with pytest.raises(BadRequestError, match="larger"):
        read_image(data_url(PNG))
