"""The mock: six sentences, six keys, no call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillopt_sleep.backends import RULES, MockBackend
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.types import ReplayResult, TaskRecord

MakeTask = Callable[..., TaskRecord]


@pytest.fixture
def paper(task: MakeTask) -> TaskRecord:
    tags = ["rule:wrap-answer", "rule:arxiv-id", "rule:unknown"]
    return task(reference_kind="exact", reference="arXiv:1706.03762v5", tags=tags, outcome="fail")


def solve(task: TaskRecord, skill: str = "", memory: str = "") -> tuple[str, tuple[float, float, str]]:
    mock = MockBackend()
    answer = mock.attempt(task, skill, memory)
    return answer, mock.judge(task, answer)


def test_there_are_six_rules_with_sentences_of_their_own() -> None:
    assert set(RULES) == {"wrap-answer", "arxiv-id", "commit-imperative", "units-si", "json-only", "__harmful__"}
    assert len(set(RULES.values())) == 6
    assert "<answer>" in RULES["wrap-answer"]


def test_a_task_is_solved_once_all_its_sentences_are_there(paper: TaskRecord) -> None:
    wrap, arxiv = RULES["wrap-answer"], RULES["arxiv-id"]
    answer, (hard, soft, _) = solve(paper)
    assert answer == "approximately arXiv:1706.03762 (format not applied)"
    assert hard == 0.0
    assert 0.5 < soft < 1.0
    assert solve(paper, wrap)[1][0] == 0.0
    answer, grade = solve(paper, wrap, arxiv)
    assert "<answer>arXiv:1706.03762v5</answer>" in answer
    assert grade[:2] == (1.0, 1.0)


def test_without_the_answer_tags_the_reference_stands_alone(task: MakeTask) -> None:
    commit = task(reference_kind="exact", reference="Add a test", tags=["rule:commit-imperative"])
    assert solve(commit, RULES["commit-imperative"])[0] == "Add a test"
    assert solve(task(reference="abc"))[0] == "approximately unknown (format not applied)"


def test_no_rule_no_reference_and_harm(task: MakeTask) -> None:
    assert solve(task(outcome="success"), "x")[1][:2] == (1.0, 1.0)
    assert solve(task(outcome="mixed"), "x")[1][:2] == (0.0, 0.0)
    harmful = task(reference="x y z", reference_kind="exact", tags=["rule:__harmful__", "rule:units-si"])
    assert solve(harmful, "".join(RULES.values()))[1][0] == 0.0


def test_a_rubric_is_graded_by_its_words(task: MakeTask) -> None:
    rubric = task(reference="names alpha beta gamma delta")
    assert MockBackend().judge(rubric, "names alpha beta gamma")[:2] == (1.0, 0.8)
    assert MockBackend().judge(rubric, "alpha")[:2] == (0.0, 0.2)


def test_tools_are_called_when_the_documents_say_so(task: MakeTask) -> None:
    mock = MockBackend()
    called = mock.attempt_with_tools(task(), "Always run Search first", "./lint", ["search", "lint", "read"])[1]
    assert called == ["search", "lint"]


def test_reflection_proposes_what_is_missing_and_no_more(paper: TaskRecord) -> None:
    mock, result = MockBackend(), ReplayResult(id="t1")
    how = {"edit_budget": 4, "evolve_skill": True, "evolve_memory": False}
    edits = mock.reflect([(paper, result), (paper, result)], [], "", "", **how)
    assert [edit.content for edit in edits] == [RULES["wrap-answer"], RULES["arxiv-id"]]
    assert {(edit.target, edit.op) for edit in edits} == {("skill", "add")}
    assert "t1" in edits[0].rationale
    assert len(mock.reflect([(paper, result)], [], "", "", **{**how, "edit_budget": 1})) == 1
    assert mock.reflect([(paper, result)], [], RULES["wrap-answer"], RULES["arxiv-id"], **how) == []
    assert mock.reflect([], [(paper, result)], "", "", **how) == []
    memory = mock.reflect([(paper, result)], [], "", "", edit_budget=4, evolve_skill=False, evolve_memory=True)
    assert {edit.target for edit in memory} == {"memory"}


def test_it_calls_no_model() -> None:
    mock = MockBackend()
    assert mock.tokens_used() == 0
    assert mock.start_preview() == []
    with pytest.raises(CallFailed):
        mock.call("q")
