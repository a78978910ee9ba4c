"""Many nights of one project: who decides takes turns, earlier tasks help, and what cannot be decided is not tried."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sleep.learn.learn_world import FakeBackend, add
from sleep.night_world import Machine, answer_to, persona, write_tasks
from sleep.worlds import REQUESTS, START, THINGS, claude_lines, sessions, write

from skillopt_sleep import load_config, run_sleep_cycle
from skillopt_sleep.mining.heuristic import short_hash
from skillopt_sleep.mining.splits import hash_number
from skillopt_sleep.phases.journal import Journal
from skillopt_sleep.types import EditRecord, SleepReport, TaskRecord

Make = Callable[..., Machine]
NIGHTS = 2
FIRST, LATER = 16, 6


class Scripted(FakeBackend):
    """Mines as the person's model does, proposes a rule every night, and does no better for it."""

    def __init__(self) -> None:
        super().__init__(lambda task, skill, memory: 0.5, self._rules)
        self.stop_in = ""

    def _rules(self, target: str, *_: Any) -> list[EditRecord]:
        return [add("Say what was done.", target)]

    def attempt(self, task: TaskRecord, *words: Any, **options: Any) -> str:
        if self.stop_in and self.evidence_phase.startswith(self.stop_in):
            raise KeyboardInterrupt
        return super().attempt(task, *words, **options)

    def call(self, prompt: str, *, kind: str = "call", max_tokens: int = 1024, fresh: bool = False) -> str:
        self.calls.append(prompt)
        return answer_to(prompt)

    def in_phase(self, start: str) -> set[str]:
        return {name for name, phase, _ in self.attempts if phase.startswith(start)}


