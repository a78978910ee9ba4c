"""The personas are what the published figures rest on."""

from __future__ import annotations

import pytest

from skillopt_sleep.backends.mock import HARMFUL, RULES
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.experiments.personas import HarmedBackend, harmful_edit_task, persona_tasks
from skillopt_sleep.mining import assign_splits


@pytest.mark.parametrize(
    ("persona", "prefix", "count", "val"),
    [
        ("researcher", "persona_wrap-answer_", 12, {0, 1, 2, 4, 6, 7}),
        ("programmer", "persona_commit-imperative_", 8, {1, 3, 7}),
    ],
)
def test_tasks_and_splits_are_the_published_ones(persona: str, prefix: str, count: int, val: set[int]) -> None:
    tasks = assign_splits(persona_tasks(persona), val_fraction=0.34, seed=42)
    assert [task.id for task in tasks] == [f"{prefix}{at}" for at in range(count)]
    assert {at for at, task in enumerate(tasks) if task.split == "val"} == val
    assert all(
        (task.reference_kind, task.outcome, task.project) == ("exact", "fail", "/personas/demo") for task in tasks
    )
    assert [task.source_sessions for task in tasks] == [[f"sess_{at}"] for at in range(count)]


def test_an_unknown_persona_is_refused() -> None:
    with pytest.raises(UsageProblem, match="researcher"):
        persona_tasks("baker")


def test_the_harmful_rule_does_harm() -> None:
    task = persona_tasks("researcher")[0]
    good = f"{RULES['wrap-answer']}\n{RULES['arxiv-id']}"
    backend = HarmedBackend()
    assert backend.judge(task, backend.attempt(task, good, ""))[0] == 1.0
    assert backend.judge(task, backend.attempt(task, f"{good}\n{RULES[HARMFUL]}", ""))[0] == 0.0
    bait = harmful_edit_task()
    assert backend.judge(bait, backend.attempt(bait, f"{good}\n{RULES[HARMFUL]}", ""))[0] == 0.0
