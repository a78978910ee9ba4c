"""Which tool servers Copilot is told not to start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillopt.model.copilot_servers import closing, copilot_source


def listed(*names: str) -> str:
    return json.dumps({"mcpServers": {name: {"type": "local", "enabled": True} for name in names}})


def test_the_servers_of_the_person_and_of_the_folders_around_are_switched_off(tmp_path: Path) -> None:
    work = tmp_path / "above" / "work"
    (work / ".github").mkdir(parents=True)
    (work / ".mcp.json").write_text(listed("here", "mine"), "utf-8")
    (work / ".github" / "mcp.json").write_text(listed("-odd name"), "utf-8")
    (tmp_path / "above" / ".mcp.json").write_text("\ufeff" + listed("above"), "utf-8")
    (tmp_path / ".mcp.json").write_bytes(b"\xff no JSON")
    assert closing(["mine", "user"], work) == [
        f"--disable-mcp-server={name}" for name in ("mine", "user", "here", "-odd name", "above")
    ]
    assert closing([], tmp_path / "none") == []


@pytest.mark.parametrize(
    ("output", "names"),
    [(listed(), ()), (listed("a", "b.c"), ("a", "b.c")), ("{}", None), ("[]", None), ("no", None), ("", None)],
)
def test_its_list_is_read_or_not_understood(output: str, names: tuple[str, ...] | None) -> None:
    source = copilot_source("copilot", {})
    assert source.read(output) == names
    assert source.question(Path("/tmp")) == ["copilot", "mcp", "list", "--json"]


def test_its_home_shows_whether_it_may_have_servers(tmp_path: Path) -> None:
    source = copilot_source("copilot", {"COPILOT_HOME": str(tmp_path)})
    (tmp_path / "settings.json").write_text("{}", "utf-8")
    assert not any(source.may_have(path) for path in source.files)
    (tmp_path / "installed-plugins").mkdir()
    assert not any(source.may_have(path) for path in source.files)
    (tmp_path / "installed-plugins" / "one").mkdir()
    assert [path.name for path in source.files if source.may_have(path)] == ["installed-plugins"]
    (tmp_path / "mcp-config.json").write_text(listed(), "utf-8")
    assert len([path for path in source.files if source.may_have(path)]) == 2