def seed_for(project: str, first: int = 0) -> int:
    """A seed with which five of FIRST tasks decide, and one of every three later ones; `first` tasks come before them.

    The ids of tasks follow from the project's path, so no seed does so wherever the tests run.
    """
    ids = [
        "llm_" + short_hash(project, REQUESTS[n % len(REQUESTS)].format(thing=THINGS[n // len(REQUESTS)]))
        for n in range(first, first + FIRST + 3 * LATER)
    ]

    def fits(seed: int) -> bool:
        val = [hash_number(seed, name) % 100 < 40 for name in ids]
        return sum(val[:FIRST]) == 5 and all(sum(val[at : at + 3]) == 1 for at in range(FIRST, len(ids), 3))

    return next(seed for seed in itertools.count() if fits(seed))


class Project:
    """A project in which a few sessions a day bring a few tasks a night."""

    def __init__(self, machine: Machine, **settings: Any) -> None:
        self.machine = machine
        self.count = 0
        self.backend = Scripted()
        self.settings = {
            **{"backend": "azure_openai", "model": "m", "val_fraction": 0.4, "holdout_nights": NIGHTS},
            **{"evolve_memory": False, "seed": seed_for(str(machine.project)), **settings},
        }
        machine.configure(**self.settings)

    def night(self, new: int, **options: Any) -> SleepReport:
        if new:
            sessions(self.machine.home, new, project=str(self.machine.project), first=self.count)
        self.count += new
        self.backend = options.pop("backend", None) or Scripted()
        config = load_config(invoked_project=str(self.machine.project))
        return run_sleep_cycle(config, backend=self.backend, **options).report

    @property
    def kept(self) -> dict[str, Any]:
        kept: dict[str, Any] = self.machine.state()["projects"][str(self.machine.project)]
        return kept

    @property
    def archived(self) -> dict[str, str]:
        rows = [(row["id"], row["split"]) for row in self.kept["archive"]]
        assert len(dict(rows)) == len(rows), "no task is archived twice"
        return dict(rows)


@pytest.fixture
def project(make_machine: Make) -> Project:
    return Project(make_machine(sessions_=0))


def has(report: SleepReport, *parts: str) -> bool:
    return any(all(part in note for part in parts) for note in report.notes)


def test_over_weeks_no_task_decides_for_long_and_small_nights_decide_too(project: Project) -> None:
    assert project.night(FIRST).gate_action == "reject"
    before = project.kept["splits"]
    assert {name for name, nights in project.kept["decided"].items() if nights == [1]} == {
        name for name, split in before.items() if split == "val"
    }
    changed: set[str] = set()
    for number in range(2, LATER + 2):
        report = project.night(3)
        assert (report.status, report.gate_action, report.n_tasks) == ("completed", "reject", 3)
        assert report.n_replayed > 3
        assert has(report, "of earlier nights", "to decide")
        decided, taught = project.backend.in_phase("baseline_val"), project.backend.in_phase("train")
        assert len(decided) >= 5
        assert decided.isdisjoint(taught)
        kept = project.kept
        assert {name for name, nights in kept["decided"].items() if number in nights} == decided
        assert project.archived == kept["splits"]
        assert {kept["splits"][name] for name in decided} == {"val"}
        assert {kept["splits"][name] for name in taught} == {"train"}
        moved = {name for name, split in kept["splits"].items() if before.get(name, split) != split}
        assert moved <= {name for name, night in kept["moved"].items() if night == number}
        assert has(report, "changed places with", f"after {NIGHTS} nights") == bool(moved)
        changed |= moved
        before = kept["splits"]
        for name in decided:
            since = kept["moved"].get(name, 0)
            assert len([night for night in kept["decided"][name] if night >= since]) <= NIGHTS
    assert changed
    assert len(project.archived) == FIRST + LATER * 3


def test_without_turns_the_same_tasks_decide_for_ever_and_none_moves(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), holdout_nights=None)
    project.night(FIRST)
    before = project.kept["splits"]
    for _ in range(4):
        project.night(3)
    assert project.kept["moved"] == {}
    assert {name: project.kept["splits"][name] for name in before} == before
    assert max(map(len, project.kept["decided"].values())) > NIGHTS


def test_a_kill_between_saving_and_committing_counts_a_night_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Journal.write

    def killed(journal: Journal) -> None:
        if journal.committed:
            raise KeyboardInterrupt
        write(journal)

    for number in range(1, 5):
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "write", killed)
            with pytest.raises(KeyboardInterrupt):
                project.night(FIRST if number == 1 else 3)
        kept = project.kept
        assert project.night(0).night == number
        assert project.kept == kept
        assert {night for nights in kept["decided"].values() for night in nights} == set(range(1, number + 1))
    assert kept["moved"]


def test_a_night_that_goes_on_has_the_same_splits_and_helpers(project: Project) -> None:
    project.night(FIRST)
    project.night(3)
    stopped = Scripted()
    stopped.stop_in = "gate_trial"
    with pytest.raises(KeyboardInterrupt):
        project.night(3, backend=stopped)
    (pins,) = project.machine.state_dir.glob("nights/*/tasks.json")
    pinned = {row["id"]: row for row in json.loads(pins.read_text())["tasks"]}
    helpers = {name for name, row in pinned.items() if "holdout" in row["tags"]}
    assert helpers
    report = project.night(0)
    assert (report.night, report.n_tasks) == (3, 3)
    assert has(report, "of earlier nights", "to decide")
    val = {name for name, row in pinned.items() if row["split"] == "val"}
    assert project.backend.in_phase("baseline_val") == val == stopped.in_phase("baseline_val")
    assert {name: project.kept["splits"][name] for name in pinned} == {
        name: row["split"] for name, row in pinned.items()
    }
    tags = [tag for row in project.kept["archive"] for tag in row["tags"]]
    assert "holdout" not in tags


def test_a_dry_run_moves_nothing_and_counts_nothing(project: Project) -> None:
    project.night(FIRST)
    project.night(3)
    before = project.machine.state()
    sessions(project.machine.home, 3, project=str(project.machine.project), first=FIRST + 3)
    report = project.night(0, dry_run=True)
    assert (report.gate_action, report.n_tasks) == ("reject", 3)
    assert has(report, "changed places with")
    assert project.machine.state() == before


def test_too_little_to_decide_by_is_said_and_nothing_is_tried(
    make_machine: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(make_machine(sessions_=0), holdout_recall=False)
    report = project.night(4)
    assert (report.status, report.gate_action) == ("inconclusive", "inconclusive")
    assert report.no_edits_reason == "too_few_to_decide"
    assert "gate_min_val" in report.gate_detail["reason"]
    assert project.backend.attempts == project.backend.reflections == []
    assert len(project.backend.calls) == 4, "the tasks were found, and nothing more was asked"
    for said in (capsys.readouterr().err, " ".join(report.notes)):
        assert "cannot decide (gate_min_val is 5), so nothing is tried, and nothing more is paid for" in said
        assert "lookback_hours" in said
    assert has(report, "sessions of this night wait")
    (folder,) = project.machine.nights()
    shown = (folder / "report.md").read_text()
    assert "Held-out score: not measured" in shown
    assert "nothing was tried" in shown
    assert "not measured" in project.machine.run("status")[1]
    assert project.kept["decided"] == {}
    assert project.night(FIRST).gate_action == "reject"


def test_one_task_alone_is_not_tried_either(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), gate_min_val=1)
    report = project.night(1)
    assert report.gate_action == "inconclusive"
    assert project.backend.attempts == []
    assert "Not validated" not in (project.machine.nights()[0] / "report.md").read_text()


def test_a_night_of_validation_tasks_alone_says_that_there_is_none_to_learn_from(project: Project) -> None:
    project.night(FIRST)
    reports = [project.night(1) for _ in range(3)]
    (waits,) = [report for report in reports if report.status == "inconclusive"]
    assert has(waits, "There is no training task", "so nothing is tried")
    assert not has(waits, "gate_min_val")
    assert "no training task" in waits.gate_detail["reason"]


def test_without_help_a_small_night_waits(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), holdout_recall=False)
    project.night(FIRST)
    assert project.night(3).status == "inconclusive"
    assert project.backend.attempts == []


