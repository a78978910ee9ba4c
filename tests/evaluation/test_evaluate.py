"""Evaluations: means, comparisons item by item, and which batches can be run in parts."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gate_worlds import Scripted, ScriptedTasks

from skillopt.datasets.base import BatchSpec
from skillopt.envs.runner import RunContext
from skillopt.errors import DataError, RunError
from skillopt.evaluation.early_stop import Bar
from skillopt.evaluation.evaluate import Evaluation, Evaluator, compare, item_ids
from skillopt.skill.document import Skill
from skillopt.types import Item, RolloutResult

SKILL = Skill.parse("text")


def evaluation(*scores: float | None) -> Evaluation:
    results = [
        RolloutResult(id=f"item-{n}", status="error")
        if s is None
        else RolloutResult(id=f"item-{n}", hard=s, soft=s / 2)
        for n, s in enumerate(scores)
    ]
    return Evaluation.of("h", "val", results)


def evaluator(adapter: Any, workers: int = 1) -> Evaluator:
    context = RunContext(session=cast(Any, SimpleNamespace(roles={})), workers=workers, item_retries=0, split="val")
    return Evaluator(adapter=adapter, context=context, max_error_rate=1.0, limits={}, seed=0)


def bar(*scores: float, **options: bool) -> Bar:
    before = {f"item-{n}": (s, s) for n, s in enumerate(scores)}
    return Bar(before, sum(scores) / len(scores), lambda m: m[0], lambda m: m[0], **options)


def always(value: float) -> Any:
    return lambda _text, _item: (value, value)


def test_two_evaluations_are_compared_on_common_items() -> None:
    seen = compare(evaluation(0, 1, 0, None, 1), evaluation(1, 1, None, 1, 0))
    assert (seen.n, seen.mean_difference, seen.gained, seen.lost) == (3, 0.0, 1, 1)
    assert seen.p_value == 0.75


def test_another_measure_can_be_compared() -> None:
    seen = compare(evaluation(0.0, 0.0), evaluation(1.0, 1.0), measure=lambda means: means[1])
    assert (seen.mean_difference, seen.p_value) == (0.5, 0.25)


def test_what_stopped_early_is_never_compared_item_by_item() -> None:
    with pytest.raises(ValueError, match="stopped early"):
        compare(evaluation(0, 1), replace(evaluation(1), skipped=1))


def test_errors_are_no_scores() -> None:
    assert evaluation(1, None).hard == 1.0
    with pytest.raises(DataError):
        evaluation(None, None)


def test_the_scores_of_a_stopped_evaluation_are_not_numbers(tmp_path: Path) -> None:
    adapter = ScriptedTasks(4, always(0.0))
    seen = evaluator(adapter).evaluate(SKILL, "val", purpose="p", out_dir=tmp_path, against=bar(1, 1, 0, 0))
    assert (len(seen.results), seen.skipped, seen.total, seen.complete) == (2, 2, 4, False)
    assert math.isnan(seen.hard)
    assert (seen.bound, seen.decided) == (0.5, "lost")
    assert [result.id for result in seen.results] == ["item-2", "item-3"]


def test_a_bar_that_only_judges_leaves_nothing_out(tmp_path: Path) -> None:
    adapter = ScriptedTasks(4, always(0.0))
    against = bar(1, 1, 0, 0, stop=False)
    seen = evaluator(adapter).evaluate(SKILL, "val", purpose="p", out_dir=tmp_path, against=against)
    assert (seen.complete, seen.decided) == (True, "lost")


def test_a_bar_that_cannot_be_passed_needs_no_rollout(tmp_path: Path) -> None:
    adapter = ScriptedTasks(3, always(1.0))
    seen = evaluator(adapter).evaluate(SKILL, "val", purpose="p", out_dir=tmp_path, against=bar(1, 1, 1))
    assert (seen.results, seen.decided, seen.bound, adapter.calls) == ((), "lost", 1.0, 0)


def test_a_bar_that_does_not_know_all_items_is_compared_after_all_were_run(tmp_path: Path) -> None:
    adapter = ScriptedTasks(4, always(0.0))
    seen = evaluator(adapter).evaluate(SKILL, "val", purpose="p", out_dir=tmp_path, against=bar(1, 1, 0))
    assert (seen.complete, seen.decided) == (True, "lost")


def test_batches_described_by_position_are_not_cut(tmp_path: Path) -> None:
    adapter = Scripted(4, always(0.0))
    batch = BatchSpec("eval", "val", 0, 4, adapter.loader.rows, {"rows": [0, 1, 2, 3]})
    seen = evaluator(adapter).evaluate_batch(SKILL, batch, purpose="p", out_dir=tmp_path, against=bar(1, 1, 0, 0))
    assert seen.complete
    assert len(adapter.batches) == 1


def test_nothing_graded_is_an_error(tmp_path: Path) -> None:
    adapter = ScriptedTasks(2, lambda _text, _item: None)
    with pytest.raises(RunError, match="not one item of split val"):
        evaluator(adapter).evaluate(SKILL, "val", purpose="p", out_dir=tmp_path)


@pytest.mark.parametrize(
    ("payload", "ids"),
    [
        ([{"id": 1}, Item("b", {})], ("1", "b")),
        ([{"id": ""}], None),
        ([{}], None),
        ([], None),
        (None, None),
        ("ab", None),
        (["a"], None),
    ],
)
def test_ids_of_a_batch(payload: Any, ids: tuple[str, ...] | None) -> None:
    assert item_ids(BatchSpec("eval", "val", 0, 1, payload)) == ids
