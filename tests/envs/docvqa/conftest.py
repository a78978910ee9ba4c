"""Small pages made without an image library, and environments over them."""

from __future__ import annotations

import csv
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.docvqa.adapter import DocVQAEnv

Row = Mapping[str, Any]


def png(width: int = 3, height: int = 2, shade: int = 7) -> bytes:
    """A grey PNG."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packed = zlib.compress((b"\0" + bytes([shade]) * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


@pytest.fixture
def make_png() -> Callable[..., bytes]:
    return png


@pytest.fixture
def make_env(tmp_path: Path) -> Callable[..., DocVQAEnv]:
    """Writes `rows` as the train split (and a row each as val and test), with the images they name, and loads them."""

    def make(rows: Sequence[Row] = (), *, table: bool = False, images: bool = True, **keys: Any) -> DocVQAEnv:
        folder = tmp_path / "data"
        plain = {"question": "What is the date?", "answer": "3 May", "image_path": "pages/p.png"}
        splits = {
            "train": [{**plain, "id": "t1", **row} for row in rows or [{}]],
            "val": [{**plain, "id": "v1"}],
            "test": [{**plain, "id": "e1"}],
        }
        for name, members in splits.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            if table:
                with (folder / name / "items.csv").open("w", encoding="utf-8", newline="") as stream:
                    writer = csv.DictWriter(stream, list(members[0]))
                    writer.writeheader()
                    writer.writerows(members)
            else:
                (folder / name / "items.json").write_text(json.dumps(members), encoding="utf-8")
        if images:
            (folder / "pages").mkdir(exist_ok=True)
            (folder / "pages" / "p.png").write_bytes(png())
        env = DocVQAEnv(split_dir=str(folder), **keys)
        env.setup({})
        return env

    return make
