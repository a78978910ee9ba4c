"""Images of a conversation as bytes, for a program that reads them from files."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from skillopt.errors import BadRequestError
from skillopt.utils.redact import hide_in_addresses

MAX_IMAGE_BYTES = 20 * 1024 * 1024

_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,", re.IGNORECASE)
_MAX_ENCODED = MAX_IMAGE_BYTES * 4 // 3 + 1024
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its bytes and the suffix of a file that holds them (`.png`, `.jpg`, `.gif` or `.webp`)."""

    data: bytes
    suffix: str


def read_image(address: str) -> Image:
    """The image behind a `data:` URL with base64, a `file://` URL or the path of a file on this machine.

    What is read must begin as a PNG, JPEG, GIF or WebP image does and be at most `MAX_IMAGE_BYTES` long, whatever its
    address says. Raises BadRequestError otherwise, and for an address that would have to be fetched from a network.
    """
    text = address.strip()
    scheme = text[:8].lower()
    if scheme.startswith("data:"):
        return _checked(_decoded(text), "a data: URL")
    if scheme.startswith(("http://", "https://")):
        raise BadRequestError(
            f"The image {_clipped(text)} lies on a network, and this backend can only be given files; put the image "
            "into the request as a data: URL, or name a file."
        )
    path = _local_path(text) if scheme.startswith("file://") else Path(text)
    return _checked(_file_bytes(path), _clipped(text))


def write_images(images: Sequence[Image], folder: Path) -> tuple[Path, ...]:
    """Write `image_<n><suffix>` (from 1, in order) into `folder`; the files' paths."""
    paths = tuple(folder / f"image_{n}{image.suffix}" for n, image in enumerate(images, start=1))
    for path, image in zip(paths, images, strict=True):
        path.write_bytes(image.data)
    return paths


def _decoded(url: str) -> bytes:
    head = _DATA_URL.match(url)
    if head is None:
        raise BadRequestError("An image is a data: URL without base64; expected data:image/png;base64,…")
    if head["type"] and not head["type"].lower().startswith("image/"):
        raise BadRequestError(f"A data: URL holds {head['type']}; expected an image.")
    encoded = url[head.end() :]
    if len(encoded) > _MAX_ENCODED:
        raise _too_large("a data: URL")
    try:
        return base64.b64decode("".join(unquote(encoded).split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequestError("An image is a data: URL whose base64 text is broken.") from None


def _local_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise BadRequestError(f"The image {_clipped(url)} lies on another machine; name a file on this one.")
    return Path(url2pathname(parts.path))


def _file_bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise BadRequestError(f"The image {_clipped(str(path))} is not a file on this machine.")
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise _too_large(_clipped(str(path)))
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise BadRequestError(f"The image {_clipped(str(path))} cannot be read: {type(error).__name__}.") from error


def _checked(data: bytes, where: str) -> Image:
    if len(data) > MAX_IMAGE_BYTES:
        raise _too_large(where)
    suffix = _suffix(data)
    if not suffix:
        raise BadRequestError(f"What {where} holds is not a PNG, JPEG, GIF or WebP image.")
    return Image(data, suffix)


def _suffix(data: bytes) -> str:
    """The suffix by the first bytes, or blank for what is no known image."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return ".png"
    if data.startswith(b"\xff\xd8\xff"):
        return ".jpg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ".gif"
    return ".webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def _too_large(where: str) -> BadRequestError:
    return BadRequestError(
        f"The image in {where} is larger than {MAX_IMAGE_BYTES // 1024 // 1024} MiB; make it smaller."
    )


def _clipped(text: str) -> str:
    shown = hide_in_addresses(text)
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…")
