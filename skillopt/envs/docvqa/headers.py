"""What the bytes of an image file say about it: kind, size, and whether the file is whole. No image library is needed.

Sources of the formats: PNG (ISO/IEC 15948), JPEG (ITU-T T.81, annex B), GIF89a, and the WebP container specification.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_SHORTEST_PNG_CHUNK = 12  # length, name, checksum
_FRAME_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # SOF markers; the three others are tables
_NO_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_SCAN = 0xDA
_SPACE_AFTER = re.compile(rb"[\x00\s]*\Z")


@dataclass(frozen=True, slots=True)
class Header:
    """Kind and size in pixels of an image."""

    mime: str
    width: int
    height: int

    @property
    def pixels(self) -> int:
        """Width times height."""
        return self.width * self.height


class BrokenImageError(ValueError):
    """Bytes that are no image, or only a part of one; the message completes "the file …"."""


def read_header(data: bytes) -> Header:
    """Kind and size of the image in `data`: PNG, JPEG, GIF or WebP, whatever the file is called.

    Raises BrokenImageError for anything else, for a file that ends too early, and for a PNG with a wrong checksum.
    """
    for mime, starts, read in _KINDS:
        if starts(data):
            try:
                width, height = read(data)
            except (struct.error, IndexError):
                raise BrokenImageError(f"ends in the middle of its {_name(mime)} header") from None
            if width < 1 or height < 1:
                raise BrokenImageError(f"is a {_name(mime)} of {width} x {height} pixels")
            return Header(mime, width, height)
    raise BrokenImageError("is empty" if not data else "is no PNG, JPEG, GIF or WebP image")


def _name(mime: str) -> str:
    return mime.removeprefix("image/").upper().replace("WEBP", "WebP")


def _png(data: bytes) -> tuple[int, int]:
    names = list(_png_chunks(data))
    if names[:1] != [b"IHDR"] or names[-1] != b"IEND" or b"IDAT" not in names:
        raise BrokenImageError("is a PNG that is cut off or lacks its picture")
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _png_chunks(data: bytes) -> Iterator[bytes]:
    """Name of each chunk, as far as the one that ends the picture."""
    place = len(_PNG)
    while place < len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        end = place + _SHORTEST_PNG_CHUNK + length
        if end > len(data):
            raise BrokenImageError("is a PNG that is cut off")
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        if zlib.crc32(memoryview(data)[place + 4 : end - 4]) != checksum:
            raise BrokenImageError(f"is a damaged PNG (checksum of its part at byte {place})")
        yield name
        if name == b"IEND":
            return
        place = end


def _jpeg(data: bytes) -> tuple[int, int]:
    place = 2
    size: tuple[int, int] | None = None
    while place < len(data):
        if data[place] != 0xFF:
            raise BrokenImageError(f"is a damaged JPEG (byte {place})")
        marker = data[place + 1]
        if marker == 0xFF or marker in _NO_LENGTH:
            place += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack_from(">H", data, place + 2)
        if marker in _FRAME_SIZES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            size = width, height
        if marker == _SCAN:
            break
        place += 2 + length
    end = data.rfind(b"\xff\xd9")
    if size is None or end < place or not _SPACE_AFTER.match(data, end + 2):
        raise BrokenImageError("is a JPEG that is cut off")
    return size


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    if not data.rstrip(b"\x00").endswith(b";"):
        raise BrokenImageError("is a GIF that is cut off")
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        raise BrokenImageError("is a WebP that is cut off")
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise BrokenImageError("is a WebP without a picture")


_KINDS: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], tuple[int, int]]], ...] = (
    ("image/png", lambda data: data.startswith(_PNG), _png),
    ("image/jpeg", lambda data: data.startswith(_JPEG), _jpeg),
    ("image/gif", lambda data: data[:6] in (b"GIF87a", b"GIF89a"), _gif),
    ("image/webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP", _webp),
)
