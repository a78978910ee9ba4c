"""A repository, and a workshop for it where bubblewrap works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sleep.worktrees.repos import Repo

from skillopt_sleep.vendored.utils.sandbox import BUBBLEWRAP, available
from skillopt_sleep.worktrees import Workshop, open_workshop

NO_ROOM = "the sandbox bubblewrap does not work on this machine"


@pytest.fixture(autouse=True)
def _linux() -> None:
    if sys.platform != "linux":
        pytest.skip(NO_ROOM)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "my répo")


@pytest.fixture
def bubblewrap() -> None:
    if BUBBLEWRAP not in available():
        pytest.skip(NO_ROOM)


@pytest.fixture
def open_shop(bubblewrap: None) -> Iterator[Callable[..., Workshop]]:
    opened: list[Workshop] = []

    def make(repo: Repo, folder: str = "", **settings: Any) -> Workshop:
        opened.append(open_workshop(repo.config(folder, **settings)))
        return opened[-1]

    yield make
    for shop in opened:
        shop.close()


@pytest.fixture
def shop(repo: Repo, open_shop: Callable[..., Workshop]) -> Workshop:
    return open_shop(repo)
