"""Every configuration file that is shipped: it loads, names an environment that exists, and holds no unknown key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillopt.config.resolve import check_env_keys, resolve
from skillopt.datasets.materialize import BENCHMARKS
from skillopt.envs.registry import BUILT_IN, accepted_keys

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("configs/*/default.yaml"), *ROOT.glob("configs/*/sample.yaml")])
OF_ENVS = [path for path in FILES if path.parent.name != "_base_"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_it_loads_and_every_key_is_known(path: Path) -> None:
    config = resolve(path, environ={})
    assert not config.env_extras
    if config.env.name:
        check_env_keys(config, accepted_keys(config.env.name))


@pytest.mark.parametrize("path", OF_ENVS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_its_environment_is_that_of_its_folder(path: Path) -> None:
    name = resolve(path, environ={}).env.name
    assert name == ("jsonl" if path.parent.name == "quickstart" else path.parent.name)
    assert name in BUILT_IN


@pytest.mark.parametrize("path", OF_ENVS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_section_env_survives_loading(path: Path) -> None:
    config = resolve(path, environ={})
    assert config.env.split_mode == "split_dir"
    assert config.env.split_dir
    if config.env.skill_init:
        assert (ROOT / config.env.skill_init).is_file()


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_benchmark_has_both_files_and_its_data_where_they_are_made(name: str) -> None:
    config = resolve(ROOT / "configs" / name / "default.yaml", environ={})
    assert Path(config.env.split_dir) == BENCHMARKS[name].output
    sample = resolve(ROOT / "configs" / name / "sample.yaml", environ={})
    assert sample.env.split_dir == f"data/samples/{name}"
    assert sample.train.num_epochs == 1
    assert (ROOT / sample.env.split_dir).is_dir()


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_configuration_names_the_command_that_makes_its_data(name: str) -> None:
    text = (ROOT / "configs" / name / "default.yaml").read_text(encoding="utf-8")
    assert re.search(rf"skillopt data materialize {name}|alfworld-download", text)
