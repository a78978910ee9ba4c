"""One task and many: what is scored, what is an error, what ends a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.backends import CliBackend, MockBackend, Outgoing, Reply
from skillopt_sleep.backends.base import Backend
from skillopt_sleep.budget import Meter
from skillopt_sleep.errors import BudgetSpent, CallFailed, PendingCalls, UsageProblem
from skillopt_sleep.evidence import EvidenceLog, attach, read_events, set_phase
from skillopt_sleep.replay import aggregate_scores, replay_batch, replay_one, summarize, worker_count
from skillopt_sleep.replay.workers import run_all
from skillopt_sleep.types import TaskRecord


def task(name: str, intent: str = "", **fields: Any) -> TaskRecord:
    return TaskRecord(name, "/p", intent or f"do the thing called {name}", **fields)


def rule(name: str, *checks: dict[str, Any]) -> TaskRecord:
    return task(name, reference_kind="rule", judge={"kind": "rule", "checks": list(checks)})


class Scripted(Backend):
    """Answers and grades by functions; counts tokens for the whole backend only."""

    name = "scripted"

    def __init__(self, answer: Callable[[TaskRecord], str], grade: Callable[[str], Any] = lambda _: (1, 1, "")) -> None:
        super().__init__()
        self._answer = answer
        self._grade = grade
        self.attempts: list[tuple[str, int]] = []
        self.used = 0

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0) -> str:  # type: ignore[override]
        self.attempts.append((task.id, sample_id))
        self.used += 7
        return self._answer(task)

    def judge(self, task: TaskRecord, response: str) -> Any:  # type: ignore[override]
        return self._grade(response)

    def tokens_used(self) -> int:
        return self.used


class Words(CliBackend):
    """A real backend whose provider tells how many tokens each task costs: as many as its number."""

    name = "words"

    def __init__(self, barrier: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.barrier = threading.Barrier(barrier) if barrier else None

    def send(self, outgoing: Outgoing) -> Reply:
        if self.barrier is not None:
            self.barrier.wait(timeout=60)
        number = int(outgoing.prompt.split("number <")[1].split(">")[0])
        return Reply(f"answer {number}", number, 0)


def fail(kind: str) -> Callable[[TaskRecord], str]:
    def answer(item: TaskRecord) -> str:
        if item.id == "b":
            raise CallFailed("the provider is away", kind=kind)  # type: ignore[arg-type]
        return "fine"

    return answer


def test_a_result_holds_answer_scores_tokens_and_the_first_tag() -> None:
    result = replay_one(
        Scripted(lambda _: "fine", lambda _: (0, 0.25, "too short")), task("a", tags=["x", "y"]), "s", "m"
    )
    assert (result.id, result.response, result.hard, result.soft) == ("a", "fine", 0.0, 0.25)
    assert result.fail_reason == result.judge_rationale == "too short"
    assert (result.task_type, result.tokens) == ("x", 7)
    assert result.latency_ms > 0
    assert replay_one(Scripted(lambda _: "fine"), task("a"), "", "").task_type == "task"


def test_a_pass_has_no_reason_to_fail_and_a_failure_always_one() -> None:
    assert replay_one(Scripted(lambda _: "x", lambda _: (1, 1, "good")), task("a"), "", "").fail_reason == ""
    assert replay_one(Scripted(lambda _: "x", lambda _: (0, 0, "")), task("a"), "", "").fail_reason != ""


def test_tokens_are_estimated_where_none_are_counted() -> None:
    backend = MockBackend()
    result = replay_one(backend, task("a", "i" * 40), "s" * 40, "m" * 40)
    assert result.tokens == (120 + len(result.response)) // 4


def test_a_failed_call_is_an_error_result_and_enters_no_mean() -> None:
    pairs = replay_batch(Scripted(fail("transient"), lambda _: (1, 1, "")), [task("a"), task("b"), task("c")], "", "")
    assert [item.id for item, _ in pairs] == ["a", "b", "c"]
    assert [result.scored for _, result in pairs] == [True, False, True]
    assert "the provider is away" in pairs[1][1].error
    assert aggregate_scores(pairs) == (1.0, 1.0)
    assert (summarize(pairs).n, summarize(pairs).n_errors) == (2, 1)


@pytest.mark.parametrize("kind", ["rate", "refused", "empty", "unparsed"])
def test_every_kind_that_may_pass_is_an_error_result(kind: str) -> None:
    assert replay_one(Scripted(fail(kind)), task("b"), "", "").error.startswith(f"{kind}: ")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["auth", "setup"])
def test_what_no_later_call_can_mend_ends_the_batch(kind: str, workers: int) -> None:
    with pytest.raises(CallFailed, match="away"):
        replay_batch(Scripted(fail(kind)), [task("a"), task("b"), task("c")], "", "", workers=workers)


@pytest.mark.parametrize("verdict", [(1, float("nan"), ""), (1, 100, ""), (1, "0.5", "")])
def test_an_unusable_grade_is_an_error_and_not_a_zero(verdict: object) -> None:
    result = replay_one(Scripted(lambda _: "x", lambda _: verdict), task("a"), "", "")
    assert not result.scored
    assert (result.hard, result.soft) == (0, 0)


def test_checks_that_cannot_be_decided_are_errors() -> None:
    assert "no known operator" in replay_one(MockBackend(), rule("a", {"op": "wat", "arg": "x"}), "", "").error


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_the_program_are_not_swallowed(workers: int) -> None:
    def broken(_: TaskRecord) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        replay_batch(Scripted(broken), [task("a"), task("b")], "", "", workers=workers)
    with pytest.raises(TypeError):
        replay_batch(Scripted(lambda _: "x", lambda _: None), [task("a")], "", "", workers=workers)


def test_a_spent_budget_ends_the_batch() -> None:
    backend = Words(meter=Meter(max_calls=1))
    with pytest.raises(BudgetSpent):
        replay_batch(backend, [numbered(1), numbered(2)], "", "")


@pytest.mark.parametrize("workers", [1, 4])
def test_calls_that_wait_for_an_answer_are_collected_over_the_batch(workers: int) -> None:
    def ask(item: TaskRecord) -> str:
        if item.id in "bd":
            raise PendingCalls({item.id: {"prompt": item.intent}})
        return "fine"

    with pytest.raises(PendingCalls) as caught:
        replay_batch(Scripted(ask), [task(name) for name in "abcd"], "", "", workers=workers)
    assert set(caught.value.pending) == {"b", "d"}


def test_a_tool_is_called_only_if_its_call_was_recorded() -> None:
    item = rule("a", {"op": "tool_called", "arg": "search"})
    item.reference = "TOOL_CALL: search"
    assert replay_one(MockBackend(), item, "", "").hard == 0
    passed = replay_one(MockBackend(), item, "Always use search first.", "")
    assert (passed.hard, passed.tools_called) == (1.0, ["search"])


def test_a_backend_without_tools_refuses_the_task() -> None:
    result = replay_one(Scripted(lambda _: "TOOL_CALL: Bash"), rule("a", {"op": "tool_called", "arg": "Bash"}), "", "")
    assert result.error.startswith("refused: ")
    assert "cannot run tools" in result.error


def numbered(number: int) -> TaskRecord:
    checks = [{"op": "contains", "arg": "answer"}]
    return task(f"t{number}", f"do the number <{number}>", reference_kind="rule", judge={"checks": checks})


def test_tokens_of_each_task_are_exact_with_many_threads() -> None:
    backend = Words(barrier=8)
    tasks = [numbered(number) for number in range(100, 124)]
    pairs = replay_batch(backend, tasks, "", "", workers=8)
    assert [result.response for _, result in pairs] == [f"answer {number}" for number in range(100, 124)]
    assert [result.tokens for _, result in pairs] == list(range(100, 124))
    assert sum(result.tokens for _, result in pairs) == backend.tokens_used()


def test_a_shared_counter_is_not_taken_for_a_tasks_own() -> None:
    pairs = replay_batch(Scripted(lambda _: "fine"), [task("a"), task("b")], "s" * 400, "", workers=2)
    assert all(result.tokens > 100 for _, result in pairs)


def test_a_fresh_replay_asks_again() -> None:
    backend = Words()
    replay_batch(backend, [numbered(5)], "", "")
    replay_batch(backend, [numbered(5)], "", "")
    assert backend.tokens_used() == 5
    replay_batch(backend, [numbered(5)], "", "", fresh=True)
    assert backend.tokens_used() == 10


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1_0", "9" * 30])
def test_a_bad_number_of_workers_is_refused_everywhere(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLOPT_SLEEP_WORKERS", text)
    with pytest.raises(UsageProblem, match="SKILLOPT_SLEEP_WORKERS"):
        worker_count()
    with pytest.raises(UsageProblem, match="SKILLOPT_SLEEP_WORKERS"):
        replay_batch(MockBackend(), [], "", "")


def test_workers_from_argument_variable_or_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKILLOPT_SLEEP_WORKERS", raising=False)
    assert worker_count() == 1
    monkeypatch.setenv("SKILLOPT_SLEEP_WORKERS", "3")
    assert worker_count() == 3
    assert worker_count(2) == 2
    with pytest.raises(UsageProblem):
        worker_count(-1)


def test_evidence_of_a_replay(tmp_path: Path) -> None:
    backend = Scripted(fail("transient"))
    attach(backend, EvidenceLog(tmp_path / "e.jsonl"))
    set_phase(backend, "baseline_val")
    replay_batch(backend, [task("a"), task("b")], "", "")
    rows = read_events(tmp_path / "e.jsonl")
    assert [(row["event"], row["phase"], row["task_id"], row["hard"]) for row in rows] == [
        ("result", "baseline_val", "a", 1.0),
        ("result", "baseline_val", "b", None),
    ]
    assert "away" in rows[1]["error"]


def test_nothing_to_replay_is_no_score() -> None:
    pairs: Sequence[Any] = replay_batch(MockBackend(), [], "", "")
    assert pairs == []
    assert aggregate_scores(pairs) == (0.0, 0.0)


def test_a_spent_budget_lets_the_calls_in_flight_end_and_counts_them() -> None:
    both, done, left = threading.Barrier(2), threading.Event(), []

    def answer(number: int) -> int:
        if number == 0:
            both.wait()
            raise BudgetSpent("spent", limit="tokens")
        if number == 1:
            both.wait()
            assert not done.wait(0.2), "the batch ended while a call was being made"
        left.append(number)
        return number

    with pytest.raises(BudgetSpent, match="spent"):
        run_all(answer, range(50), workers=2)
    done.set()
    assert left == [1]
