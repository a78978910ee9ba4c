"""What is installed: every file that the code reads is in the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = (".py", ".pyc")
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/py.typed"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the package alone: building writes into the folder that it is started in."""
    folder = tmp_path_factory.mktemp("source")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def data_files(*packages: str) -> set[str]:
    found = (path for name in packages for path in (ROOT / name).rglob("*") if path.suffix not in CODE)
    return {path.relative_to(ROOT).as_posix() for path in found if path.is_file()}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_file_that_is_no_code_is_package_data(name: str) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.setuptools.package-data]")[2]
    (block,) = re.findall(rf"^{name} = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    listed = {path for pattern in re.findall(r'"([^"]+)"', block) for path in (ROOT / name).glob(pattern)}
    assert data_files(name) <= {path.relative_to(ROOT).as_posix() for path in listed}


@pytest.mark.slow
def test_the_wheel_holds_all_and_works_away_from_the_source(copy: Path, tmp_path: Path) -> None:
    for name in ("setuptools", "wheel"):
        pytest.importorskip(name, reason='builds a wheel: pip install "skillopt[dev]"')
    words = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w"]
    done = subprocess.run([sys.executable, "-m", *words, str(tmp_path), "."], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert data_files(*PACKAGES) <= set(archive.namelist())
        archive.extractall(tmp_path / "site")
    command = "import sys; sys.path.insert(0, sys.argv.pop(1)); from skillopt.cli.main import main; sys.exit(main())"
    site = str(tmp_path / "site")
    for words in (
        ["init", "env", "my_task"],
        ["data", "samples", "searchqa"],
        ["data", "check", "data/samples/searchqa"],
        ["config", "show", "--config", "configs/searchqa/sample.yaml"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", command, site, *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_every_extra_that_the_code_names_exists() -> None:
    declared = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE))
    for path in (ROOT / "skillopt").rglob("*.py"):
        for names in re.findall(r"skillopt\[([a-z,]+)\]", path.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= declared, path
