"""The images of items: found inside the data's folder, checked, made small enough to send, and encoded once."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillopt.envs.docvqa.headers import BrokenImageError, Header, read_header
from skillopt.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 8_000_000
"""Larger images are scaled down to this many pixels; a page of letter size at 250 dots per inch has 5.8 million."""

MAX_BYTES = 3_750_000
"""Larger files are encoded anew: as base64 this is 5 MB, which is as much as providers take for one image."""

REFUSED_PIXELS = 80_000_000
"""Larger images are refused at load: nobody scans so, and unpacking one takes hundreds of megabytes."""

REFUSED_BYTES = 64 * 1024 * 1024
"""Larger files are refused at load."""

_KEPT_CHARACTERS = 128 * 1024 * 1024
_SMALLER = 0.8
_FORMATS: tuple[tuple[str, dict[str, int]], ...] = (("image/png", {}), ("image/jpeg", {"quality": 85}))


@dataclass(frozen=True, slots=True)
class PageImage:
    """One image as it was found at load. `name`: its path as the data give it; `sha256`: of the file's bytes."""

    name: str
    path: Path
    header: Header
    size: int
    sha256: str

    @property
    def fits(self) -> bool:
        """Whether it is sent as it is."""
        return self.header.pixels <= MAX_PIXELS and self.size <= MAX_BYTES

    @property
    def words(self) -> str:
        """The image in words, for trajectories."""
        size = f"{self.header.width} x {self.header.height}"
        return f"[image {Path(self.name).name}, {self.header.mime}, {size} pixels, sha256 {self.sha256[:16]}]"


def find_image(name: str, roots: Sequence[Path], where: str) -> PageImage:
    """The image `name` below the first of `roots` that has it.

    Raises DataError, beginning with `where`, for a path that leads out of its root, a file that is missing, and one
    that is no whole image.
    """
    path = _confined(name, roots, where)
    if path is None:
        raise DataError(
            f"{where}: the image {name!r} does not exist in {_listed(roots)}; set env.data_root to its folder."
        )
    size = path.stat().st_size
    if size > REFUSED_BYTES:
        raise DataError(f"{where}: the image {path} has {size:,} bytes; at most {REFUSED_BYTES:,} are taken.")
    try:
        data = path.read_bytes()
        header = read_header(data)
    except OSError as error:
        raise DataError(f"{where}: the image {path} cannot be read ({error.strerror}).") from None
    except BrokenImageError as error:
        raise DataError(f"{where}: the image {path} {error}; replace the file or leave the item out.") from None
    if header.pixels > REFUSED_PIXELS:
        found = f"{header.width:,} x {header.height:,}"
        raise DataError(f"{where}: the image {path} has {found} pixels; at most {REFUSED_PIXELS:,} are taken.")
    return PageImage(name, path, header, size, hashlib.sha256(data).hexdigest())


def _confined(name: str, roots: Sequence[Path], where: str) -> Path | None:
    """The file below the first root that has it, None when none has. Raises DataError when it is below none."""
    outside = True
    for root in roots:
        inside = root.resolve()
        try:
            path = (inside / name).resolve()
            if path.is_relative_to(inside):
                outside = False
                if path.is_file():
                    return path
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
            raise DataError(f"{where}: the image path {name!r} is not usable ({error}).") from None
    if outside:
        raise DataError(
            f"{where}: the image {name!r} lies outside of {_listed(roots)}; put it there, or set env.data_root to "
            "the folder that holds all images."
        )
    return None


def _listed(roots: Sequence[Path]) -> str:
    return " and ".join("the working directory" if root == Path() else str(root) for root in roots)


def need_pillow(image: PageImage, where: str) -> None:
    """Raise MissingExtraError, naming image and item, when scaling it down needs a package that is not installed."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtraError(
            f"{where}: the image {image.name!r} ({image.header.pixels:,} pixels, {image.size:,} bytes) is to be scaled "
            'down, which needs the package pillow; run: pip install "skillopt[docvqa]"'
        )


class DataAddresses:
    """`data:` addresses of images, safe to use from several threads; what was encoded lately is kept."""

    def __init__(self, capacity: int = _KEPT_CHARACTERS) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._characters = 0

    def of(self, image: PageImage) -> str:
        """The address that holds the image. Raises DataError when its file is not what it was at load."""
        with self._lock:
            if image.sha256 in self._kept:
                self._kept.move_to_end(image.sha256)
                return self._kept[image.sha256]
        mime, data = sendable(image)
        address = f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"
        self._keep(image.sha256, address)
        return address

    def _keep(self, key: str, address: str) -> None:
        with self._lock:
            if key in self._kept or len(address) > self._capacity:
                return
            self._kept[key] = address
            self._characters += len(address)
            while self._characters > self._capacity:
                self._characters -= len(self._kept.popitem(last=False)[1])


def sendable(image: PageImage) -> tuple[str, bytes]:
    """MIME type and bytes to send: those of the file, or of a smaller copy if it is above a limit.

    Raises DataError when the file has changed since it was checked, or cannot be unpacked.
    """
    try:
        data = image.path.read_bytes()
    except OSError as error:
        raise DataError(f"the image {image.path} cannot be read any more ({error.strerror}).") from None
    if hashlib.sha256(data).hexdigest() != image.sha256:
        raise DataError(f"the image {image.path} has changed since the data were read; start again.")
    return (image.header.mime, data) if image.fits else shrink(data, image)


def shrink(data: bytes, image: PageImage) -> tuple[str, bytes]:
    """MIME type and bytes of a copy within `MAX_PIXELS` and `MAX_BYTES`: a PNG, or a JPEG if that is too large.

    Raises DataError for a picture that Pillow cannot unpack.
    """
    import PIL.Image
    import PIL.ImageOps

    try:
        with PIL.Image.open(io.BytesIO(data)) as opened:
            picture = _plain_picture(PIL.ImageOps.exif_transpose(opened))
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise DataError(f"the image {image.path} cannot be unpacked ({type(error).__name__}: {error}).") from None
    factor = min(1.0, math.sqrt(MAX_PIXELS / image.header.pixels))
    while True:
        size = _scaled(picture.size, factor)
        smaller = picture if factor == 1.0 else picture.resize(size, PIL.Image.Resampling.LANCZOS)
        for mime, options in _FORMATS:
            stream = io.BytesIO()
            smaller.save(stream, mime.removeprefix("image/"), **options)
            if stream.tell() <= MAX_BYTES:
                return mime, stream.getvalue()
        factor *= _SMALLER


def _plain_picture(opened: Image) -> Image:
    """The first frame in grey or colour, on white where it is transparent."""
    if opened.mode in ("1", "L"):
        return opened.convert("L")
    if opened.mode.startswith("I") or opened.mode == "F":  # 16 bits a pixel, of which the upper 8 are kept
        return opened.point(lambda value: value / 256).convert("L")
    if opened.mode in ("RGBA", "LA", "PA") or "transparency" in opened.info:
        import PIL.Image

        layer = opened.convert("RGBA")
        return PIL.Image.alpha_composite(PIL.Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return opened.convert("RGB")


def _scaled(size: tuple[int, int], factor: float) -> tuple[int, int]:
    width, height = size
    return max(1, int(width * factor)), max(1, int(height * factor))
