"""The product as source: nothing is said twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIES = (
    "skillopt_sleep/vendored/",
    "skillopt_sleep/learn/gate.py",
)  # made by scripts/vendor.py, whose test is elsewhere
WINDOW = 8


def test_hardly_any_line_is_in_a_block_that_stands_twice() -> None:
    files = {path: _lines(path) for path in _sources()}
    windows = Counter(window for lines in files.values() for window in _windows(lines))
    repeated = sum(len(_repeated(lines, windows)) for lines in files.values())
    total = sum(len(lines) for lines in files.values())
    assert total > 1000
    assert repeated / total <= 0.02


def _sources() -> list[Path]:
    found = [path for package in ("skillopt", "skillopt_sleep") for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in found if not path.relative_to(ROOT).as_posix().startswith(COPIES)]


def _lines(path: Path) -> list[str]:
    stripped = (line.strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in stripped if line and not line.startswith(("import ", "from ", "#"))]


def _windows(lines: list[str]) -> list[tuple[str, ...]]:
    return [tuple(lines[start : start + WINDOW]) for start in range(len(lines) - WINDOW + 1)]


def _repeated(lines: list[str], windows: Counter[tuple[str, ...]]) -> set[int]:
    found = (start for start, window in enumerate(_windows(lines)) if windows[window] > 1)
    return {start + offset for start in found for offset in range(WINDOW)}
