"""The two tools of the step-by-step mode."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sample_runs import ROOT, sample_items

from skillopt.envs.spreadsheetbench.cases import read_task
from skillopt.envs.spreadsheetbench.execution import Room, Workshop
from skillopt.envs.spreadsheetbench.tools import Tools, command_of
from skillopt.types import Item


@pytest.fixture
def tools() -> Any:
    item = Item.from_dict(sample_items("spreadsheetbench", "train")[0])
    task = read_task(item, ROOT / "data" / "samples" / "spreadsheetbench", "strict")
    with Workshop(task, Room(60.0)) as shop:
        yield Tools(shop, shop.fresh(task.cases[0]))


@pytest.mark.parametrize(
    "cmd",
    [
        "curl http://example.org",
        "python.evil x.py",
        "",
        "ls",
        "python x.py; cat ~/.ssh/id",
        "python x.py && touch done",
        "python x.py | tee out",
        "python x.py > out",
        "python -c $(id)",
        "python x.py\ntouch done",
        "python 'x.py",
    ],
)
def test_only_one_python_command_without_a_shell(cmd: str) -> None:
    argv, refusal = command_of(cmd)
    assert argv == [] and refusal.startswith("error:")


@pytest.mark.parametrize("name", ["python", "python3", "/usr/bin/Python3", "python.exe", r"'C:\Py\PYTHON3.EXE'"])
def test_python_by_any_name_is_this_interpreter(name: str) -> None:
    assert command_of(f"{name} -c 'print(1 > 0); print(2)'") == (
        [sys.executable, "-B", "-c", "print(1 > 0); print(2)"],
        "",
    )


def test_a_program_is_written_run_and_its_output_shown(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    code = (
        "import openpyxl, os\nbook = openpyxl.load_workbook('input.xlsx')\n"
        "book.active['D2'] = '=SUM(B2:B4)'\nbook.save('output.xlsx')\nprint(os.environ.get('SECRET_KEY', 'ABSENT'))\n"
    )
    write = json.dumps({"path": "solution.py", "content": code})
    assert tools.use("write_file", write) == (
        f"write_file solution.py\n{code}",
        f"wrote {len(code)} characters to solution.py",
    )
    shown, seen = tools.use("bash", json.dumps({"cmd": "python solution.py"}))
    assert shown == "bash python solution.py"
    assert seen.startswith("ABSENT\n\nOutput, sheet 'Sales', first rows as stored:\nA1=Item | B1=Amount | D1=Total")
    assert "hold no value" in seen and "Sales!D2: =SUM(B2:B4)" in seen


def test_long_output_is_cut_and_failures_are_said(tools: Any) -> None:
    long = tools.bash("python -c 'print(\"x\" * 5000)'")
    assert long.startswith("x" * 3800 + "\n… (output cut; 1201 more characters)")
    assert tools.bash("python -c 'import sys; sys.exit(3)'") == "(exit code 3)"
    assert tools.bash("python -c pass") == "(no output)"


@pytest.mark.parametrize("path", ["../escape.txt", "/tmp/t2-escape.txt", "link/x.txt", "link", "", ".", "a\0b"])
def test_files_are_written_in_the_folder_only(tools: Any, path: str, tmp_path: Path) -> None:
    (tools._folder / "link").symlink_to(tmp_path)
    assert tools.write_file(path, "x").startswith("error:")
    assert list(tmp_path.iterdir()) == []


def test_paths_inside_the_folder_are_fine(tools: Any) -> None:
    assert tools.write_file("sub/notes.txt", "é").startswith("wrote")
    assert tools.write_file(str(tools._folder / "abs.txt"), "x").startswith("wrote")
    assert (tools._folder / "sub" / "notes.txt").read_text(encoding="utf-8") == "é"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("bash", "{broken", "not JSON"),
        pytest.param("bash", "[" * 100_000, "not JSON", id="nested"),
        ("bash", "{}", "needs the text cmd"),
        ("bash", "[]", "needs the text cmd"),
        ("write_file", '{"path": "x"}', "needs the text path and content"),
        ("write_file", '{"path": "x", "content": {}}', "needs the text path and content"),
        ("browse", "{}", "no tool 'browse'"),
    ],
)
def test_a_bad_call_is_answered_in_words(tools: Any, name: str, arguments: str, words: str) -> None:
    assert words in tools.use(name, arguments)[1]
