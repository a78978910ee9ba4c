"""Staging: what is written, what is refused before anything is written, what is left out."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sleep.staging.staging_world import MEMORY, NEW_SKILL, SKILL, World

from skillopt_sleep import paths, staging
from skillopt_sleep.staging import StagingError, nights
from skillopt_sleep.types import SkillProposal, SleepReport


def manifest(night: Path) -> dict[str, object]:
    return dict(json.loads((night / "manifest.json").read_text("utf-8")))


def test_a_night_pins_what_it_was_made_from_and_changes_nothing_live(world: World) -> None:
    before = world.snapshot()
    night = world.stage(report=SleepReport(3, str(world.project), accepted=True))
    assert world.snapshot() == before
    value = manifest(night)
    assert (value["schema"], value["schema_version"]) == ("skillopt-sleep-staging", 2)
    assert (value["has_skill"], value["has_memory"], value["accepted"]) == (False, False, True)
    assert value["has_managed_skill"]
    assert value["has_managed_memory"]
    row = value["legacy"]["skill"]  # type: ignore[index]
    assert row["live_realpath"] == str(world.skill)
    assert row["live_sha256"] == staging_hash(SKILL)
    assert row["sha256"] == staging_hash(NEW_SKILL)
    assert (night / "proposed_SKILL.md").read_bytes() == NEW_SKILL.encode()
    assert json.loads((night / "report.json").read_text())["night"] == 3
    assert staging.latest_staging(world.project) == str(night)


def staging_hash(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_everything_is_private(world: World) -> None:
    night = world.stage()
    for path in [night, *night.iterdir(), night.parent / ".latest", night.parent, night.parent.parent]:
        assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    key = world.cfg.state_dir / "staging.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize("memory", [None, MEMORY])
def test_unchanged_documents_are_not_staged(world: World, memory: str | None) -> None:
    night = world.stage(memory=memory)
    assert not (night / "proposed_CLAUDE.md").exists()
    assert not manifest(night)["has_managed_memory"]
    staging.adopt(night, cfg=world.cfg)
    assert world.memory.read_text() == MEMORY


def test_an_empty_memory_for_a_missing_file_is_not_staged(empty: World) -> None:
    night = empty.stage(memory="")
    assert "memory" not in manifest(night)["legacy"]  # type: ignore[operator]
    staging.adopt(night, cfg=empty.cfg)
    assert not empty.memory.exists()


def test_the_diff_lies_in_the_night(world: World) -> None:
    text = (world.stage() / "proposed.diff").read_text("utf-8")
    assert "+- wrap the answer\n" in text
    assert "+- run the tests\n" in text
    assert "-No final newline\n\\ No newline at end of file\n" in text


def test_a_live_edit_during_the_night_publishes_nothing_and_is_kept(world: World) -> None:
    with pytest.raises(StagingError, match="changed during consolidation"):
        world.stage(live_skill_sha256="0" * 64)
    assert staging.latest_staging(world.project) is None
    assert world.skill.read_bytes() == SKILL.encode()
    with pytest.raises(StagingError, match="changed during consolidation"):
        world.stage(live_memory_realpath="/elsewhere/CLAUDE.md")
    with pytest.raises(StagingError, match="changed during consolidation"):
        world.stage(live_memory_sha256="")


def test_an_undecodable_baseline_is_refused(world: World) -> None:
    world.skill.write_bytes(b"\xff\xfe bad")
    with pytest.raises(StagingError, match="not UTF-8"):
        world.stage()


@pytest.mark.parametrize("text", ["", "  \n", "half \ud800 a character"])
def test_c221_a_blank_or_undecodable_proposal_is_not_staged(world: World, text: str) -> None:
    world.write(world.named("alpha"), "# alpha\n")
    with pytest.raises(StagingError, match=r"blank|half a character"):
        world.stage(skill_proposals=[SkillProposal("alpha", text, str(world.named("alpha")))])
    with pytest.raises(StagingError, match=r"blank|half a character"):
        world.stage(skill=text)
    assert list(nights.folders(world.project)) == []


@pytest.mark.parametrize("name", ["a:b", "nul", "NUL.txt", "x.", "x?", "x ", "a/b", "..", "", "~x", "a\x07", "x" * 200])
def test_c220_names_that_some_system_cannot_store_are_refused(world: World, name: str) -> None:
    proposal = SkillProposal(name, "- rule\n", str(world.named("alpha")))
    with pytest.raises(StagingError) as refused:
        world.stage(skill_proposals=[proposal])
    assert f"The skill name {name!r} cannot be staged" in str(refused.value)
    assert list(nights.folders(world.project)) == []


def test_sound_generators_are_accepted_and_paths_normalised(world: World) -> None:
    def proposals() -> Iterator[SkillProposal]:
        path = world.write(world.named("alpha"), "# alpha\n")
        yield SkillProposal("alpha", "# alpha\n- rule\n", f"/{path.parents[1]}/./alpha//SKILL.md")

    night = world.stage(None, None, skill_proposals=proposals())
    row = staging.staged_skills(night, cfg=world.cfg)[0]
    assert row["live_skill_path"] == str(world.named("alpha"))
    assert staging.staged_skill_roots(night, cfg=world.cfg) == [str(world.home / "skills")]


def test_collisions_in_case_unicode_or_target_are_refused(world: World) -> None:
    for one, other in (("Alpha", "alpha"), ("caf\u00e9", "cafe\u0301")):
        proposals = [
            SkillProposal(name, "- rule\n", str(world.write(world.named(name), "# x\n"))) for name in (one, other)
        ]
        with pytest.raises(StagingError, match="have the same"):
            world.stage(None, None, skill_proposals=proposals)
    managed = SkillProposal("skillopt-sleep-learned", "- rule\n", str(world.skill))
    with pytest.raises(StagingError, match="same live file"):
        world.stage(skill_proposals=[managed])


@pytest.mark.parametrize("path", ["/x/../etc/alpha/SKILL.md", "alpha/SKILL.md", "~/alpha/SKILL.md", "/x/\x1b/SKILL.md"])
def test_c218_paths_are_refused_as_written(world: World, path: str) -> None:
    with pytest.raises(StagingError, match=r"segment|absolute|~|control"):
        world.stage(None, None, skill_proposals=[SkillProposal("alpha", "- rule\n", path)])


def test_a_named_row_has_to_be_its_own_skill(world: World) -> None:
    world.write(world.named("alpha"), "# alpha\n")
    for path, what in ((world.named("alpha"), "folder"), (world.named("beta").with_name("NOTES.md"), "called")):
        with pytest.raises(StagingError, match=what):
            world.stage(None, None, skill_proposals=[SkillProposal("beta", "- rule\n", str(path))])


def test_write_skill_proposals_checks_all_before_the_first_write(world: World, tmp_path: Path) -> None:
    good = SkillProposal("alpha", "- rule\n", str(world.write(world.named("alpha"), "# alpha\n")))
    bad = SkillProposal("beta", " ", str(world.write(world.named("beta"), "# beta\n")))
    with pytest.raises(StagingError):
        staging.write_skill_proposals(tmp_path / "out", [good, bad])
    assert not (tmp_path / "out").exists()
    rows = staging.write_skill_proposals(tmp_path / "out", iter([good]))
    assert rows == staging.skill_proposal_rows([good])
    assert (tmp_path / "out" / "proposed_SKILL.alpha.md").read_text() == "- rule\n"


def test_a_failed_write_leaves_no_partial_night(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = paths.write_private

    def full(path: Path, content: str | bytes) -> None:
        if path.name == "report.md":
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(paths, "write_private", full)
    with pytest.raises(StagingError, match="No space left"):
        world.stage()
    assert list(nights.folders(world.project)) == []
    reserved = Path(staging.new_staging_dir(world.project))
    (reserved / "evidence.jsonl").write_text("{}\n")
    with pytest.raises(StagingError):
        world.stage(out_dir=reserved)
    assert [entry.name for entry in reserved.iterdir()] == ["evidence.jsonl"]
    assert staging.latest_staging(world.project) is None


def test_a_reserved_night_is_used_once(world: World) -> None:
    reserved = staging.new_staging_dir(world.project)
    assert str(world.stage(out_dir=reserved)) == reserved
    with pytest.raises(StagingError, match="published already"):
        world.stage(out_dir=reserved)


def test_nights_of_one_second_get_numbers_and_many_at_once_are_unique(world: World) -> None:
    first = nights.reserve(world.project, clock=lambda: 0.0)
    second = nights.reserve(world.project, clock=lambda: 0.0)
    assert (first.name, second.name) == ("19700101-000000", "19700101-000000-2")
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: nights.reserve(world.project, clock=lambda: 0.0), range(16)))
    assert len(set(made)) == 16


def test_the_pointer_wins_over_times_and_a_bad_one_is_ignored(world: World) -> None:
    old, new = world.stage(), world.stage(NEW_SKILL + "- more\n")
    os.utime(old / "manifest.json", (2e9, 2e9))
    assert staging.latest_staging(world.project) == str(new)
    pointer = old.parent / ".latest"
    for broken in ("../../evil\n", "nothing", old.name + "\n"):
        pointer.unlink()
        if broken.startswith(old.name):
            (old.parent / "aside").write_text(broken)
            pointer.symlink_to(old.parent / "aside")
        else:
            pointer.write_text(broken)
            pointer.chmod(0o600)
        assert staging.latest_staging(world.project) == str(old)


def test_links_in_the_staging_path_are_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (world.project / ".skillopt-sleep").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StagingError, match="is a link"):
        world.stage()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_linked_night_is_not_a_night(world: World) -> None:
    night = world.stage()
    linked = night.with_name("20200101-000000")
    linked.symlink_to(night)
    assert list(nights.folders(world.project)) == [night]
    with pytest.raises(StagingError, match="is a link"):
        staging.adopt(linked, cfg=world.cfg)


def test_the_project_itself_may_be_reached_through_a_link(world: World, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(world.project)
    night = world.stage()
    assert staging.latest_staging(tmp_path / "short") == str(night)


def test_report_and_diff_are_redacted_and_a_secret_holds_the_night(world: World) -> None:
    secret = "sk-" + "a1B2" * 12
    report = {"accepted": True, "edits": [{"content": f"use {secret}"}], "score": float("nan")}
    night = world.stage(SKILL + f"\n- use {secret}\n", report=report)
    assert secret not in (night / "report.json").read_text()
    assert json.loads((night / "report.json").read_text())["score"] is None
    assert secret not in (night / "proposed.diff").read_text()
    assert "secret" in manifest(night)["held"][0]  # type: ignore[index]
    with pytest.raises(staging.AdoptionRefused, match="held for review"):
        staging.adopt(night, auto=True, cfg=world.cfg)


def test_new_nights_are_kept_out_of_git(world: World) -> None:
    world.stage()
    assert (world.project / ".skillopt-sleep" / ".gitignore").read_text() == "*\n"


def test_preflight_says_before_any_spending_what_can_never_be_written(world: World, tmp_path: Path) -> None:
    assert staging.preflight(world.cfg) == []
    world.memory.unlink()
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "CLAUDE.md").write_text("x")
    world.memory.symlink_to(tmp_path / "dotfiles" / "CLAUDE.md")
    problems = staging.preflight(world.cfg)
    assert [one.target for one in problems] == ["memory"]
    assert "skill_roots" in problems[0].message
    assert staging.preflight(world.config(evolve_memory=False)) == []
    assert staging.preflight(world.config(skill_roots=[str(tmp_path / "dotfiles")])) == []


def test_a_named_skill_outside_the_given_roots_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(StagingError, match="none of the given"):
        world.stage_named("alpha", skill_roots=[tmp_path / "other"])


def test_what_a_killed_attempt_left_in_a_reserved_night_is_written_over(world: World) -> None:
    reserved = Path(staging.new_staging_dir(world.project))
    paths.write_private(reserved / "proposed_SKILL.md", "half")
    night = world.stage(out_dir=reserved)
    assert (night / "proposed_SKILL.md").read_bytes() == NEW_SKILL.encode()


def test_a_repository_scoped_skill_is_staged_and_adopted(world: World) -> None:
    target = world.write(world.project / "tools" / "own" / "SKILL.md", SKILL)
    night = world.stage(memory=None, live_skill_path=target)
    assert staging.adopt(night, cfg=world.cfg) == [str(target)]
