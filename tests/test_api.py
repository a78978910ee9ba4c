"""The functions of `skillopt`: the same trainer as the command line, and whole runs around a person's own functions."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from worlds import World

import skillopt
from skillopt.config.resolve import resolve
from skillopt.engine.setup import prepare
from skillopt.errors import (
    BudgetExceededError,
    ConfigError,
    DataError,
    InterruptedRunError,
    ResumeMismatchError,
    TooManyErrorsError,
    TransientError,
)
from skillopt.skill.document import Skill
from skillopt.testing import ScriptedModel
from skillopt.utils.cancel import CancelToken

ROOT = Path(__file__).parents[1]
RULE = "- Answer in capital letters."
ONE_EPOCH = {"train": {"num_epochs": 1, "batch_size": 6}}


def items(split: str, number: int) -> list[dict[str, Any]]:
    return [{"id": f"{split}-{n}", "question": f"word {split} {n}", "answer": f"W{n}"} for n in range(number)]


def propose(call: Any) -> str:
    edits = [{"op": "append", "content": RULE}]
    reply = {"batch_size": 1, "failure_summary": [], "patch": {"reasoning": "case", "edits": edits}}
    return json.dumps({**reply, **reply["patch"]})  # type: ignore[dict-item]


def shout(item: dict[str, Any], skill: str) -> str:
    word = f"w{item['question'].split()[-1]}"
    return word.upper() if RULE in skill else word


def equal(item: dict[str, Any], answer: str) -> float:
    return float(answer == item["answer"])


def optimize(**options: Any) -> skillopt.OptimizedSkill:
    given: dict[str, Any] = {
        "run_item": shout,
        "score": equal,
        "optimizer": propose,
        "config": ONE_EPOCH,
        "test": items("test", 10),
        **options,
    }
    skill = given.pop("skill", "# Words\n")
    train, val = given.pop("train", items("train", 6)), given.pop("val", items("val", 10))
    return skillopt.optimize_skill(skill, train, val, **given)


def test_an_agent_that_is_a_function_is_trained(tmp_path: Path) -> None:
    trained = optimize(out_root=tmp_path / "run")
    assert trained.skill == f"# Words\n\n{RULE}\n"
    assert (trained.baseline, trained.score, trained.test_baseline, trained.test_score) == (0.0, 1.0, 0.0, 1.0)
    assert trained.out_root == tmp_path / "run"
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8")) == trained.summary
    assert "summary" not in repr(trained)


def test_without_a_folder_it_is_a_temporary_one_and_without_tests_there_is_no_test_score() -> None:
    trained = optimize(test=())
    assert (trained.out_root / "best_skill.md").exists()
    assert trained.test_score is None


def test_the_functions_get_copies_and_the_optimizer_sees_what_happened() -> None:
    def run_item(item: dict[str, Any], skill: str) -> skillopt.Rollout:
        item["seen"] = item["extra"].pop()
        return skillopt.Rollout({"value": 1}, ["thought aloud", {"type": "tool_call", "cmd": "ls", "obs": "nothing"}])

    def score(item: dict[str, Any], answer: dict[str, int]) -> skillopt.Score:
        assert item["extra"] == [1]
        assert answer == {"value": 1}
        return skillopt.Score(0.0, 0.5, "should be 2")

    optimizer = ScriptedModel(propose)
    train = [{**item, "extra": [1]} for item in items("train", 2)]
    val = [{**item, "extra": [1]} for item in items("val", 10)]
    trained = optimize(run_item=run_item, score=score, optimizer=optimizer, train=train, val=val, test=())
    assert trained.baseline == 0.0
    seen = next(call.last_user for call in optimizer.calls if call.stage == "analyst")
    assert all(text in seen for text in ("thought aloud", "ls", "should be 2", "word train 0", "W0"))


@pytest.mark.parametrize(
    ("given", "said"),
    [(None, "got None"), (float("nan"), "hard is nan"), ("1.0", "got '1.0'"), (2, "hard is 2.0")],
)
def test_what_is_no_score_is_an_error_that_names_the_item(given: Any, said: str) -> None:
    with pytest.raises(TooManyErrorsError, match=re.escape(said)) as caught:
        optimize(score=lambda item, answer: given)
    assert "is ungraded" in str(caught.value)
    assert "val-0" in str(caught.value)


def test_an_exception_is_an_error_and_never_a_score() -> None:
    def run_item(item: dict[str, Any], skill: str) -> str:
        if item["id"] == "val-3":
            raise RuntimeError("broken tool")
        return shout(item, skill)

    trained = optimize(run_item=run_item, config={**ONE_EPOCH, "env": {"max_error_rate": 0.2}})
    assert trained.score == 1.0
    assert trained.summary["selection_n"] == 9


def test_a_scorer_that_raises_is_an_error() -> None:
    with pytest.raises(TooManyErrorsError, match="score: KeyError"):
        optimize(score=lambda item, answer: item["missing"])


def test_an_agent_that_returns_nothing_is_told() -> None:
    with pytest.raises(TooManyErrorsError, match="run_item returned None"):
        optimize(run_item=lambda item, skill: None)


@pytest.mark.parametrize("error", [TransientError("busy"), ConnectionError("reset"), TimeoutError("slow")])
def test_what_usually_passes_is_tried_again(error: Exception) -> None:
    tries: Counter[str] = Counter()
    lock = threading.Lock()

    def run_item(item: dict[str, Any], skill: str) -> str:
        with lock:
            tries[item["id"]] += 1
            first = tries[item["id"]] == 1
        if first:
            raise error
        return shout(item, skill)

    assert optimize(run_item=run_item).score == 1.0
    assert tries["val-0"] == 3  # once in vain, then once under each skill


def test_the_same_call_does_no_item_again_and_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    done: list[tuple[str, str]] = []
    stop = CancelToken()

    def run_item(item: dict[str, Any], skill: str) -> str:
        done.append((item["id"], skill))
        if len(done) == 13:
            stop.cancel()
        return shout(item, skill)

    folder = {"out_root": tmp_path / "run", "workers": 1, "version": "1"}
    with pytest.raises(InterruptedRunError):
        optimize(run_item=run_item, stop=stop, **folder)
    first = optimize(run_item=run_item, **folder)
    assert first.score == 1.0
    assert [number for number in Counter(done).values() if number > 1] in ([], [2])  # the one under way at most
    before = len(done)
    assert optimize(run_item=run_item, **folder) == first
    assert len(done) == before
    with pytest.raises(ResumeMismatchError):
        optimize(run_item=run_item, **{**folder, "version": "2"})


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"run_item": "agent"}, ConfigError, "run_item must be a function"),
        ({"workers": 0}, ConfigError, "workers is 0"),
        ({"score": "exact"}, ConfigError, "score must be a function"),
        ({"train": []}, DataError, "split train: has no items"),
        ({"val": [{"id": "train-0"}]}, DataError, "splits train and val share 1 id"),
        ({"train": ["text"]}, DataError, "train: item 1: expected a mapping"),
        ({"train": [{"id": "a", "when": object()}]}, DataError, "train: item 1: holds a value that is not JSON"),
        ({"optimizer": 3}, ConfigError, "optimizer: expected backend/model"),
        ({"optimizer": {"backend": "opneai_compatible"}}, ConfigError, "did you mean"),
        ({"config": {"train": {"batchsize": 1}}}, ConfigError, "batch_size"),
        ({"config": {"env": {"data_path": "x.csv", "scorr": 1}}}, ConfigError, "has no key env.scorr"),
        ({"skill": "missing.md"}, DataError, "missing.md"),
    ],
)
def test_what_must_be_changed_is_said_before_anything_runs(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    def never(item: dict[str, Any], skill: str) -> str:
        raise AssertionError("nothing may run")

    with pytest.raises(error, match=re.escape(said)):
        optimize(**{"run_item": never, **options})


def test_an_async_agent_is_refused_with_the_way_out() -> None:
    async def agent(item: dict[str, Any], skill: str) -> str:
        return ""

    with pytest.raises(ConfigError, match=r"asyncio\.run"):
        optimize(run_item=agent)


def test_items_without_ids_are_numbered() -> None:
    seen = []

    def run_item(item: dict[str, Any], skill: str) -> str:
        seen.append(item["id"])
        return "x"

    optimize(run_item=run_item, score=lambda item, answer: 0, train=[{"q": 1}, {"q": 2}], val=[{"q": 3}], test=())
    assert {"train-1", "train-2", "val-1"} <= set(seen)


def test_an_optimizer_is_a_backend_with_its_settings(world: World, tmp_path: Path) -> None:
    optimizer = {"backend": "openai_compatible", "model": "optimizer-model", "base_url": world.server.url}
    trained = optimize(optimizer=optimizer, run_item=lambda item, skill: "x")
    assert trained.baseline == 0.0
    assert world.requests("optimizer-model")
    config = json.loads((trained.out_root / "config.json").read_text("utf-8"))
    assert config["optimizer_model"] == "optimizer-model"
    assert optimize(optimizer=world.server.role("target", model="optimizer-model")).baseline == 0.0


def test_training_takes_a_file_a_mapping_or_settings(world: World) -> None:
    path = world.config()
    trained = skillopt.train(path)
    assert trained.test_score == 1.0
    before = len(world.server.requests)
    assert skillopt.train({"_base_": path}) == trained
    assert skillopt.train(resolve(path)) == trained
    assert len(world.server.requests) == before


def test_a_flat_mapping_is_a_configuration_too(world: World, tmp_path: Path) -> None:
    flat = {
        "backend": "openai_compatible",
        "target_model": "target-model",
        "optimizer_model": "optimizer-model",
        "openai_compatible_base_url": world.server.url,
        "num_epochs": 1,
        "batch_size": 8,
        "env": "jsonl",
        "split_mode": "split_dir",
        "split_dir": world.root / "data",
        "out_root": tmp_path / "flat",
    }
    assert skillopt.train(flat).score is not None
    assert flat["split_dir"] == world.root / "data"


def test_an_environment_that_is_set_up_may_be_given(world: World) -> None:
    config = resolve(world.config(train={"num_epochs": 1}))
    adapter = prepare(config)
    assert skillopt.train(config, adapter=adapter).baseline == 0.0
    summary = skillopt.evaluate("", world.config(env={"out_root": str(world.root / "e")}), adapter=adapter)
    assert summary["hard"] == 0.0


def test_a_skill_is_scored_from_a_text_a_file_or_a_value(world: World, tmp_path: Path) -> None:
    text = "# Rules\n- Rule amber: say its secret.\n"
    path = tmp_path / "S.md"
    path.write_text(text, "utf-8")
    config = world.config(env={"out_root": str(tmp_path / "eval")})
    results = [skillopt.evaluate(skill, config, split="test") for skill in (text, path, str(path), Skill.parse(text))]
    assert {result["hard"] for result in results} == {round(2 / 12, 6)}
    assert [result["skill"] for result in results] == ["", str(path), str(path), ""]


def test_a_budget_below_one_step_is_refused_and_a_run_that_has_begun_goes_on(world: World) -> None:  # C251
    with pytest.raises(ConfigError, match=r"budget.max_calls = 30 supports 0 complete proposals.*at least 35"):
        skillopt.train(world.config(budget={"max_calls": 30}))
    assert not world.out_root.exists()
    assert not world.server.requests
    with pytest.raises(BudgetExceededError):
        skillopt.train(world.config(budget={"max_calls": 35}))
    with pytest.raises(BudgetExceededError):
        skillopt.train(world.config(budget={"max_calls": 30}))


def test_the_guide_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "guide" / "python-api.md").read_text("utf-8")
    scope: dict[str, Any] = {"__name__": "guide"}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, "python-api.md", "exec"), scope)
