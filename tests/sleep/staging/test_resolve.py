"""Finding a named skill."""

from __future__ import annotations

from pathlib import Path

import pytest
from sleep.staging.staging_world import World

from skillopt_sleep import staging
from skillopt_sleep.staging.resolve import plugin_of, version_key
from skillopt_sleep.types import SkillProposal, SkillResolution


def find(world: World, name: object, **changes: object) -> SkillResolution:
    return staging.resolve_skill(name, staging.skill_search_roots(world.config(**changes)))


def plugin(world: World, name: str, version: str, skill: str) -> Path:
    folder = world.home / "plugins" / "cache" / "market" / name / version / "skills" / skill
    return world.write(folder / "SKILL.md", "# plugin\n")


def test_the_roots_are_searched_in_order_and_each_once(world: World, tmp_path: Path) -> None:
    for root in (".claude/skills", ".agents/skills", "more"):
        (world.project / root).mkdir(parents=True)
    (tmp_path / "link").symlink_to(world.project / "more")
    roots = staging.skill_search_roots(world.config(skill_roots=["more", str(tmp_path / "link"), "missing"]))
    expected = [world.project / ".agents/skills", world.project / ".claude/skills", world.home / "skills"]
    assert roots == [*map(str, expected), str(world.project / "more")]


def test_one_file_is_found_none_is_missing_two_are_ambiguous(world: World) -> None:
    world.write(world.named("alpha"), "# alpha\n")
    found = find(world, " alpha ")
    assert (found.status, found.path, found.ok) == ("found", str(world.named("alpha")), True)
    assert find(world, "beta").status == "missing"
    world.write(world.project / ".claude/skills/alpha/SKILL.md", "# alpha\n")
    both = find(world, "alpha")
    assert (both.status, both.path, len(both.candidates)) == ("ambiguous", "", 2)


def test_one_file_under_two_roots_is_one(world: World) -> None:
    world.write(world.named("alpha"), "# alpha\n")
    (world.project / ".claude").mkdir()
    (world.project / ".claude" / "skills").symlink_to(world.home / "skills")
    assert find(world, "alpha").status == "found"


@pytest.mark.parametrize("name", ["", " ", "..", "a/b", "a\\b", "~a", "C:a", "a\x00", 3, None])
def test_bad_names_are_rejected(world: World, name: object) -> None:
    assert find(world, name).status == "rejected"


def test_a_link_out_of_the_root_is_not_found(world: World, tmp_path: Path) -> None:
    world.write(tmp_path / "away" / "SKILL.md", "# away\n")
    (world.home / "skills" / "alpha").symlink_to(tmp_path / "away")
    assert find(world, "alpha").status == "missing"


def test_v16_plugin_skills_are_found_by_name_but_never_offered_for_editing(world: World) -> None:
    plugin(world, "tools", "1.9.0", "alpha")
    newest = plugin(world, "tools", "1.10.0", "alpha")
    for name in ("tools:alpha", "alpha"):
        found = find(world, name)
        assert (found.status, found.path, found.candidates) == ("rejected", "", (str(newest),))
        assert "plugin's cache" in found.reason
    assert find(world, "other:alpha").status == "missing"
    world.write(world.named("alpha"), "# own\n")
    assert find(world, "alpha").path == str(world.named("alpha"))


def test_v16_a_plugins_file_is_neither_staged_nor_adopted(world: World) -> None:
    file = plugin(world, "tools", "1.0", "alpha")
    with pytest.raises(staging.StagingError, match="plugin's cache"):
        world.stage(None, None, skill_proposals=[SkillProposal("alpha", "- rule\n", str(file))])
    assert plugin_of(file) == "tools"
    assert plugin_of(world.skill) == ""
    assert all(not plugin_of(root) for root in staging.allowed_targets(world.cfg).roots)


def test_versions_compare_by_number_and_releases_beat_their_candidates() -> None:
    order = ["0.9", "1.0-alpha", "1.0-rc.1", "1.0", "1.0.1", "1.2", "1.10", "v2"]
    assert sorted(reversed(order), key=version_key) == order


def test_an_unversioned_plugin_has_its_skills_directly(world: World) -> None:
    folder = world.home / "plugins" / "cache" / "market" / "plain" / "skills"
    world.write(folder / "alpha" / "SKILL.md", "# x\n")
    assert str(folder) in staging.skill_search_roots(world.cfg)
