"""An interrupt while a command is still being loaded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOW = '''
import os, signal, sys, time
from importlib.abc import MetaPathFinder

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored

class Slow(MetaPathFinder):
    """Says that an import has begun, and lets it take for ever."""
    def find_spec(self, name, path, target=None):
        if name == os.environ["SLOW_MODULE"]:
            sys.stdout.write("importing\\n")
            sys.stdout.flush()
            while True:
                time.sleep(0.01)

sys.meta_path.insert(0, Slow())
'''


def entry_points() -> dict[str, str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = text.partition("[project.scripts]\n")[2].partition("\n[")[0]
    return dict(re.findall(r'^([\w-]+) = "([\w.]+:\w+)"$', block, re.MULTILINE))


def interrupted(folder: Path, words: list[str], slow: str) -> subprocess.CompletedProcess[str]:
    """What a command says that gets SIGINT while it imports the module `slow`."""
    (folder / "sitecustomize.py").write_text(SLOW, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT)])
    command = subprocess.Popen(
        [sys.executable, "-W", "error", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "SLOW_MODULE": slow},
    )
    assert command.stdout is not None
    with command:
        assert command.stdout.readline() == "importing\n"
        command.send_signal(signal.SIGINT)
        try:
            out, err = command.communicate(timeout=60)
        finally:
            command.kill()
    return subprocess.CompletedProcess(words, command.returncode, out, err)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("name", "slow"),
    [
        ("skillopt", "skillopt.cli.main"),
        ("skillopt", "skillopt.cli.common"),
        ("skillopt-train", "skillopt.cli.train"),
        ("skillopt-train", "skillopt.config.flags"),
        ("skillopt-eval", "skillopt.cli.arguments"),
        ("skillopt-sleep", "skillopt_sleep.cli"),
        ("skillopt-sleep", "skillopt_sleep.errors"),
    ],
)
def test_an_interrupt_while_a_command_is_loaded_is_one_line(tmp_path: Path, name: str, slow: str) -> None:
    module, function = entry_points()[name].split(":")
    words = ["-c", f"import sys; from {module} import {function}; sys.exit({function}())", "--help"]
    done = interrupted(tmp_path, words, slow)
    assert done.returncode == 130
    said = "skillopt-sleep" if name == "skillopt-sleep" else "skillopt"
    assert done.stderr == f"{said}: interrupted before anything was started.\n"
    assert done.stdout == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("words", "slow"),
    [
        (["scripts/train.py"], "skillopt.cli.train"),
        (["scripts/eval_only.py"], "skillopt.cli.evaluate"),
        (["-m", "skillopt_sleep"], "skillopt_sleep.cli"),
    ],
)
def test_so_it_is_for_the_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], slow: str) -> None:
    monkeypatch.chdir(ROOT)
    done = interrupted(tmp_path, words, slow)
    assert (done.returncode, done.stderr.count("\n")) == (130, 1), done.stderr


@pytest.mark.parametrize("name", sorted(entry_points()))
def test_every_command_begins_there_and_works(name: str) -> None:
    module, function = entry_points()[name].split(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


_MARKED = """
import atexit, importlib, os, signal, sys
def command():
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        return 130
importlib.import_module(sys.argv[1]).main = command
module, name = sys.argv[2].split(":")
sys.exit(getattr(importlib.import_module(module), name)())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["skillopt-sleep", "skillopt"])
def test_an_interrupted_command_ends_with_its_exit_code_whatever_comes_later(tmp_path: Path, name: str) -> None:
    inner = {"skillopt-sleep": "skillopt_sleep.cli", "skillopt": "skillopt.cli.main"}[name]
    (tmp_path / "marked.py").write_text(_MARKED)
    words = [sys.executable, "-m", "marked", inner, entry_points()[name]]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (130, "")
