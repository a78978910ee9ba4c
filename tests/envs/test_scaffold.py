"""`skillopt init env`: what it writes runs as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from skillopt.cli.main import main
from skillopt.envs.scaffold import check_name, class_name, write_env
from skillopt.errors import ConfigError, DataError

ROOT = Path(__file__).parents[2]
NAME = "letter_box"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / NAME
    write_env(NAME, folder)
    return folder


def run(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A command of a person who stands in the new folder."""
    words = [sys.executable, *command]
    given = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True, encoding="utf-8", timeout=120)


def test_nothing_of_the_template_is_left(made: Path) -> None:
    for path in made.rglob("*"):
        assert "__NAME__" not in path.name
        if path.is_file() and path.suffix != ".pyc":
            assert not {"__NAME__", "__CLASS__", "__DIST__"} & set(path.read_text(encoding="utf-8").split())
            assert not path.name.endswith(".in")
    assert "class LetterBoxEnv" in (made / NAME / "adapter.py").read_text(encoding="utf-8")


def test_its_tests_pass(made: Path) -> None:
    done = run(made, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_it_trains_offline_and_passes_the_check(made: Path, tmp_path: Path) -> None:
    train = "import sys; sys.path.remove(''); from skillopt.cli.train import main; sys.exit(main(sys.argv[1:]))"
    done = run(made, "-c", train, "--config", "offline.yaml", "--out_root", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "best_skill.md").is_file()
    done = run(made, "-m", "skillopt.cli.main", "data", "check", "data", "--env", f"{NAME}.adapter:LetterBoxEnv")
    assert done.returncode == 0, done.stdout
    assert "train 6 items, val 6 items, test 6 items" in done.stdout


@pytest.mark.parametrize("name", ["a", "name_of_thirty_characters_long"])
@pytest.mark.skipif(find_spec("ruff") is None, reason='needs the linter: pip install "skillopt[dev]"')
def test_its_code_is_in_order(tmp_path: Path, name: str) -> None:
    write_env(name, tmp_path / name)
    for command in (("check", "--no-cache", "."), ("format", "--no-cache", "--check", ".")):
        done = run(tmp_path / name, "-m", "ruff", *command)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_its_types_are_right(made: Path, tmp_path: Path) -> None:
    done = run(made, "-m", "mypy", "--cache-dir", str(tmp_path), MYPYPATH=str(ROOT))
    assert done.returncode == 0, done.stdout


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match="not an empty folder"):
        write_env("my_task", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Any) -> None:
        if path.name.startswith(".README"):
            return real(path, target)
        raise OSError(28, "No space left on device", str(path))

    real = Path.replace
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DataError, match="No space left"):
        write_env("my_task", tmp_path / "my_task")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["", "My", "my-task", "../x", "a b", "1a", "class", "json", "searchqa", "skillopt", "pytest", "a__b", "x" * 31],
)
def test_names_that_cannot_be_a_new_package_are_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        check_name(name)


def test_class_names() -> None:
    assert class_name("my_task_2") == "MyTask2Env"


def test_the_command_says_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "env", "my_task"]) == 0
    out = capsys.readouterr().out
    assert "my_task.adapter:MyTaskEnv" in out
    assert main(["init", "env", "my_task"]) == 2
    assert main(["init", "env", "my_task", "--dir", "other", "--json"]) == 0
    assert (tmp_path / "other" / "config.yaml").is_file()
