"""The tables of faults are whole, and every test that they name is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = {"faults.md": 44, "sleep-faults.md": 111}


def rows(page: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (REFERENCE / page).read_text("utf-8").splitlines()
        if re.match(r"\| *\d", line)
    ]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_fault_has_its_row(page: str) -> None:
    found = rows(page)
    assert [row[0] for row in found] == [str(number) for number in range(1, PAGES[page] + 1)]
    assert all(len(row) == 3 and row[1] for row in found)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_row_names_tests_that_exist(page: str) -> None:
    for number, _, cell in rows(page):
        named = re.findall(r"`([^`]+)`", cell)
        assert named, f"row {number} names no test"
        for name in named:
            path, _, test = name.partition("::")
            assert test in _tests(ROOT / path), f"row {number}: {name}"


@cache
def _tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
