"""Taking an adoption back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sleep.staging.staging_world import MEMORY, NEW_MEMORY, SKILL, World

from skillopt_sleep import locks, staging
from skillopt_sleep.errors import NightBusy, StagingRecoveryError
from skillopt_sleep.staging import InvalidStaging, NoStaging, UndoRefused, disk, live


def test_c214_undo_restores_bytes_and_modes(world: World) -> None:
    before = world.snapshot()
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    undone = staging.undo(world.project, cfg=world.cfg)
    assert world.snapshot() == before
    assert undone == staging.Undone(str(night), (str(world.skill), str(world.memory)), ())
    assert json.loads((night / "adopted_legacy.json").read_text())[0]["undone_at"] > 0
    with pytest.raises(NoStaging, match="left to undo"):
        staging.undo(world.project, cfg=world.cfg)


def test_undo_removes_what_was_created_and_leaves_what_is_in_use(empty: World) -> None:
    before = empty.snapshot()
    staging.adopt(empty.stage(), cfg=empty.cfg)
    assert staging.undo(empty.project, cfg=empty.cfg).removed == (str(empty.skill), str(empty.memory))
    assert empty.snapshot() == before
    staging.adopt(empty.stage(), cfg=empty.cfg)
    mine = empty.write(empty.skill.with_name("notes.txt"), "mine")
    staging.undo(empty.project, cfg=empty.cfg)
    assert mine.read_text() == "mine"
    assert not empty.skill.exists()


def test_c214_undo_after_a_hand_edit_is_refused_with_file_backup_and_diff(world: World) -> None:
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    world.memory.write_text(NEW_MEMORY + "my own line\n")
    before = world.snapshot()
    with pytest.raises(UndoRefused) as refused:
        staging.undo(world.project, cfg=world.cfg)
    assert str(world.memory) in str(refused.value)
    assert str(night / "backup" / "CLAUDE.md") in str(refused.value)
    assert "+my own line\n" in refused.value.diff
    assert world.snapshot() == before


def test_undo_is_a_stack_over_all_nights(world: World) -> None:
    before = world.snapshot()
    staging.adopt(world.stage(), cfg=world.cfg)
    staging.adopt_skills(world.stage_named("alpha"), cfg=world.cfg)
    world.named("alpha").unlink()
    with pytest.raises(UndoRefused, match="was deleted"):
        staging.undo(world.project, cfg=world.cfg)
    world.named("alpha").write_text("# alpha\n\n- a new rule\n")
    staging.undo(world.project, cfg=world.cfg)
    assert world.named("alpha").read_text() == "# alpha\n"
    staging.undo(world.project, cfg=world.cfg)
    assert {path: before[path] for path in before} == {path: world.snapshot()[path] for path in before}


def test_an_adoption_of_several_skills_is_undone_as_one(world: World) -> None:
    night = world.stage_named("alpha", "beta", "gamma")
    before = world.snapshot()
    staging.adopt_skills(night, ["gamma"], cfg=world.cfg)
    middle = world.snapshot()
    staging.adopt_skills(night, ["alpha", "beta"], cfg=world.cfg)
    staging.undo(night, cfg=world.cfg)
    assert world.snapshot() == middle
    staging.undo(night, cfg=world.cfg)
    assert world.snapshot() == before


def test_an_undone_proposal_can_be_adopted_again(world: World) -> None:
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    staging.undo(world.project, cfg=world.cfg)
    staging.adopt(night, cfg=world.cfg)
    assert world.memory.read_text() == NEW_MEMORY
    staging.undo(world.project, cfg=world.cfg)
    assert world.memory.read_text() == MEMORY


@pytest.mark.parametrize("damage", ["tamper", "remove", "link"])
def test_undo_verifies_the_backup(world: World, damage: str, tmp_path: Path) -> None:
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    backup = night / "backup" / "SKILL.md"
    backup.unlink()
    if damage == "tamper":
        backup.write_text("evil")
    elif damage == "link":
        (tmp_path / "evil").write_bytes(SKILL.encode())
        backup.symlink_to(tmp_path / "evil")
    before = world.snapshot()
    with pytest.raises(staging.AdoptionRefused, match=r"backup|link"):
        staging.undo(world.project, cfg=world.cfg)
    assert world.snapshot() == before


def test_a_forged_receipt_undoes_nothing(world: World) -> None:
    night = world.stage()
    staging.adopt(night, cfg=world.cfg)
    file = night / "adopted_legacy.json"
    rows = json.loads(file.read_text())
    rows[0]["live_path"] = str(world.memory)
    file.write_text(json.dumps(rows))
    with pytest.raises(staging.InvalidStaging):
        staging.undo(world.project, cfg=world.cfg)
    assert world.memory.read_text() == NEW_MEMORY


def test_a_failed_undo_leaves_the_adoption(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    staging.adopt(world.stage(), cfg=world.cfg)
    before = world.snapshot()
    real = live.replace

    def full(path: Path, data: bytes, **how: Any) -> None:
        if path == world.memory and data == MEMORY.encode():
            raise OSError(28, "No space left on device")
        real(path, data, **how)

    monkeypatch.setattr(live, "replace", full)
    with pytest.raises(staging.AdoptionFailed, match="No space left"):
        staging.undo(world.project, cfg=world.cfg)
    assert world.snapshot() == before
    monkeypatch.undo()
    staging.undo(world.project, cfg=world.cfg)
    assert world.memory.read_text() == MEMORY


def test_undo_waits_for_nobody(world: World) -> None:
    staging.adopt(world.stage(), cfg=world.cfg)
    with locks.target_lock(world.cfg.state_dir, world.memory), pytest.raises(NightBusy):
        staging.undo(world.project, cfg=world.cfg)


def journal_of_an_older_version(night: Path, path: Path, **more: str) -> None:
    """A version 2 journal as it was left before journals were signed: killed after the file was replaced."""
    import base64

    target = {
        "key": "memory",
        "live_path": str(path),
        "expected_realpath": str(path),
        "expected_basename": path.name,
        "proposed_sha256": disk.digest(NEW_MEMORY.encode()),
        "original_b64": base64.b64encode(MEMORY.encode()).decode(),
        "original_mode": 0o600,
        "original_file_id": [1, 2],
        "baseline_sha256": disk.digest(MEMORY.encode()),
        "backup_path": "",
        "created_dirs": [],
        "created_dir_ids": [],
        **more,
    }
    receipt = {"path": str(night / "adopted_legacy.json"), "original_b64": None, "original_mode": None}
    receipt |= {"original_file_id": None, "baseline_sha256": "", "proposed_sha256": "0" * 64}
    value = {"version": 2, "kind": "legacy", "targets": [target], "receipt": receipt}
    (night / ".adopt-transaction.json").write_text(json.dumps(value))


def test_an_older_journal_is_played_back_only_on_request_and_only_in_allowed_places(world: World) -> None:
    night = world.stage()
    world.memory.write_text(NEW_MEMORY)
    journal_of_an_older_version(night, world.memory)
    assert staging.recover(world.project, cfg=world.cfg)[0].status == "blocked"
    assert world.memory.read_text() == NEW_MEMORY
    with pytest.raises(InvalidStaging, match="trust_unsigned"):
        staging.recover(night, cfg=world.cfg)
    done = staging.recover(world.project, trust_unsigned=True, cfg=world.cfg)
    assert [one.status for one in done] == ["rolled_back"]
    assert world.memory.read_text() == MEMORY

    precious = world.write(world.project / "precious.txt", "mine")
    world.memory.write_text(NEW_MEMORY)
    journal_of_an_older_version(night, world.memory, temporary=str(precious), backup_path=f"{night}/../../../x")
    staging.recover(world.project, trust_unsigned=True, cfg=world.cfg)
    assert precious.read_text() == "mine"

    outside = world.write(world.project.parent / "outside" / "CLAUDE.md", NEW_MEMORY)
    journal_of_an_older_version(night, outside)
    assert staging.recover(world.project, trust_unsigned=True, cfg=world.cfg)[0].status == "blocked"
    assert outside.read_text() == NEW_MEMORY


@pytest.mark.parametrize("text", ["{}", "half", '{"version": 9}', '{"version": 2, "mac": "x"}'])
def test_a_damaged_or_foreign_journal_blocks_its_night_and_says_what_to_do(world: World, text: str) -> None:
    night = world.stage()
    (night / ".adopt-transaction.json").write_text(text)
    assert "backup" in staging.recover(world.project, cfg=world.cfg)[0].message
    with pytest.raises(InvalidStaging):
        staging.adopt(night, cfg=world.cfg)
    assert staging.view(night, cfg=world.cfg).problem
    assert world.memory.read_text() == MEMORY


def test_recovery_comes_before_a_corrupt_manifest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    night = world.stage()
    interrupt(world, night, monkeypatch)
    (night / "manifest.json").write_text("not json")
    with pytest.raises(InvalidStaging):
        staging.adopt(night, cfg=world.cfg)
    assert world.skill.read_bytes() == SKILL.encode()
    assert not (night / ".adopt-transaction.json").exists()


def test_what_a_living_process_does_is_not_recovered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    night = world.stage()
    interrupt(world, night, monkeypatch)
    with locks.FileLock(night / ".adopt-skills.lock", "adopting"):
        assert staging.recover(world.project, cfg=world.cfg)[0].status == "busy"
        with pytest.raises(NightBusy):
            staging.recover(night, cfg=world.cfg)
    assert staging.recover(night, cfg=world.cfg)[0].status == "rolled_back"
    assert staging.recover(night, cfg=world.cfg) == []


def interrupt(world: World, night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a journal behind as a kill after the first replaced file does."""
    real = live.replace

    def stop(path: Path, data: bytes, **how: Any) -> None:
        if path == world.memory:
            raise OSError(5, "Input/output error")
        real(path, data, **how)

    from skillopt_sleep.staging import transaction

    with monkeypatch.context() as patched:
        patched.setattr(live, "replace", stop)
        patched.setattr(transaction, "roll_back", lambda *_, **__: ["killed"])
        with pytest.raises(StagingRecoveryError):
            staging.adopt(night, cfg=world.cfg)
    assert world.skill.read_bytes() != SKILL.encode()


def test_receipts_of_older_versions_count_as_adopted_and_are_kept_as_they_are(world: World) -> None:
    night = world.stage_named("alpha", "beta")
    fields = ("live_skill_path", "sha256_before", "sha256_after", "backup_path")
    old = {"skill_name": "alpha", **dict.fromkeys(fields, "")}
    (night / "adopted_skills.json").write_text(json.dumps([old]))
    with pytest.raises(staging.AdoptionRefused, match="already"):
        staging.adopt_skills(night, ["alpha"], cfg=world.cfg)
    with pytest.raises(NoStaging):
        staging.undo(world.project, cfg=world.cfg)
    staging.adopt_skills(night, ["beta"], cfg=world.cfg)
    assert json.loads((night / "adopted_skills.json").read_text())[0] == old
    assert staging.undo(world.project, cfg=world.cfg).restored == (str(world.named("beta")),)
