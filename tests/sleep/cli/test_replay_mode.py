"""The flag `--replay-mode`, what remembers it, and what the report says of work in checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_sleep.cli_arguments import build_parser, overrides_of
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.phases.coding import commands_of, open_workshop_for
from skillopt_sleep.phases.journal import differing, marks_of
from skillopt_sleep.report import render_report
from skillopt_sleep.schedule.job import make_job
from skillopt_sleep.types import SleepReport


@pytest.mark.parametrize("action", ["run", "dry-run", "harvest", "schedule"])
def test_the_flag_chooses_how_coding_tasks_are_done(action: str) -> None:
    parser = build_parser()
    assert overrides_of(parser.parse_args([action]))["replay_mode"] is None
    given = overrides_of(parser.parse_args([action, "--replay-mode", "worktree"]))
    assert load_config(**given).get("replay_mode") == "worktree"
    with pytest.raises(UsageProblem, match="worktree"):
        parser.parse_args([action, "--replay-mode", "worktrees"])


def test_actions_without_a_night_have_no_such_flag() -> None:
    with pytest.raises(UsageProblem):
        build_parser().parse_args(["adopt", "--replay-mode", "mock"])
    assert overrides_of(build_parser().parse_args(["adopt"]))["replay_mode"] is None


def test_a_scheduled_night_keeps_mode_and_commands(tmp_path: Path) -> None:
    chosen = {"replay_mode": "worktree", "replay_checks": ["make test"], "replay_links": ["node_modules"]}
    config = load_config(invoked_project=str(tmp_path), backend="claude", **chosen)
    kept = make_job(config, time=(3, 17)).config
    assert {key: kept[key] for key in chosen} == chosen


def test_what_decides_about_work_in_checkouts_begins_another_night() -> None:
    old = marks_of(SleepConfig({}), "m", None)
    for name, value in (("replay_mode", "worktree"), ("replay_checks", ["x"]), ("replay_links", ["node_modules"])):
        assert differing(old, marks_of(SleepConfig({name: value}), "m", None)) == [name]
    assert differing(old, marks_of(SleepConfig({"replay_minutes": 3}), "m", None)) == []


def test_commands_are_texts_that_say_something() -> None:
    assert commands_of(SleepConfig({"replay_checks": ["a", "b", "a"]})) == ["a", "b"]
    for wrong in ("", " ", "a\0b"):
        with pytest.raises(UsageProblem, match="replay_checks"):
            commands_of(SleepConfig({"replay_checks": [wrong]}))


def test_in_mode_mock_nothing_is_opened() -> None:
    assert open_workshop_for(SleepConfig({}), object()) is None


def test_the_report_shows_changed_files_as_inert_text() -> None:
    delta = {"task_id": "t1", "baseline_score": 0.0, "candidate_score": 1.0, "status": "improved"}
    many = [f"src/{number}.py" for number in range(9)]
    odd = ["a|b.py", "`rm -rf`.py", "<img src=x>\n# heading"]
    deltas = [
        {**delta, "request": "Mend a|b", "files": {"baseline": many, "candidate": odd}},
        {**delta, "task_id": "t2", "files": {"candidate": []}},
        {**delta, "task_id": "t3"},
    ]
    report = SleepReport(1, "/p", n_tasks=3, n_replayed=3, gate_trials=[{"task_deltas": deltas, "target": "skill"}])
    report.usage = {"tasks_in_checkouts": 2, "tasks_in_text": 1}
    text = render_report(report, SleepConfig({"replay_mode": "worktree"}), backend="claude")
    assert "- Backend: claude (replay: worktree)\n" in text
    assert "- Tasks (replayed): 3 (3), 2 in a checkout, 1 answered in text\n" in text
    row = next(line for line in text.splitlines() if line.startswith("- t1 \N{EM DASH} Mend "))
    assert row.startswith("- t1 \N{EM DASH} Mend a&#124;b: src/0.py, src/1.py, src/2.py, src/3.py and 5 more -> a")
    assert "|" not in row
    assert "<img" not in text
    assert "`rm" not in text
    assert "\n# heading" not in text
    assert "- t2: none\n" in text
    assert "| Task | Tags | Baseline | Candidate | Change |\n" in text
    assert "| t1 \N{EM DASH} Mend a&#124;b |  | 0.000 | 1.000 | improved |\n" in text
    assert "- t3" not in text
    plain = render_report(SleepReport(1, "/p"), SleepConfig({}), backend="claude")
    assert "checkout" not in plain
