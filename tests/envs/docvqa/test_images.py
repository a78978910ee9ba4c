"""Images are found inside their folder, sent as they are or smaller, and encoded once."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.docvqa import images
from skillopt.envs.docvqa.images import DataAddresses, find_image, need_pillow, sendable
from skillopt.errors import DataError, MissingExtraError

NEEDS_PILLOW = 'needs an image library: pip install "skillopt[docvqa]"'


@pytest.fixture
def page(tmp_path: Path, make_png: Callable[..., bytes]) -> Path:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "page.png"
    path.write_bytes(make_png())
    (tmp_path / "outside.png").write_bytes(make_png())
    return path


def find(page: Path, name: str = "page.png") -> images.PageImage:
    return find_image(name, [page.parent], "item 'a'")


@pytest.mark.parametrize("name", ["../outside.png", "sub/../../outside.png", "{root}/outside.png", "link.png"])
def test_a_path_out_of_the_folder_is_refused(page: Path, name: str) -> None:  # W6
    (page.parent / "link.png").symlink_to(page.parents[1] / "outside.png")
    with pytest.raises(DataError, match=r"item 'a': the image .* lies outside of .*env\.data_root"):
        find(page, name.format(root=page.parents[1]))


def test_an_absolute_path_inside_the_folder_is_taken(page: Path) -> None:
    assert find(page, str(page)).path == page.resolve()


def test_a_missing_image_names_item_path_and_folder(page: Path) -> None:
    with pytest.raises(DataError, match=r"item 'a': the image 'no\.png' does not exist in .*data"):
        find(page, "no.png")
    with pytest.raises(DataError, match="not usable"):
        find(page, "a\0b")


def test_the_first_folder_that_has_it_counts(page: Path) -> None:
    folders = [page.parent, page.parents[1]]
    assert find_image("outside.png", folders, "x").path == (page.parents[1] / "outside.png").resolve()
    assert find_image("page.png", folders, "x").path == page.resolve()


def test_a_damaged_image_names_item_and_path(page: Path) -> None:
    page.write_bytes(page.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"item 'a': the image .*page\.png is a PNG that is cut off"):
        find(page)


def test_what_nobody_scans_is_refused(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "REFUSED_PIXELS", 5)
    with pytest.raises(DataError, match=r"has 3 x 2 pixels; at most 5 are taken"):
        find(page)
    monkeypatch.setattr(images, "REFUSED_BYTES", 10)
    with pytest.raises(DataError, match=r"bytes; at most 10 are taken"):
        find(page)


def test_an_image_within_the_limits_is_sent_as_it_is_without_a_library(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    address = DataAddresses().of(find(page))
    assert address == "data:image/png;base64," + base64.b64encode(page.read_bytes()).decode()


def test_the_type_is_that_of_the_bytes_not_of_the_name(page: Path) -> None:
    wrong = page.with_suffix(".jpg")
    page.rename(wrong)
    assert DataAddresses().of(find(wrong, "page.jpg")).startswith("data:image/png;base64,")


def test_an_image_is_encoded_once(page: Path) -> None:  # W27
    addresses, found = DataAddresses(), find(page)
    first = addresses.of(found)
    page.unlink()
    assert addresses.of(found) is first


def test_what_is_kept_is_bounded(page: Path, make_png: Callable[..., bytes]) -> None:
    found = find(page)
    addresses = DataAddresses(capacity=len(DataAddresses().of(found)) + 10)
    addresses.of(found)
    other = page.with_name("other.png")
    other.write_bytes(make_png(shade=9))
    addresses.of(find(page, "other.png"))
    page.unlink()
    with pytest.raises(DataError, match="cannot be read any more"):
        addresses.of(found)


def test_a_file_that_changed_since_it_was_checked_is_refused(page: Path, make_png: Callable[..., bytes]) -> None:
    found = find(page)
    page.write_bytes(make_png(shade=8))
    with pytest.raises(DataError, match="has changed since"):
        sendable(found)


def save(page: Path, mode: str, size: tuple[int, int], kind: str = "PNG", **options: Any) -> Any:
    pillow = pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    picture = pillow.new(mode, size, **options)
    picture.save(page, kind)
    return pillow


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16", "CMYK"])
def test_a_large_page_is_scaled_down(page: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = save(page, mode, (60, 40), "TIFF" if mode == "CMYK" else "PNG")
    if mode == "CMYK":  # which PNG does not know
        pillow.open(page).save(page, "JPEG")
    monkeypatch.setattr(images, "MAX_PIXELS", 600)
    found = find(page)
    assert not found.fits
    mime, data = sendable(found)
    small = pillow.open(io.BytesIO(data))
    assert (mime, small.size, small.mode in ("L", "RGB")) == ("image/png", (30, 20), True)


def test_transparent_paper_is_white_and_a_bright_grey_stays_bright(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 600)
    pillow = save(page, "RGBA", (60, 40), color=(0, 0, 0, 0))
    assert pillow.open(io.BytesIO(sendable(find(page))[1])).getpixel((5, 5)) == (255, 255, 255)
    save(page, "I;16", (60, 40), color=200 * 256)
    assert pillow.open(io.BytesIO(sendable(find(page))[1])).getpixel((5, 5)) == 200


def test_a_heavy_file_becomes_a_jpeg_and_then_smaller(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    pillow.effect_noise((300, 300), 90).convert("RGB").save(page)
    monkeypatch.setattr(images, "MAX_BYTES", 80_000)
    mime, data = sendable(find(page))
    assert (mime, pillow.open(io.BytesIO(data)).size) == ("image/jpeg", (300, 300))
    monkeypatch.setattr(images, "MAX_BYTES", 15_000)
    mime, data = sendable(find(page))
    assert len(data) <= 15_000
    assert pillow.open(io.BytesIO(data)).width < 300


def test_a_picture_that_cannot_be_unpacked_is_an_error(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    page.write_bytes(b"GIF89a\x09\0\x09\0\0\0\0;")
    monkeypatch.setattr(images, "MAX_PIXELS", 6)
    with pytest.raises(DataError, match="cannot be unpacked"):
        sendable(find(page))


def test_scaling_without_the_library_says_what_to_install(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r'item .a.: .*pip install "skillopt\[docvqa\]"'):
        need_pillow(find(page), "item 'a'")


def test_a_sideways_photograph_is_turned(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    exif = pillow.Exif()
    exif[0x0112] = 6
    pillow.new("L", (60, 40)).save(page, "JPEG", exif=exif)
    monkeypatch.setattr(images, "MAX_PIXELS", 600)
    assert pillow.open(io.BytesIO(sendable(find(page))[1])).size == (20, 30)
