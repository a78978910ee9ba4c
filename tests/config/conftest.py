from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.config.resolve import RunConfig, resolve

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a YAML text to a file of the test's folder and return its path."""

    def write_file(text: str, name: str = "config.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def run(write: Write) -> Callable[..., RunConfig]:
    """Resolve a YAML text with an empty environment unless one is given."""

    def resolve_text(text: str = "", **more: Any) -> RunConfig:
        more.setdefault("environ", {})
        return resolve(write(text), **more)

    return resolve_text
