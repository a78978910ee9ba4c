"""Adoption: all or nothing, only what was reviewed, only where it is allowed."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sleep.staging.staging_world import MEMORY, NEW_MEMORY, NEW_SKILL, SKILL, World

from skillopt_sleep import locks, staging
from skillopt_sleep.errors import NightBusy, StagingRecoveryError
from skillopt_sleep.staging import AdoptionFailed, AdoptionRefused, InvalidStaging, StagingError, disk, exchange, live
from skillopt_sleep.types import SkillProposal


def test_the_managed_pair_goes_live_with_backups_and_receipts(world: World) -> None:
    night = world.stage()
    assert staging.adopt(night, cfg=world.cfg) == [str(world.skill), str(world.memory)]
    assert world.skill.read_bytes() == NEW_SKILL.encode()
    assert world.memory.read_bytes() == NEW_MEMORY.encode()
    receipts = json.loads((night / "adopted_legacy.json").read_text())
    assert [row["target"] for row in receipts] == ["skill", "memory"]
    assert not (night / ".adopt-transaction.json").exists()
    assert not staging.has_pending_staged_managed(night, cfg=world.cfg)
    assert staging.has_staged_managed(night, cfg=world.cfg)
    with pytest.raises(AdoptionRefused, match="already"):
        staging.adopt(night, cfg=world.cfg)


def test_c215_a_backup_is_the_same_in_bytes_and_mode_and_the_mode_is_kept(world: World) -> None:
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    backup = night / "backup" / "SKILL.md"
    assert backup.read_bytes() == SKILL.encode()
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    assert stat.S_IMODE(world.skill.stat().st_mode) == 0o640
    assert stat.S_IMODE(world.memory.stat().st_mode) == 0o644


def test_c211_a_touched_file_with_the_same_bytes_is_adopted(world: World) -> None:
    night = world.stage()
    os.utime(world.skill, (2e9, 2e9))
    staging.adopt(night, cfg=world.cfg)
    assert world.skill.read_bytes() == NEW_SKILL.encode()


def test_new_files_follow_the_umask_and_have_no_backup(empty: World) -> None:
    before = os.umask(0o022)
    try:
        night = empty.stage()
        staging.adopt(night, cfg=empty.cfg)
    finally:
        os.umask(before)
    assert stat.S_IMODE(empty.memory.stat().st_mode) == 0o644
    assert stat.S_IMODE(empty.skill.parent.stat().st_mode) == 0o700
    row = json.loads((night / "adopted_legacy.json").read_text())[0]
    assert (row["sha256_before"], row["backup_path"]) == ("", "")


def test_a_subset_touches_only_what_was_chosen_and_receipts_accumulate(world: World) -> None:
    night = world.stage_named("alpha", "beta", "gamma")
    receipts = staging.adopt_skills(night, ["beta"], cfg=world.cfg)
    assert [one.skill_name for one in receipts] == ["beta"]
    assert "new rule" in world.named("beta").read_text()
    assert "new rule" not in world.named("alpha").read_text()
    assert [row["skill_name"] for row in staging.pending_staged_skills(night, cfg=world.cfg)] == ["alpha", "gamma"]
    with pytest.raises(AdoptionRefused, match="already"):
        staging.adopt_skills(night, ["beta"], cfg=world.cfg)
    staging.adopt_skills(night, ["gamma", "alpha"], cfg=world.cfg)
    assert staging.adopted_names(night, cfg=world.cfg) == ["beta", "gamma", "alpha"]
    assert staging.adopt_skills(night, [], cfg=world.cfg) == []


def test_names_none_means_all_and_unknown_or_repeated_names_are_refused(world: World) -> None:
    night = world.stage_named("alpha", "beta")
    for names in (["nobody"], ["alpha", "alpha"]):
        with pytest.raises(staging.SelectionRefused):
            staging.adopt_skills(night, names, cfg=world.cfg)
    assert len(staging.adopt_skills(night, cfg=world.cfg)) == 2


def test_managed_and_named_adoptions_of_one_night_are_independent(world: World) -> None:
    world.write(world.named("alpha"), "# alpha\n")
    night = world.stage(skill_proposals=[SkillProposal("alpha", "# alpha\n- x\n", str(world.named("alpha")))])
    staging.adopt(night, cfg=world.cfg)
    assert world.named("alpha").read_text() == "# alpha\n"
    assert staging.adopt_skills(night, ["alpha"], cfg=world.cfg)


@pytest.mark.parametrize("what", ["edited", "deleted", "created"])
def test_a_live_file_that_changed_since_staging_is_refused_whole(world: World, what: str) -> None:
    if what == "created":
        world.memory.unlink()
    night = world.stage()
    if what == "deleted":
        world.memory.unlink()
    else:
        world.memory.write_text("my own edit\n")
    before = world.snapshot()
    with pytest.raises(AdoptionRefused, match=what):
        staging.adopt(night, cfg=world.cfg)
    assert world.snapshot() == before


def test_c217_a_manifest_that_points_elsewhere_is_refused(world: World) -> None:
    night = world.stage_named("alpha")
    victim = world.write(world.project.parent / "other" / "alpha" / "SKILL.md", "# alpha\n")
    file = night / "manifest.json"
    value = json.loads(file.read_text())
    row = value["skills"][0]
    row["live_skill_path"] = row["live_realpath"] = str(victim)
    row["live_sha256"] = disk.digest(victim.read_bytes())
    value["skill_roots"] = [str(victim.parents[1])]
    file.write_text(json.dumps(value))
    with pytest.raises(InvalidStaging, match="changed since it was written"):
        staging.adopt_skills(night, cfg=world.cfg)
    del value["mac"]
    file.write_text(json.dumps(value))
    with pytest.raises(AdoptionRefused, match="not signed"):
        staging.adopt_skills(night, cfg=world.cfg)
    for cfg in (world.cfg, None):
        with pytest.raises(AdoptionRefused, match="outside the allowed folders"):
            staging.adopt_skills(night, trust_unsigned=True, cfg=cfg)
    assert victim.read_text() == "# alpha\n"


def test_c218_traversal_in_a_target_is_refused_as_written(world: World) -> None:
    night = world.stage_named("alpha")
    resign(world, night, lambda row: row.update(live_skill_path=f"{world.home}/skills/../skills/alpha/SKILL.md"))
    with pytest.raises(AdoptionRefused, match=r"'\.\.' segment"):
        staging.adopt_skills(night, cfg=world.cfg)


def resign(world: World, night: Path, change: Any) -> None:
    """A manifest with another first row, signed as if this installation had written it."""
    from skillopt_sleep.staging.manifest import purpose
    from skillopt_sleep.staging.signing import load_seal

    file = night / "manifest.json"
    value = json.loads(file.read_text())
    change(value["skills"][0])
    file.write_text(json.dumps(load_seal(world.cfg.state_dir).sign(value, purpose=purpose(night))))


def test_places_come_from_todays_configuration_not_from_the_manifest(world: World, tmp_path: Path) -> None:
    target = world.write(Path(os.path.realpath(tmp_path)) / "mine" / "managed" / "SKILL.md", SKILL)
    cfg = world.config(target_skill_path=str(target))
    night = world.stage(memory=None, live_skill_path=target, cfg=cfg)
    with pytest.raises(AdoptionRefused, match="outside the allowed folders"):
        staging.adopt(night, cfg=world.cfg)
    assert target.read_bytes() == SKILL.encode()
    assert staging.adopt(night, cfg=cfg) == [str(target)]


def test_a_night_of_another_user_or_installation_is_not_adopted(world: World) -> None:
    night = world.stage()
    (world.cfg.state_dir / "staging.key").unlink()
    with pytest.raises(InvalidStaging, match="signature"):
        staging.adopt(night, cfg=world.cfg)
    assert world.skill.read_bytes() == SKILL.encode()


@pytest.mark.parametrize("version", [3, "2", True, None])
def test_other_schema_versions_are_refused(world: World, version: object) -> None:
    night = world.stage()
    (night / "manifest.json").write_text(json.dumps({"schema": "skillopt-sleep-staging", "schema_version": version}))
    with pytest.raises(InvalidStaging, match="another version"):
        staging.adopt(night, cfg=world.cfg)


def test_a_first_version_manifest_is_readable_but_without_pins_not_adoptable(world: World) -> None:
    night = world.stage()
    old = {"live_skill_path": str(world.skill), "live_memory_path": str(world.memory), "has_skill": True}
    (night / "manifest.json").write_text(json.dumps({**old, "has_memory": False, "accepted": True}))
    assert staging.has_staged_managed(night, cfg=world.cfg)
    with pytest.raises(AdoptionRefused, match="not signed"):
        staging.adopt(night, cfg=world.cfg)
    with pytest.raises(AdoptionRefused, match="which text"):
        staging.adopt(night, trust_unsigned=True, cfg=world.cfg)


def test_tampered_missing_or_linked_proposals_are_refused(world: World, tmp_path: Path) -> None:
    night = world.stage_named("alpha")
    file = night / "proposed_SKILL.alpha.md"
    good = file.read_bytes()
    file.write_bytes(good + b"- evil\n")
    with pytest.raises(AdoptionRefused, match="changed since it was staged"):
        staging.adopt_skills(night, cfg=world.cfg)
    file.unlink()
    with pytest.raises(AdoptionRefused, match="missing"):
        staging.adopt_skills(night, cfg=world.cfg)
    (tmp_path / "aside").write_bytes(good)
    file.symlink_to(tmp_path / "aside")
    with pytest.raises(AdoptionRefused, match="link"):
        staging.adopt_skills(night, cfg=world.cfg)


def test_hard_linked_targets_are_refused(world: World) -> None:
    night = world.stage()
    os.link(world.memory, world.project / "second-name.md")
    with pytest.raises(AdoptionRefused, match="hard links"):
        staging.adopt(night, cfg=world.cfg)
    assert world.skill.read_bytes() == SKILL.encode()


def test_c212_a_skill_that_is_a_link_is_never_replaced_by_a_file(world: World, tmp_path: Path) -> None:
    dotfile = world.write(Path(os.path.realpath(tmp_path)) / "dotfiles" / "skill.md", SKILL)
    world.skill.unlink()
    world.skill.symlink_to(dotfile)
    with pytest.raises(StagingError, match="link is never replaced"):
        world.stage()
    assert world.skill.is_symlink()
    world.skill.unlink()
    # A real SKILL.md behind a linked folder: refused with the way out, written through once that was chosen.
    real = world.write(Path(os.path.realpath(tmp_path)) / "dotfiles" / "own" / "SKILL.md", SKILL)
    world.skill.parent.rmdir()
    world.skill.parent.symlink_to(real.parent)
    night = world.stage(memory=None)
    with pytest.raises(AdoptionRefused, match="write through the link, add"):
        staging.adopt(night, cfg=world.cfg)
    staging.adopt(night, cfg=world.config(skill_roots=[str(real.parents[1])]))
    assert real.read_bytes() == NEW_SKILL.encode()
    assert world.skill.parent.is_symlink()


def test_d11_a_memory_linked_to_agents_md_is_adopted_through_the_link(world: World) -> None:
    world.memory.unlink()
    agents = world.write(world.project / "AGENTS.md", MEMORY, 0o600)
    world.memory.symlink_to("AGENTS.md")
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    assert world.memory.is_symlink()
    assert agents.read_text() == NEW_MEMORY
    staging.undo(world.project, cfg=world.cfg)
    assert agents.read_text() == MEMORY
    assert world.memory.is_symlink()


def test_a_link_that_moved_since_staging_is_refused(world: World, tmp_path: Path) -> None:
    world.memory.unlink()
    world.write(world.project / "AGENTS.md", MEMORY)
    other = world.write(world.project / "OTHER.md", MEMORY)
    world.memory.symlink_to("AGENTS.md")
    night = world.stage()
    world.memory.unlink()
    world.memory.symlink_to(other)
    with pytest.raises(AdoptionRefused, match="link was changed"):
        staging.adopt(night, cfg=world.cfg)
    named = world.stage_named("alpha")
    folder = world.named("alpha").parent
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(AdoptionRefused, match="link was changed"):
        staging.adopt_skills(named, cfg=world.cfg)


def test_two_rows_of_one_file_are_refused(world: World) -> None:
    night = world.stage_named("alpha", "beta")
    world.named("beta").unlink()
    os.link(world.named("alpha"), world.named("beta"))
    with pytest.raises(AdoptionRefused, match="same file"):
        staging.adopt_skills(night, ["alpha"], cfg=world.cfg)


def test_named_rows_make_no_folders(world: World) -> None:
    night = world.stage_named("alpha")
    world.named("alpha").unlink()
    world.named("alpha").parent.rmdir()
    with pytest.raises(AdoptionRefused, match="folder"):
        staging.adopt_skills(night, cfg=world.cfg)


def test_c224_nothing_unverified_is_adopted_unseen(world: World) -> None:
    rejected = world.stage(report={"accepted": False})
    with pytest.raises(AdoptionRefused, match="not accepted"):
        staging.adopt(rejected, auto=True, cfg=world.cfg)
    held = world.stage(held=["a rule holds a URL"])
    with pytest.raises(AdoptionRefused, match="held for review: a rule holds a URL"):
        staging.adopt(held, auto=True, cfg=world.cfg)
    named = world.stage_named("alpha")
    assert staging.adopt(named, auto=True, cfg=world.cfg) == []
    assert "new rule" not in world.named("alpha").read_text()
    assert staging.adopt(held, cfg=world.cfg)


@pytest.mark.parametrize("at", range(1, 16))
def test_any_failing_write_restores_everything(world: World, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    world.memory.unlink()
    night = world.stage()
    before, files = world.snapshot(), sorted(entry.name for entry in night.iterdir())
    calls = 0

    def failing(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    try:
        staging.adopt(night, cfg=world.cfg)
    except AdoptionFailed:
        assert world.snapshot() == before
        left = {entry.name for entry in night.iterdir()} - {".adopt-skills.lock"}
        assert left == set(files)
    else:
        assert world.skill.read_bytes() == NEW_SKILL.encode()
    monkeypatch.undo()
    assert not staging.recover(world.project, cfg=world.cfg)


def test_a_person_who_edits_during_the_adoption_keeps_the_edit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    night = world.stage()
    real = live.replace

    def racing(path: Path, data: bytes, **how: Any) -> None:
        real(path, data, **how)
        if path == world.memory:
            world.skill.write_text("edited meanwhile\n")

    monkeypatch.setattr(live, "replace", racing)
    with pytest.raises(StagingRecoveryError) as failed:
        staging.adopt(night, cfg=world.cfg)
    assert failed.value.primary is not None
    assert failed.value.recovery_errors
    assert world.skill.read_text() == "edited meanwhile\n"
    assert (night / ".adopt-transaction.json").exists()
    assert (night / "backup" / "SKILL.md").read_bytes() == SKILL.encode()
    monkeypatch.undo()
    assert staging.recover(world.project, cfg=world.cfg)[0].status == "blocked"
    with pytest.raises(StagingRecoveryError):
        staging.pending_staged_skills(night, cfg=world.cfg)
    done = staging.recover(world.project, keep_edited=True, cfg=world.cfg)
    assert done[0].status == "rolled_back"
    assert world.skill.read_text() == "edited meanwhile\n"
    assert world.memory.read_text() == MEMORY


def test_c7_file_systems_without_hard_links(empty: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(exchange.platform, "system", lambda: "Plan 9")
    night = empty.stage()
    staging.adopt(night, cfg=empty.cfg)
    assert empty.memory.read_text() == NEW_MEMORY
    staging.undo(empty.project, cfg=empty.cfg)
    assert not empty.memory.exists()


def test_a_receipt_or_backup_that_was_tampered_with_stops_further_adoptions(world: World) -> None:
    night = world.stage_named("alpha", "beta")
    staging.adopt_skills(night, ["alpha"], cfg=world.cfg)
    receipts = night / "adopted_skills.json"
    good = receipts.read_text()
    for bad in (good.replace('"at"', '"when"'), "{}", "not json", good.replace("alpha", "alphb")):
        receipts.write_text(bad)
        with pytest.raises(InvalidStaging):
            staging.adopt_skills(night, ["beta"], cfg=world.cfg)
    receipts.write_text(good)
    backup = night / "backup" / "skills" / "alpha" / "SKILL.md"
    backup.write_text("tampered")
    with pytest.raises(AdoptionRefused, match="backup"):
        staging.adopt_skills(night, ["beta"], cfg=world.cfg)


def test_two_writers_of_one_night_or_one_target_exclude_each_other(world: World) -> None:
    night = world.stage()
    with (
        locks.FileLock(night / ".adopt-skills.lock", "adopting"),
        pytest.raises(NightBusy),
    ):
        staging.adopt(night, cfg=world.cfg)
    with locks.target_lock(world.cfg.state_dir, world.memory), pytest.raises(NightBusy):
        staging.adopt(night, cfg=world.cfg)
    with locks.target_lock(world.cfg.state_dir, world.skill):
        pass  # a lock that could be taken was given back
    assert staging.adopt(night, cfg=world.cfg)


def test_d1_the_lock_file_of_a_dead_older_version_is_taken_over(world: World) -> None:
    night = world.stage()
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    lock = night / ".adopt-skills.lock"
    lock.write_text(f"pid={int(gone.stdout)}\n")
    assert staging.adopt(night, cfg=world.cfg)


def test_the_lock_file_of_a_living_older_version_is_respected(world: World) -> None:
    night = world.stage()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (night / ".adopt-skills.lock").write_text(f"pid={process.pid}\n")
        with pytest.raises(NightBusy, match=str(process.pid)):
            staging.adopt(night, cfg=world.cfg)
        assert process.stdin is not None
        process.stdin.close()


def test_a_relative_spelling_of_a_night_works(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    night = world.stage()
    monkeypatch.chdir(world.project)
    assert staging.adopt(os.path.relpath(night), cfg=world.cfg)


def test_without_a_configuration_a_signed_night_speaks_for_itself(world: World) -> None:
    assert staging.adopt(world.stage()) == [str(world.skill), str(world.memory)]


def test_folders_that_hold_no_night_are_said_so(world: World, tmp_path: Path) -> None:
    with pytest.raises(InvalidStaging, match="not a night"):
        staging.adopt(tmp_path, cfg=world.cfg)
    with pytest.raises(staging.NoStaging):
        staging.adopt(staging.new_staging_dir(world.project), cfg=world.cfg)


def test_of_two_adoptions_at_once_exactly_one_happens(world: World) -> None:
    nights = [world.stage(), world.stage(NEW_SKILL + "- other\n")]

    def attempt(night: Path) -> str:
        try:
            staging.adopt(night, cfg=world.cfg)
        except (NightBusy, AdoptionRefused) as refused:
            return type(refused).__name__
        return "adopted"

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(attempt, [*nights, *nights]))
    assert outcomes.count("adopted") == 1
    assert world.memory.read_text() == NEW_MEMORY
    staging.undo(world.project, cfg=world.cfg)
    assert world.skill.read_bytes() == SKILL.encode()
