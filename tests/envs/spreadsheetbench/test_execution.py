"""Programs of a model: run as they are, on copies, in fresh folders; what they leave is looked at with care."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.spreadsheetbench.execution import Room, Run, Workshop
from skillopt.errors import RunError

COPY = "import shutil\nshutil.copy(INPUT_PATH, OUTPUT_PATH)\n"


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    del request
    from skillopt.datasets.samples.plain_xlsx import write_workbook
    from skillopt.envs.spreadsheetbench.cases import read_task
    from skillopt.types import Item

    root = tmp_path_factory.mktemp("data")
    for name in ("1_x_input.xlsx", "1_x_answer.xlsx"):
        write_workbook(root / "spreadsheet" / "x" / name, {"S": [(1, 2)]})
    task = read_task(Item("x", {"instruction": "Do it.", "answer_position": "A1"}), root, "strict")
    with Workshop(task, Room(600.0)) as made:
        yield made


def run(shop: Any, code: str) -> Run:
    found: Run = shop.run(code, shop.task.cases[0])
    return found


@pytest.mark.parametrize(
    "code",
    [
        "from __future__ import annotations\n" + COPY,
        "OUT = (\n    OUTPUT_PATH\n)\nimport shutil\nshutil.copy(\n    INPUT_PATH,\n    OUT,\n)\n",
        "text = '''\nline\n'''\nassert text == '\\nline\\n', repr(text)\n" + COPY,
        "if True:\n    OUTPUT = OUTPUT_PATH\n" + COPY,
        COPY + "if __name__ == '__main__':\n    raise SystemExit(0)\nraise ValueError(__name__)\n",
    ],
    ids=["future import", "assignment over lines", "text over lines", "block that assigns", "main guard"],
)
def test_a_valid_program_runs_as_it_is(shop: Any, code: str) -> None:
    assert run(shop, code).reason == ""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys\nsys.exit(0)\n" + COPY, "output-not-found"),
        ("# nothing", "output-not-found"),
        (COPY + "raise KeyError('no such column')", "exec-error: KeyError: 'no such column'"),
        (COPY + "import sys\nsys.exit(3)", "exec-error"),
        ("if", "exec-error: SyntaxError"),
        ("import os\nos.symlink(INPUT_PATH, OUTPUT_PATH)", "output-not-found"),
        ("import os\nos.mkfifo(OUTPUT_PATH)", "output-not-found"),
        ("import os\nos.mkdir(OUTPUT_PATH)", "output-not-found"),
        (
            "import os\nfor _ in range(30): os.mkdir('d' * 200), os.chdir('d' * 200)",
            "exec-error: sandbox: ended: folders",
        ),
    ],
)
def test_exit_code_and_a_new_plain_output_decide(shop: Any, code: str, reason: str) -> None:
    assert run(shop, COPY).output is not None  # an earlier success is no help
    ended = run(shop, code)
    assert ended.output is None
    assert ended.reason.startswith(reason)


def test_what_a_program_says_does_not_tell_where_it_ran(shop: Any) -> None:
    assert "skillopt-sheet" not in run(shop, "raise ValueError(INPUT_PATH)").detail


def test_the_right_workbook_is_not_beside_the_input_and_the_input_is_a_copy(shop: Any) -> None:
    source = shop.task.cases[0].source
    before = source.read_bytes()
    code = (
        "import os, pathlib\n"
        "assert sorted(os.listdir(os.path.dirname(INPUT_PATH))) == ['input.xlsx', 'solution.py']\n"
        f"found = os.path.exists({str(shop.task.cases[0].gold)!r})\n"
        "pathlib.Path(INPUT_PATH).write_bytes(b'gone')\n"
        "pathlib.Path(OUTPUT_PATH).write_text(str(found))\n"
    )
    ended = run(shop, code)
    assert ended.output is not None and source.read_bytes() == before
    from skillopt.utils.sandbox import strength

    assert not strength().isolates_files or ended.output.read_text() == "False"


def test_secrets_of_this_process_are_not_the_programs(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret-value")
    code = "import os, pathlib\npathlib.Path(OUTPUT_PATH).write_text(os.environ.get('AZURE_OPENAI_API_KEY', 'ABSENT'))"
    ended = run(shop, code)
    assert ended.output is not None and ended.output.read_text() == "ABSENT"


def test_a_program_that_runs_too_long_ends_with_its_children(tmp_path: Path, shop: Any) -> None:
    beat = tmp_path / "beat"
    child = f"import time, pathlib\nwhile True:\n    pathlib.Path({str(beat)!r}).touch()\n    time.sleep(0.01)"
    code = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(60)"
    with Workshop(shop.task, Room(1.2)) as short:
        ended = run(short, code)
    assert ended.reason.startswith("task-timeout-1.2s")
    assert not beat.exists() or _still(beat)


def _still(path: Path) -> bool:
    before = path.stat().st_mtime_ns
    import time

    time.sleep(0.1)
    return path.stat().st_mtime_ns == before


def test_changed_data_stop_the_run(shop: Any, own_env: Callable[..., Any]) -> None:
    books = {"1_a_input.xlsx": {"S": [(1,)]}, "1_a_answer.xlsx": {"S": [(2,)]}}
    env = own_env(books, answer_position="A1")
    item = env.all_items()[0]
    with Workshop(env._task(item), Room(60.0)) as own:
        own.task.cases[0].gold.write_bytes(b"other")
        with pytest.raises(RunError, match="changed during the run"):
            run(own, COPY)


def test_nothing_is_left_behind(shop: Any) -> None:
    with Workshop(shop.task, Room(60.0)) as own:
        run(own, COPY + "import os\nos.mkdir('closed')\nopen('closed/x', 'w').close()\nos.chmod('closed', 0)\n")
        run(own, COPY)
        root = own._root
    assert not root.exists()
