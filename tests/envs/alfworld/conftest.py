"""Games of our own making, written once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

REASON = 'needs the game library: pip install "skillopt[alfworld]"'


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample data: train, val, test and the games."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("alfworld", "textworld", "fast_downward")):
        pytest.skip(REASON)
    from skillopt.datasets.samples import alfworld

    folder = tmp_path_factory.mktemp("alfworld")
    alfworld.write(folder)
    return folder