def test_without_a_gate_everything_is_tried(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), gate_mode="off")
    assert project.night(3).gate_action.startswith("greedy")
    assert project.backend.attempts
    assert project.kept["decided"] == {}


def test_reserved_tasks_are_not_paid_for_where_nothing_is_tried(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), val_fraction=0.1, test_fraction=0.85)
    report = project.night(6)
    assert report.gate_action == "inconclusive"
    assert "test" in project.kept["splits"].values()
    assert project.backend.attempts == []


def use_skill(machine: Machine, name: str, *, first: int = 0) -> None:
    """Let every session but the first few have used a skill, which is installed."""
    skill = machine.home / ".claude" / "skills" / name / "SKILL.md"
    skill.parent.mkdir(parents=True, exist_ok=True)
    skill.write_text(f"# {name}\n")
    paths = sorted((machine.home / ".claude" / "projects").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    for path in paths[first:]:
        when, text = path.stat(), path.read_text()
        tool = json.dumps({"type": "tool_use", "id": "u", "name": "Skill", "input": {"skill": name}})
        path.write_text(text.replace('[{"type": "tool_use"', f'[{tool}, {{"type": "tool_use"', 1))
        os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


@pytest.mark.parametrize(("own", "named", "waits"), [(0, 3, True), (3, 3, True), (3, FIRST, False), (0, FIRST, False)])
def test_sessions_wait_until_something_is_decided_for_some_skill(
    make_machine: Make, own: int, named: int, waits: bool
) -> None:
    machine = make_machine(sessions_=0)
    project = Project(machine, holdout_recall=False, multi_skill_fanout=True)
    sessions(machine.home, own + named, project=str(machine.project))
    use_skill(machine, "papers", first=own)
    project.settings["seed"] = seed_for(str(machine.project), own)
    machine.configure(**project.settings)
    report = project.night(0)
    assert [group.n_tasks for group in report.skill_groups] == [named]
    assert (report.status == "inconclusive", has(report, "sessions of this night wait")) == (waits, waits)
    assert (project.night(0).n_sessions == own + named) is waits
    shown = (machine.nights()[0] / "report.md").read_text()
    (row,) = [line for line in shown.splitlines() if line.startswith("| papers |")]
    assert ("not measured" if waits else "0.500 -> 0.500") in row
    assert "0.000" not in shown


def test_given_tasks_are_tried_as_asked_with_a_warning(machine: Machine) -> None:
    machine.configure(backend="mock")
    few = write_tasks(machine.base / "t.json", persona(6))
    code, out, err = machine.run("run", "--tasks-file", str(few), "--json")
    assert code == 0
    assert "3 validation tasks cannot decide (gate_min_val is 5), so nothing can be accepted" in err
    done = json.loads(out)
    assert done["gate_action"] == "inconclusive"
    assert done["gate_trials"], "the person asked for exactly this"


def splits_by_night(machine: Machine, path: Path, nights: int) -> list[dict[str, str]]:
    found = []
    for _ in range(nights):
        done = machine.json("run", "--tasks-file", str(path))
        assert done["gate_action"] == "accept_new_best"
        events = [json.loads(row) for row in (Path(done["staging_dir"]) / "evidence.jsonl").read_text().splitlines()]
        found.append({row["task_id"]: row["split"] for row in events if row["event"] == "task_ready"})
    return found


def test_the_splits_that_a_person_wrote_hold_for_ever(machine: Machine) -> None:
    machine.configure(backend="mock", holdout_nights=1)
    first, *later = splits_by_night(machine, write_tasks(machine.base / "t.json", persona()), 3)
    assert later == [first, first]
    kept = machine.state()["projects"][str(machine.project)]
    assert kept["written"] == sorted(first)
    assert kept["moved"] == {}


def test_the_splits_of_a_file_without_any_take_turns(machine: Machine) -> None:
    machine.configure(backend="mock", holdout_nights=2, gate_min_val=2)
    tasks = persona()
    for task in tasks:
        task.split = "train"
    path = write_tasks(machine.base / "t.json", tasks)
    one, two, three = splits_by_night(machine, path, 3)
    assert one == two
    gone = {name for name in one if one[name] == "val" and three[name] == "train"}
    come = {name for name in one if one[name] == "train" and three[name] == "val"}
    assert len(gone) == len(come) > 0
    assert machine.state()["projects"][str(machine.project)]["splits"] == three


def test_a_named_skill_is_helped_by_its_own_earlier_tasks(machine: Machine) -> None:
    machine.configure(backend="mock", multi_skill_fanout=True)
    skill = machine.home / ".claude" / "skills" / "papers" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("# Papers\n")
    config = load_config(invoked_project=str(machine.project))
    first, second = persona(), persona(15)[12:]
    for task in (*first, *second):
        task.skill_hint = "papers"
    for task in second:
        task.split = "train"
    run_sleep_cycle(config, seed_tasks=first)
    report = run_sleep_cycle(config, seed_tasks=second, assigned=True).report
    assert (report.n_tasks, report.n_replayed) == (3, 8)
    assert has(report, "5 validation tasks of earlier nights help to decide.")
    assert [(group.skill_name, group.accepted) for group in report.skill_groups] == [("papers", True)]
    decided = machine.state()["projects"][str(machine.project)]["decided"]
    assert sorted(map(len, decided.values())) == [1, 2, 2, 2, 2, 2]


def test_what_decides_tonight_is_not_recalled_under_another_wording(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), recall_k=9, holdout_nights=1, gate_min_val=1)

    def task(name: str, split: str, intent: str) -> TaskRecord:
        return TaskRecord(
            name, str(project.machine.project), intent, reference_kind="rubric", reference="x", split=split
        )

    judge = task("v", "val", "summarise the quarterly report")
    kept = task("k", "train", "translate the yearly report for Jane")
    project.night(0, seed_tasks=[judge, task("t", "train", "check the report for spelling"), kept], assigned=True)
    reworded = task("t2", "train", "please check the report for its spelling")
    report = project.night(0, seed_tasks=[judge, reworded], assigned=True)
    assert has(report, "1 validation task changed places with a training task, after 1 night of deciding.")
    assert project.backend.in_phase("baseline_val") == {"t2"}
    assert project.backend.in_phase("train") == {"v", "recall:k"}
    assert project.archived == {"k": "train", "v": "train", "t": "val", "t2": "val"}


