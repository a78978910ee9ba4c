"""Configurations and first skills that are installed with the package, for those who have no clone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skillopt.config.load import load_config, read_mapping
from skillopt.config.resolve import resolve
from skillopt.config.shipped import CONFIGS, find_config, find_skill
from skillopt.datasets.materialize import BENCHMARKS

NEEDED = {  # what is looked for before the data
    "alfworld": ("textworld", "alfworld"),
    "spreadsheetbench": ("openpyxl", "spreadsheet"),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["configs/searchqa/default.yaml", "searchqa/default.yaml", "./configs/searchqa/default.yaml"]
)
def test_an_installed_configuration_stands_in_for_one_that_is_not_there(name: str) -> None:
    with pytest.warns(UserWarning, match="that is installed is used") as told:
        config = resolve(name, environ={})
    assert len(told) == 2
    assert config.env.name == "searchqa"
    assert Path(config.env.skill_init).read_text(encoding="utf-8").strip()
    assert config.source("env.name").startswith(str(CONFIGS / "searchqa" / "default.yaml"))


def test_a_file_that_is_there_wins(elsewhere: Path) -> None:
    for name in ("configs/searchqa/default.yaml", "skillopt/envs/searchqa/skills/initial.md"):
        (elsewhere / name).parent.mkdir(parents=True)
        (elsewhere / name).write_text("env:\n  name: jsonl\n", encoding="utf-8")
    assert load_config("configs/searchqa/default.yaml") == {"env": {"name": "jsonl"}}
    assert find_skill("skillopt/envs/searchqa/skills/initial.md") == "skillopt/envs/searchqa/skills/initial.md"


def test_a_base_from_python_may_be_an_installed_one() -> None:
    with pytest.warns(UserWarning, match="is used"):
        assert read_mapping({"_base_": "configs/features/paper.yaml"}).data


@pytest.mark.parametrize(
    "name",
    [
        *("mine/searchqa/default.yaml", "../searchqa/default.yaml", "../configs/searchqa/default.yaml", "default.yaml"),
        *("configs/searchqa/defualt.yaml", "configs/../searchqa/default.yaml", "/configs/searchqa/default.yaml"),
        "configs/quickstart/default.yaml",
    ],
)
def test_nothing_stands_in_for_another_file(name: str) -> None:
    assert find_config(Path(name)) == Path(name)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_config(name)


@pytest.mark.parametrize(
    "path",
    [
        *("", "initial.md", "skillopt/envs/searchqa/skills/other.md", "skillopt/config/shipped.py"),
        *("mine/skillopt/envs/searchqa/skills/initial.md", "skillopt/envs/../envs/searchqa/skills/initial.md"),
    ],
)
def test_no_skill_stands_in_for_another_one(path: str) -> None:
    assert find_skill(path) == path


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_sample_says_what_writes_its_data(name: str) -> None:
    if name in NEEDED:
        package, extra = NEEDED[name]
        pytest.importorskip(package, reason=f'needs the package {package}: pip install "skillopt[{extra}]"')
    command = [sys.executable, "-m", "skillopt.cli.train", "--config", f"configs/{name}/sample.yaml", "--plan"]
    backend = ["--backend", "openai_compatible", "--openai_compatible_base_url", "http://127.0.0.1:9"]
    done = subprocess.run([*command, *backend], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"skillopt data samples {name}" in done.stderr


def test_with_its_data_a_sample_runs_in_any_folder() -> None:
    def say(*words: str) -> str:
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    say("skillopt.cli.main", "data", "samples", "searchqa")
    backend = ["--backend", "openai_compatible", "--openai_compatible_base_url", "http://127.0.0.1:9"]
    shown = say("skillopt.cli.train", "--config", "configs/searchqa/sample.yaml", "--plan", *backend)
    assert "At least (nothing is proposed)" in shown
