"""The table of faults is whole, and every test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "faults.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text("utf-8").splitlines()
    if re.match(r"\| *\d", line)
]


def test_every_fault_has_its_row() -> None:
    assert [row[0] for row in ROWS] == [str(number) for number in range(1, 45)]
    assert all(len(row) == 3 and row[1] for row in ROWS)


def test_every_row_names_tests_that_exist() -> None:
    known: dict[str, set[str]] = {}
    for number, _, cell in ROWS:
        named = re.findall(r"`([^`]+)`", cell)
        assert named, f"row {number} names no test"
        for name in named:
            path, _, test = name.partition("::")
            if path not in known:
                known[path] = _tests(ROOT / path)
            assert test in known[path], f"row {number}: {name}"


def _tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
