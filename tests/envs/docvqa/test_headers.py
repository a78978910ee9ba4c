"""Kind, size and wholeness of image files, read without an image library."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.docvqa.headers import BrokenImageError, Header, read_header

NEEDS_PILLOW = 'needs an image library: pip install "skillopt[docvqa]"'


def test_a_png_is_read(make_png: Callable[..., bytes]) -> None:
    header = read_header(make_png(640, 480))
    assert header == Header("image/png", 640, 480)
    assert header.pixels == 307_200


EXIF = b"Exif\0\0MM\0*\0\0\0\x08\0\0"
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("PNG", {}),
    ("GIF", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True, "exif": EXIF}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"exif": EXIF}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_the_kind_is_read_from_the_bytes(kind: str, options: dict[str, Any]) -> None:
    pillow = pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    stream = io.BytesIO()
    pillow.new("RGB", (37, 23), "white").save(stream, kind, **options)
    assert read_header(stream.getvalue()) == Header(f"image/{kind.lower()}", 37, 23)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_file_that_ends_too_early_is_refused(kind: str) -> None:
    pillow = pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    stream = io.BytesIO()
    pillow.linear_gradient("L").save(stream, kind)
    data = stream.getvalue()
    for length in (1, 10, 20, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(BrokenImageError):
            read_header(data[:length])


def test_a_png_with_a_changed_byte_is_refused(make_png: Callable[..., bytes]) -> None:
    whole = bytearray(make_png(40, 40))
    whole[45] ^= 1
    with pytest.raises(BrokenImageError, match="damaged PNG"):
        read_header(bytes(whole))


def test_a_png_may_be_followed_by_something_else(make_png: Callable[..., bytes]) -> None:
    assert read_header(make_png() + b"\n").mime == "image/png"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"<html>", "no PNG, JPEG, GIF or WebP"),
        (b"%PDF-1.4", "no PNG, JPEG, GIF or WebP"),
        (b"\x89PNG\r\n\x1a\n", "cut off"),
        (b"\xff\xd8\xff", "ends in the middle of its JPEG header"),
        (b"GIF89a\0\0\0\0;", "0 x 0"),
    ],
)
def test_it_says_what_is_wrong(data: bytes, why: str) -> None:
    with pytest.raises(BrokenImageError, match=why):
        read_header(data)


STARTS = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"GIF89a",
    b"RIFF\x10\0\0\0WEBPVP8 ",
    b"RIFF\x10\0\0\0WEBPVP8X",
    b"",
)


@given(st.sampled_from(STARTS), st.binary(max_size=200))
def test_no_bytes_break_it(start: bytes, rest: bytes) -> None:
    try:
        assert read_header(start + rest).pixels > 0
    except BrokenImageError as error:
        assert str(error)
