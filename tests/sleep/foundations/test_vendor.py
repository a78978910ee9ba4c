"""The copies of skillopt's modules are fresh, and the package imports nothing but the standard library."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]

# Forbids everything that is not the standard library or the package itself, then imports what is named.
CODE = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("skillopt_sleep", "yaml", "_yaml"):
            raise ImportError(f"{name} is forbidden here")
sys.meta_path.insert(0, Only())
import importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted(name for name in sys.modules if name.startswith("skillopt_sleep.")))
"""


def vendor() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vendor", ROOT / "scripts" / "vendor.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(*names: str) -> list[str]:
    command = [sys.executable, "-c", CODE, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_copy_is_as_its_original_is_now() -> None:
    assert vendor().stale() == [], "run python scripts/vendor.py"


def test_the_gate_is_byte_identical() -> None:
    original = ROOT / "skillopt" / "evaluation" / "gate.py"
    assert (ROOT / "skillopt_sleep" / "learn" / "gate.py").read_bytes() == original.read_bytes()


def test_a_changed_copy_is_noticed(tmp_path: Path) -> None:
    module = vendor()
    for path, text in module.copies(ROOT).items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    (tmp_path / "skillopt").symlink_to(ROOT / "skillopt", target_is_directory=True)
    assert module.stale(tmp_path) == []
    (tmp_path / "skillopt_sleep" / "vendored" / "errors.py").write_text("changed")
    (tmp_path / "skillopt_sleep" / "vendored" / "utils" / "left_over.py").write_text("")
    assert [path.name for path in module.stale(tmp_path)] == ["errors.py", "left_over.py"]


def test_nothing_of_the_package_imports_from_skillopt() -> None:
    for path in sorted((ROOT / "skillopt_sleep").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not [name for name in names if name.partition(".")[0] == "skillopt"], path


def test_the_package_alone_loads_nothing_of_its_own() -> None:
    assert imported("skillopt_sleep") == []


@pytest.mark.parametrize(
    "name",
    ["types", "config", "state", "paths", "locks", "redact", "show", "evidence", "prompts", "budget", "errors",
     "vendored.utils.process", "vendored.utils.json_reply", "vendored.utils.parallel", "vendored.scoring.refusal",
     "vendored.evaluation.stats", "vendored.utils.azure_hosts"],
)  # fmt: skip
def test_foundations_import_with_the_standard_library_alone(name: str) -> None:
    assert f"skillopt_sleep.{name}" in imported(f"skillopt_sleep.{name}")


def test_every_module_of_the_package_imports_with_the_standard_library_and_pyyaml_alone() -> None:
    root = ROOT / "skillopt_sleep"
    files = (path.relative_to(ROOT).with_suffix("") for path in root.rglob("*.py") if path.name != "__main__.py")
    names = sorted(".".join(part for part in path.parts if part != "__init__") for path in files)
    assert "skillopt_sleep.config" in imported(*names)


def test_flat_names_are_found_where_they_live_and_an_unknown_one_is_refused() -> None:
    import skillopt_sleep
    from skillopt_sleep.config import load_config
    from skillopt_sleep.types import TaskRecord

    assert skillopt_sleep.load_config is load_config
    assert skillopt_sleep.TaskRecord is TaskRecord
    assert "TaskRecord" in dir(skillopt_sleep)
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = skillopt_sleep.nothing_here


@pytest.mark.parametrize("name", sorted(set(__import__("skillopt_sleep").__all__) - {"__version__"}))
def test_every_flat_name_exists(name: str) -> None:
    import skillopt_sleep

    assert getattr(skillopt_sleep, name) is not None
