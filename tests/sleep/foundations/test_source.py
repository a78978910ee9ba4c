"""The package as source: small modules, short functions, nothing said twice, every file opened as UTF-8."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "skillopt_sleep"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "vendored" not in path.parts]
MOST_LINES = 350
MOST_LINES_OF_A_FUNCTION = 60
WINDOW = 8
TEXT_CALLS = {"open", "read_text", "write_text"}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_has_one_subject_and_short_functions(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert (node.end_lineno or 0) - node.lineno < MOST_LINES_OF_A_FUNCTION, node.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_is_opened_in_the_encoding_of_the_machine(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in TEXT_CALLS and _opens_a_file(node) and not _has_encoding(node):
            raise AssertionError(f"{path.name}:{node.lineno}: {name} without an encoding")
        if any(keyword.arg in ("text", "universal_newlines") for keyword in node.keywords) and "subprocess" in ast.dump(
            node.func
        ):
            assert _has_encoding(node), f"{path.name}:{node.lineno}: a program's output without an encoding"


def test_hardly_any_line_is_in_a_block_that_stands_twice() -> None:
    files = [_lines(path) for path in FILES]
    windows = Counter(window for lines in files for window in _windows(lines))
    repeated = sum(
        len(
            {
                start + offset
                for start, one in enumerate(_windows(lines))
                if windows[one] > 1
                for offset in range(WINDOW)
            }
        )
        for lines in files
    )
    assert repeated / sum(map(len, files)) <= 0.02


def _opens_a_file(node: ast.Call) -> bool:
    """False for `os.open` and for an `open` of something else, which is given what to open and no mode."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "open":
        return True
    owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
    return (
        owner[:1].islower()
        and owner not in ("os", "workspace")
        and all(isinstance(one, ast.Constant) for one in node.args)
    )


def _has_encoding(node: ast.Call) -> bool:
    texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    texts += [
        one.value.value
        for one in node.keywords
        if one.arg == "mode" and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    ]
    binary = any("b" in text and set(text) <= set("rwaxb+t") for text in texts)
    named = any(keyword.arg in ("encoding", None) for keyword in node.keywords)
    return binary or named or any(text.lower().startswith("utf-8") for text in texts)


def _lines(path: Path) -> list[str]:
    stripped = (line.strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in stripped if line and not line.startswith(("import ", "from ", "#"))]


def _windows(lines: list[str]) -> list[tuple[str, ...]]:
    return [tuple(lines[start : start + WINDOW]) for start in range(len(lines) - WINDOW + 1)]
