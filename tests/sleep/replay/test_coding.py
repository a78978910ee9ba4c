"""A task in a checkout: who is asked, what counts as its answer, and what is no score."""

from __future__ import annotations

from typing import Any

import pytest

from skillopt_sleep.backends.base import Backend
from skillopt_sleep.backends.reflecting import reflect_prompt
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.evidence import EvidenceLog, read_events
from skillopt_sleep.judges import Undecidable
from skillopt_sleep.learn.measure import GateSettings, Measure, task_deltas
from skillopt_sleep.replay import contrastive_reflect, multi_rollout, replay_batch, replay_one
from skillopt_sleep.types import ReplayResult, TaskRecord
from skillopt_sleep.worktrees.work import Outcome, Work

TESTS = {"op": "command", "arg": "make test"}
SAID = {"op": "contains", "arg": "tested"}


class Worker(Backend):
    """Does every task in a checkout: the skill decides whether the command succeeds."""

    name = "worker"
    works_in_files = True

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__("m")
        self.error = error
        self.workshop: Any = object()
        self.asked: list[tuple[str, int, bool]] = []

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        self.asked.append(("text", sample_id, fresh))
        return "tested in words"

    def attempt_in_checkout(
        self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False
    ) -> tuple[str, Work]:
        self.asked.append(("files", sample_id, fresh))
        if self.error is not None:
            raise self.error
        good = "careful" in skill or sample_id == 1
        outcome = Outcome("command", "make test", good, "" if good else "exit code 2: 1 failed")
        return "I tested it.", Work("+1\n", ("app.py",), (outcome,))

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        return (1.0, 1.0, "") if "+1" in response else (0.0, 0.0, "nothing was changed")

    def call(self, prompt: str, *, kind: str = "call", max_tokens: int = 1024, fresh: bool = False) -> str:
        self.prompt = prompt
        return "[]"


def coding(kind: str = "rubric", **more: Any) -> TaskRecord:
    return TaskRecord(
        "t",
        "/p",
        "Bump it",
        reference_kind=kind,
        reference="It is bumped.",
        judge={"checks": [SAID, TESTS]},
        workspace={"commit": "1" * 40, "folder": ""},
        **more,
    )


def test_a_task_with_a_workspace_is_done_in_files_and_every_other_one_in_text() -> None:
    worker = Worker()
    replay_one(worker, coding(), "careful", "", 2, fresh=True)
    replay_one(worker, TaskRecord("u", "/p", "Say it", reference_kind="none"), "", "")
    assert worker.asked == [("files", 2, True), ("text", 0, False)]
    worker.workshop = None
    replay_one(worker, coding(), "careful", "")
    assert worker.asked[-1] == ("text", 0, False)


@pytest.mark.parametrize("kind", ["rule", "rubric", "none", "exact"])
def test_the_outcome_decides_whatever_judges_the_answer(kind: str) -> None:
    good, bad = (replay_one(Worker(), coding(kind), skill, "") for skill in ("careful", ""))
    assert (good.hard, bad.hard) == (1.0, 0.0)
    assert 0 <= bad.soft < good.soft
    assert bad.fail_reason.startswith("failed: command=make test [exit code 2: 1 failed]")
    assert good.fail_reason == ""
    assert bad.work["files"] == ["app.py"]
    assert bad.work["checks"][0]["passed"] is False
    assert bad.response == "I tested it.\n\nThe changes:\n\n```diff\n+1\n```\n"
    assert ReplayResult.from_dict(bad.to_dict()) == bad


@pytest.mark.parametrize(
    "error",
    [
        CallFailed("The patch is too large.", kind="refused"),
        CallFailed("The agent did not end in time.", kind="refused"),
        Undecidable("`make test` could not be started."),
    ],
)
def test_what_could_not_be_decided_is_no_score(error: Exception) -> None:
    result = replay_one(Worker(error), coding(), "", "")
    assert not result.scored
    assert str(error) in result.error
    assert result.work == {}


def test_an_outcome_that_is_missing_is_no_score() -> None:
    task = coding("rule")
    task.judge["checks"].append({"op": "file_changed", "arg": "**"})
    assert "file_changed" in replay_one(Worker(), task, "careful", "").error


def test_missing_credentials_end_the_night_as_ever() -> None:
    with pytest.raises(CallFailed, match="sign in"):
        replay_one(Worker(CallFailed("sign in", kind="auth")), coding(), "", "")


def test_reflection_is_told_which_condition_failed_and_how_often() -> None:
    pairs = replay_batch(Worker(), [coding("rule"), coding("rubric")], "", "")
    prompt = reflect_prompt(pairs, "", target="skill", edit_budget=2)
    line = next(line for line in prompt.splitlines() if "make test" in line and "2 of 2" in line)
    assert line.startswith("- ")
    assert "I tested it.\n   The changes begin:\n     +1\n" in prompt


def test_good_and_bad_attempts_in_checkouts_are_contrasted() -> None:
    worker = Worker()
    sets = multi_rollout(worker, [coding("rule")], "", "", k=2)
    assert contrastive_reflect(worker, sets, "", "") == []
    assert "Why it failed: failed: command=make test" in worker.prompt


def test_evidence_and_report_rows_tell_files_and_conditions(tmp_path: Any) -> None:
    worker = Worker()
    worker.evidence = EvidenceLog(tmp_path / "evidence.jsonl")
    before = Measure(tuple(replay_batch(worker, [coding()], "", "")))
    after = Measure(tuple(replay_batch(worker, [coding()], "careful", "")))
    rows = [row for row in read_events(tmp_path / "evidence.jsonl") if row["event"] == "result"]
    assert rows[0]["files"] == ["app.py"]
    assert rows[0]["conditions"][0]["note"] == "exit code 2: 1 failed"
    [delta] = task_deltas(before, after, GateSettings())
    assert delta["files"] == {"baseline": ["app.py"], "candidate": ["app.py"]}
    assert delta["status"] == "improved"
