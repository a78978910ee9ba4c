"""What is closed of a person's configuration of Codex."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.utils.codex_home import as_flags, closing, codex_home, codex_source
from skillopt.utils.tool_servers import Source

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths of POSIX")


def source(home: Path, profile: str = "") -> Source:
    return codex_source("codex", {"CODEX_HOME": str(home)}, profile)


def test_every_server_is_switched_off_and_no_folder_is_trusted() -> None:
    settings = closing(["mine", "my-2", "a.b c", 'q"'], Path("/tmp/x/work"))
    assert list(settings) == [
        *("mcp_servers", "mcp_servers.mine.enabled", "mcp_servers.my-2.enabled", "projects", "notify"),
        "features.shell_snapshot",
    ]
    assert settings["mcp_servers"] == '{"a.b c"={enabled=false},"q\\""={enabled=false}}'
    assert settings["mcp_servers.mine.enabled"] == "false"
    assert settings["projects"].startswith(
        '{"/tmp/x/work"={trust_level="untrusted"},"/tmp/x"={trust_level="untrusted"}'
    )
    assert '"/"={trust_level="untrusted"}' in settings["projects"]
    assert as_flags(settings)[:2] == ["-c", f"mcp_servers={settings['mcp_servers']}"]
    assert "mcp_servers" not in closing([], Path("/tmp/x"))


def test_a_folder_behind_a_link_is_untrusted_under_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    projects = closing([], tmp_path / "link")["projects"]
    assert f'"{tmp_path}/link"={{' in projects
    assert f'"{tmp_path}/real"={{' in projects


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads TOML")
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True))
def test_the_settings_are_toml_that_names_every_server(names: list[str]) -> None:
    import tomllib

    off: dict[str, bool] = {}
    for key, value in closing(names, Path("/tmp")).items():
        read = tomllib.loads(f"value = {value}")["value"]
        if key == "mcp_servers":
            off |= {name: row["enabled"] for name, row in read.items()}
        elif key.startswith("mcp_servers."):
            off[key.split(".")[1]] = read
    assert off == dict.fromkeys(names, False)


def test_it_is_asked_with_the_profile_of_the_run(tmp_path: Path) -> None:
    argv = source(tmp_path, "fast").question(Path("/tmp/x"))
    assert argv[:6] == ["codex", "-p", "fast", "mcp", "list", "--json"]
    assert argv[6] == "-c"
    assert argv[7].startswith('projects={"/tmp/x"=')
    assert source(tmp_path).question(Path("/tmp/x"))[:4] == ["codex", "mcp", "list", "--json"]
    assert source(tmp_path).key != source(tmp_path, "fast").key != source(tmp_path / "other", "fast").key


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("[]", ()),
        (
            json.dumps([{"name": "a.b", "enabled": True, "transport": {}}, {"name": "off", "enabled": False}]),
            ("a.b", "off"),
        ),
        ('[{"name": "of a version that cannot switch it off"}]', None),
        ('[{"enabled": true}]', None),
        ('{"name": "a", "enabled": true}', None),
        ("[7]", None),
        ("", None),
        ("[" * 100_000, None),
    ],
)
def test_its_list_is_read_or_not_understood(tmp_path: Path, output: str, names: tuple[str, ...] | None) -> None:
    assert source(tmp_path).read(output) == names


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("model = 'x'\n", False),
        ("# [mcp_servers.old]\n  # mcp_servers\n", False),
        ("[mcp_servers.mine]\ncommand = 'x'\n", True),
        ("mcp_servers = { }", True),
        ("[profiles.p.mcp_servers.x]", True),
        ("model = '\udcff'\n['mcp_servers'.a]", True),
    ],
)
def test_a_file_that_mentions_servers_may_have_some(tmp_path: Path, text: str, may: bool) -> None:
    (tmp_path / "config.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "fast.config.toml").write_text("", "utf-8")
    found = source(tmp_path)
    assert {tmp_path / "config.toml", tmp_path / "fast.config.toml", Path("/etc/codex/config.toml")} <= set(found.files)
    assert found.may_have(tmp_path / "config.toml") == may
    assert not found.may_have(tmp_path / "missing.toml")
    assert found.may_have(tmp_path)  # what cannot be read may hold anything


def test_its_home_is_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert codex_home({}) == codex_home({"CODEX_HOME": " "}) == tmp_path / ".codex"
    assert codex_home({"CODEX_HOME": "~/other"}) == tmp_path / "other"
