"""What waits for a decision, what is chosen, what a person turned down, and what may be pruned."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from sleep.staging.staging_world import MEMORY, NEW_MEMORY, NEW_SKILL, SKILL, World

from skillopt_sleep import staging
from skillopt_sleep.staging import InvalidStaging, SelectionRefused, nights
from skillopt_sleep.staging.diff import unified
from skillopt_sleep.types import SkillProposal


def test_d13_a_rejected_night_does_not_hide_an_older_proposal(world: World) -> None:
    good = world.stage()
    rejected = world.stage(None, None, report={"accepted": False})
    assert staging.latest_staging(world.project) == str(rejected)
    assert [one.folder for one in staging.pending_nights(world.project, cfg=world.cfg)] == [good]
    assert staging.latest_pending(world.project, cfg=world.cfg) == str(good)
    assert staging.adopt(staging.latest_pending(world.project, cfg=world.cfg) or "", cfg=world.cfg)
    assert staging.latest_pending(world.project, cfg=world.cfg) == str(rejected)


def test_a_proposal_whose_live_file_changed_is_stale_and_not_pending(world: World) -> None:
    night = world.stage()
    world.memory.write_text("other\n")
    states = {one.row.name: one.status for one in staging.view(night, cfg=world.cfg).rows}
    assert states == {"skill": "pending", "memory": "stale"}
    assert "cannot be adopted" in staging.diff(world.project, cfg=world.cfg)


def test_a_night_that_cannot_be_read_is_told_and_hides_nothing(world: World) -> None:
    good, bad = world.stage(), world.stage(NEW_SKILL + "- x\n")
    (bad / "manifest.json").write_text("not json")
    assert "not valid JSON" in staging.view(bad, cfg=world.cfg).problem
    assert [one.folder for one in staging.pending_nights(world.project, cfg=world.cfg)] == [good]
    with pytest.raises(InvalidStaging):
        staging.staged_skills(bad, cfg=world.cfg)


def test_no_nights_at_all(empty: World) -> None:
    assert staging.pending_nights(empty.project, cfg=empty.cfg) == []
    assert staging.latest_pending(empty.project, cfg=empty.cfg) is None
    assert staging.diff(empty.project, cfg=empty.cfg) == ""
    assert staging.recover(empty.project, cfg=empty.cfg) == []
    assert staging.gc(empty.project, cfg=empty.cfg) == []


def test_an_evidence_only_night_is_not_adoptable_and_never_latest(world: World) -> None:
    night = world.stage()
    later = Path(staging.new_staging_dir(world.project))
    (later / "evidence.jsonl").write_text("{}\n")
    assert staging.latest_staging(world.project) == str(night)
    with pytest.raises(staging.NoStaging):
        staging.adopt(later, cfg=world.cfg)


def test_diff_shows_what_adopting_would_change_safely(world: World) -> None:
    night = world.stage(SKILL + "\n- evil \x1b[2J\u202e rule\n")
    text = staging.diff(night, cfg=world.cfg)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "+- evil \\x1b[2J\\u202e rule\n" in text
    assert "+- run the tests\n" in text
    assert "run the tests" not in staging.diff(night, ["skill"], cfg=world.cfg)
    staging.adopt(night, cfg=world.cfg)
    assert staging.diff(night, cfg=world.cfg) == ""


def test_a_diff_keeps_lines_apart_only_at_line_feeds_and_marks_missing_ends() -> None:
    assert unified("a\n", "a\n", label="x") == ""
    text = unified("a\r\nb", "a\r\nb\u2028c\n", label="x")
    assert " a\\r\n-b\n\\ No newline at end of file\n+b\\u2028c\n" in text
    assert unified("", "- a\n", label="x", absent=True).startswith("--- /dev/null\n+++ b/x\n")


def test_c223_a_bare_adopt_never_chooses_among_named_skills(world: World) -> None:
    night = world.stage_named("alpha", "beta", "gamma")
    with pytest.raises(SelectionRefused) as refused:
        staging.select(night, cfg=world.cfg)
    assert refused.value.code == "selection_required"
    assert refused.value.exit_code == 2
    assert [name for name, _ in refused.value.available] == ["alpha", "beta", "gamma"]
    staging.adopt_skills(night, ["beta"], cfg=world.cfg)
    chosen = staging.select(night, all_skills=True, cfg=world.cfg)
    assert chosen == staging.Selection("skills", ("alpha", "gamma"))
    assert staging.select(night, skills=[" alpha "], cfg=world.cfg).names == ("alpha",)
    assert staging.select(night, legacy=True, cfg=world.cfg).mode == "legacy"


def test_selection_rules(world: World) -> None:
    night = world.stage()
    assert staging.select(night, cfg=world.cfg).mode == "legacy"
    for flags in ({"skills": ["a"], "all_skills": True}, {"all_skills": True, "legacy": True}, {"skills": [" "]}):
        with pytest.raises(SelectionRefused) as refused:
            staging.select(night, cfg=world.cfg, **flags)  # type: ignore[arg-type]
        assert refused.value.code == "invalid_selection"
    for flags in ({"skills": ["a"]}, {"all_skills": True}):
        with pytest.raises(SelectionRefused) as refused:
            staging.select(night, cfg=world.cfg, **flags)  # type: ignore[arg-type]
        assert refused.value.code == "no_staged_skills"
    named = world.stage_named("alpha")
    for names in (["other"], ["alpha", "alpha"]):
        with pytest.raises(SelectionRefused):
            staging.select(named, skills=names, cfg=world.cfg)


def test_c227_a_rule_that_was_undone_comes_back_with_a_note_and_is_held(world: World) -> None:
    days = [time.strftime("%Y-%m-%d", time.gmtime())]
    staging.adopt(world.stage(), cfg=world.cfg)
    staging.undo(world.project, cfg=world.cfg)
    days.append(time.strftime("%Y-%m-%d", time.gmtime()))  # midnight may have passed
    assert "run the tests" in staging.rejected_rules(world.project)
    night = world.stage(None, MEMORY + "-  Run the TESTS\n- something new\n")
    value = json.loads((night / "manifest.json").read_text())
    assert list(value["rejected_before"]) == ["-  Run the TESTS"]
    assert value["held"] in [[f"rejected before on {day}: -  Run the TESTS"] for day in days]
    with pytest.raises(staging.AdoptionRefused, match="rejected before"):
        staging.adopt(night, auto=True, cfg=world.cfg)


def test_c227_a_proposal_can_be_turned_down(world: World) -> None:
    night = world.stage()
    assert staging.reject(night, ["memory"], cfg=world.cfg) == ["legacy/memory"]
    states = {one.row.name: one.status for one in staging.view(night, cfg=world.cfg).rows}
    assert states == {"skill": "pending", "memory": "rejected"}
    assert staging.reject(night, cfg=world.cfg) == ["legacy/skill", "legacy/memory"]
    assert staging.pending_nights(world.project, cfg=world.cfg) == []
    assert set(staging.rejected_rules(world.project)) == {"wrap the answer", "run the tests"}
    with pytest.raises(SelectionRefused):
        staging.reject(night, ["other"], cfg=world.cfg)


def test_what_was_turned_down_of_a_pair_is_not_adopted_with_the_other_half(world: World) -> None:
    night = world.stage()
    before = world.memory.read_bytes()
    staging.reject(night, ["memory"], cfg=world.cfg)
    assert staging.adopt(night, cfg=world.cfg) == [str(world.skill)]
    assert world.memory.read_bytes() == before
    with pytest.raises(staging.AdoptionRefused, match="adopted already"):
        staging.adopt(night, cfg=world.cfg)


def test_adopting_after_all_takes_the_rejection_back(world: World) -> None:
    night = world.stage(None)
    staging.reject(night, cfg=world.cfg)
    staging.adopt(night, cfg=world.cfg)
    assert world.memory.read_text() == NEW_MEMORY
    assert staging.rejected_rules(world.project) == {}


def age(night: Path, days: float) -> None:
    at = time.time() - days * 86_400
    for path in [*night.rglob("*"), night]:
        os.utime(path, (at, at), follow_symlinks=False)


def test_d14_old_nights_go_and_what_is_needed_stays(world: World) -> None:
    evidence = [Path(staging.new_staging_dir(world.project)) for _ in range(2)]
    for night in evidence:
        (night / "evidence.jsonl").write_text("{}\n")
    adopted = world.stage(None)
    staging.adopt(adopted, cfg=world.cfg)
    waiting = world.stage(memory=None)
    rejected = [world.stage(None, None, report={"accepted": False}) for _ in range(3)]
    for night in [evidence[0], adopted, waiting, *rejected]:
        age(night, 30)
    removed = staging.gc(world.project, keep=1, cfg=world.cfg)
    assert set(removed) == {str(evidence[0]), str(rejected[0]), str(rejected[1])}
    assert {*nights.folders(world.project)} == {evidence[1], adopted, waiting, rejected[2]}
    assert not list(adopted.parent.glob(".gc-*"))
    staging.undo(world.project, cfg=world.cfg)
    assert world.memory.read_text() == MEMORY


def test_gc_finishes_what_was_interrupted_and_follows_no_link(world: World, tmp_path: Path) -> None:
    night = world.stage()
    (night.parent / ".gc-half").mkdir()
    (night.parent / ".gc-half" / "x").write_text("x")
    precious = tmp_path / "precious"
    precious.mkdir()
    (night.parent / ".gc-link").symlink_to(precious)
    staging.gc(world.project, cfg=world.cfg)
    assert not (night.parent / ".gc-half").exists()
    assert precious.is_dir()


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_c226_a_tracked_file_with_uncommitted_changes_is_warned_about(world: World) -> None:
    assert staging.git_notices([world.memory]) == []
    git(world.project, "init", "--quiet")
    git(world.project, "config", "user.name", "a")
    git(world.project, "config", "user.email", "a@example.org")
    assert staging.uncommitted([world.memory]) == []
    git(world.project, "add", "CLAUDE.md")
    git(world.project, "commit", "--quiet", "-m", "first")
    assert staging.uncommitted([world.memory, world.skill]) == []
    world.memory.write_text(MEMORY + "mine\n")
    assert staging.uncommitted([world.memory]) == [str(world.memory)]
    assert "not committed" in staging.git_notices([world.memory])[0]


def test_c226_an_adoption_can_be_committed_alone(world: World) -> None:
    git(world.project, "init", "--quiet")
    git(world.project, "config", "user.name", "a")
    git(world.project, "config", "user.email", "a@example.org")
    git(world.project, "add", ".")
    git(world.project, "commit", "--quiet", "-m", "first")
    (world.project / "other.txt").write_text("staged by me\n")
    git(world.project, "add", "other.txt")
    paths = staging.adopt(world.stage(), cfg=world.cfg)
    (commit,) = staging.commit_adopted(paths, "Adopt a night")
    assert git(world.project, "show", "--name-only", "--format=%s", commit).split("\n\n") == [
        "Adopt a night",
        "CLAUDE.md\n",
    ]
    assert git(world.project, "diff", "--cached", "--name-only") == "other.txt\n"
    assert staging.commit_adopted(paths, "again") == []


def test_views_of_named_rows_survive_hostile_names_in_text_only(world: World) -> None:
    name = "skill; rm -rf $HOME #"
    world.write(world.named(name), "# x\n")
    night = world.stage(None, None, skill_proposals=[SkillProposal(name, "# x\n- y\n", str(world.named(name)))])
    assert staging.pending_staged_skills(night, cfg=world.cfg)[0]["skill_name"] == name
    assert staging.adopt_skills(night, [name], cfg=world.cfg)