def test_coding_tasks_without_a_rubric_do_not_help_a_night_of_text_answers(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), gate_min_val=1, holdout_nights=None)
    project.night(FIRST)
    path = project.machine.state_dir / "state.json"
    state = json.loads(path.read_text())
    changed = {"op": "file_changed", "arg": "**"}
    for row in state["projects"][str(project.machine.project)]["archive"]:
        row.update(reference_kind="none", reference="", judge={"checks": [changed]}, workspace={"commit": "a" * 40})
    path.write_text(json.dumps(state))
    task = TaskRecord("t", "", "draw the class diagram of the shop", reference_kind="rubric", reference="x")
    report = project.night(0, seed_tasks=[task], assigned=True)
    assert not has(report, "of earlier nights")
    assert report.n_replayed == 1


def test_a_plan_says_it_before_anything_is_paid_for(machine: Machine) -> None:
    wanted = {"backend": "azure_openai", "model": "m", "azure_endpoint": "http://127.0.0.1:9", "gate_min_val": 9}
    machine.configure(**wanted, llm_mine=False)
    plan = machine.json("run", "--plan")
    assert any("so nothing is tried" in note for note in plan["notes"])
    assert (plan["providers"], plan["calls_at_most"]) == ([], 0)
    machine.configure(**wanted)
    plan = machine.json("run", "--plan")
    assert any(note.startswith("As it looks now,") for note in plan["notes"])
    assert plan["calls_at_most_by_kind"]["attempt"] > 0


