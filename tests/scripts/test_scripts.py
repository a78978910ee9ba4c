"""The shell scripts that start a benchmark, and the check of skipped tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")


def start(name: str, tmp_path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The script, with a program in place of Python that prints what it is given."""
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(program), **env}
    script = ROOT / "scripts" / f"run_{name}.sh"
    return subprocess.run(
        [str(script), *arguments], env=given, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )


@posix
@pytest.mark.parametrize("name", ["searchqa", "spreadsheetbench"])
def test_models_and_folder_come_from_the_environment(name: str, tmp_path: Path) -> None:
    done = start(name, tmp_path, "--limit", "3", TARGET_MODEL="org/small", OPTIMIZER_MODEL="large")
    words = done.stdout.splitlines()
    assert words[:3] == ["scripts/train.py", "--config", f"configs/{name}/default.yaml"]
    assert words[3:7] == ["--optimizer_model", "large", "--target_model", "org/small"]
    assert re.fullmatch(rf"outputs/skillopt_{name}_org_small_\d{{8}}_\d{{6}}", words[8])
    assert words[9:] == ["--limit", "3"]


@posix
def test_the_script_that_serves_them_all_wants_a_name() -> None:
    script = str(ROOT / "scripts" / "train_benchmark.sh")
    done = subprocess.run([script], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and "NAME one of: alfworld docvqa" in done.stderr


@posix
def test_both_models_have_a_default(tmp_path: Path) -> None:
    assert start("searchqa", tmp_path).stdout.split().count("gpt-5.5") == 2


@posix
def test_alfworld_needs_its_games(tmp_path: Path) -> None:
    done = start("alfworld", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}/.cache/alfworld" in done.stderr
    (tmp_path / "games" / "json_2.1.1").mkdir(parents=True)
    assert start("alfworld", tmp_path, ALFWORLD_DATA=str(tmp_path / "games")).returncode == 0


RESULTS = """<testsuites><testsuite>
<testcase classname="a" name="passes"/>
<testcase classname="a" name="fails_as_known"><skipped type="pytest.xfail" message="known"/></testcase>
<testcase classname="a" name="skips"><skipped type="pytest.skip" message="{reason}">here</skipped></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("needs a live service: set SKILLOPT_LIVE", 0),
        ("the sandbox bubblewrap does not work on this machine", 0),
        ('needs pip install "skillopt[alfworld]"', 1),
        ("could not import openpyxl", 1),
        ("", 1),
    ],
)
def test_only_some_reasons_to_skip_are_allowed(tmp_path: Path, reason: str, code: int) -> None:
    results = tmp_path / "results.xml"
    results.write_text(RESULTS.format(reason=reason.replace('"', "&quot;")), encoding="utf-8")
    script = ROOT / "scripts" / "check_skips.py"
    done = subprocess.run([sys.executable, str(script), str(results)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code
    assert ("a::skips" in done.stderr) == bool(code)