def test_a_plan_counts_who_helps(project: Project) -> None:
    project.night(FIRST)
    project.machine.configure(**project.settings, azure_endpoint="http://127.0.0.1:9", llm_mine=False)
    sessions(project.machine.home, 3, project=str(project.machine.project), first=FIRST)
    plan = project.machine.json("run", "--plan")
    assert any("of earlier nights" in note for note in plan["notes"])
    attempts = [call for row in plan["providers"] for call in row["calls"] if call["kind"] == "attempt"]
    assert len(attempts) > 5
    assert plan["calls_at_most"] >= len(attempts)


def test_harvest_shows_the_sides_that_the_tasks_have_tonight(make_machine: Make) -> None:
    project = Project(make_machine(sessions_=0), llm_mine=False, holdout_nights=1, gate_min_val=1, val_fraction=0.5)
    project.night(8)
    where = str(project.machine.project)
    for number, request in enumerate(REQUESTS[:8]):  # the same comes again
        asked, at = [request.format(thing=THINGS[0]), "still wrong"], START + 3600.0 * (20 + number)
        path = project.machine.home / ".claude" / "projects" / where.replace("/", "-") / f"again{number}.jsonl"
        write(path, claude_lines(asked, session=f"again{number}", project=where, at=at), mtime=at + 240)
    before, live = project.kept["splits"], project.machine.state()
    found = project.machine.json("harvest")
    shown = {row["id"]: row["split"] for row in found["tasks"]}
    code, text, _ = project.machine.run("harvest")
    assert code == 0
    assert "changed places with" in text
    assert project.machine.state() == live, "nothing is moved by looking"
    assert project.night(0).n_tasks == len(shown) > 0
    assert {name: project.kept["splits"][name] for name in shown} == shown
    assert any(before[name] != split for name, split in shown.items())


def test_harvest_tells_of_helpers_and_does_not_list_them(project: Project) -> None:
    project.night(FIRST)
    sessions(project.machine.home, 3, project=str(project.machine.project), first=FIRST)
    code, text, _ = project.machine.run("harvest")
    assert code == 0
    assert "3 sessions, 3 tasks" in text
    assert "of earlier nights" in text
    assert len(project.machine.json("harvest")["tasks"]) == 3


def test_what_the_heuristic_finds_is_found_once(make_machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillopt_sleep.mining import run

    project = Project(make_machine(sessions_=0), llm_mine=False, max_tasks_per_night=4)
    seen: list[int] = []
    real = run.heuristic_mine

    def counted(digests: Any, **options: Any) -> list[TaskRecord]:
        seen.append(len(digests))
        return real(digests, **options)

    monkeypatch.setattr(run, "heuristic_mine", counted)
    assert has(project.night(9), "5 sessions wait for the next night")
    assert seen == [9]
