"""Custom environments that follow the public contract and run their items themselves."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skillopt.datasets.base import BatchSpec
from skillopt.envs.adapter import EnvAdapter, overrides_reflect
from skillopt.envs.runner import run_batch
from skillopt.errors import AuthError, ConfigError, DataError, RunError, TransientError
from skillopt.model.active import active_session
from skillopt.model.session import Session
from skillopt.types import Item, RoleConfig
from skillopt.utils.files import safe_name


class Custom(EnvAdapter):
    """Answers from `rows` (id -> row or exception); keeps files as the documented examples do."""

    def __init__(self, rows: dict[str, Any]) -> None:
        self.rows = rows
        self.runs: list[list[str]] = []
        self.keywords: list[dict[str, Any]] = []
        self.folders: list[Path] = []

    def build_train_env(self, batch_size: int, seed: int, **kw: Any) -> Any:
        return [{"id": key} for key in sorted(self.rows)][:batch_size]

    def build_eval_env(self, env_num: int, split: str, seed: int, **kw: Any) -> Any:
        return [{"id": key} for key in reversed(list(self.rows))]

    def build_env_from_batch(self, batch: BatchSpec, **kw: Any) -> Any:
        return list(batch.payload)

    def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:
        self.runs.append([item["id"] for item in env_manager])
        self.keywords.append(kw)
        self.folders.append(Path(out_dir))
        out = []
        for item in reversed(env_manager):
            row = self.rows[item["id"]]
            if isinstance(row, Exception):
                raise row
            if row is not None:
                out.append({"id": item["id"], **row})
        return out

    def get_task_types(self) -> list[str]:
        return ["t"]


def batch(*ids: str, phase: str = "eval", **more: Any) -> BatchSpec:
    payload = [{"id": name, "x": name} for name in ids]
    return BatchSpec(phase=phase, split="val", seed=1, batch_size=len(ids), payload=payload, **more)


def run(bench: Any, env: Any, spec: BatchSpec, out: Path, **more: Any) -> list[Any]:
    return run_batch(env, spec, "skill", bench.context(bench.session(), **more), out)


def test_rows_come_back_in_item_order_and_are_kept_by_item(bench: Any, tmp_path: Path) -> None:
    env = Custom({name: {"hard": 1, "soft": 0.5, "answer": name, "em": 3} for name in "abc"})
    first = run(bench, env, batch("a", "b"), tmp_path / "one")
    assert [(r.id, r.hard, r.soft, r.predicted_answer, r.extras["em"]) for r in first] == [
        ("a", 1.0, 0.5, "a", 3), ("b", 1.0, 0.5, "b", 3)
    ]  # fmt: skip
    again = run(bench, env, batch("c", "b", "a"), tmp_path / "two")
    assert [r.id for r in again] == ["c", "b", "a"]
    assert env.runs == [["a", "b"], ["c"]]
    assert again[1:] == first[::-1]


def test_failed_and_missing_rows_are_errors_and_only_they_are_tried_again(bench: Any, tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "ok": {"hard": True, "soft": 1},
        "down": {"hard": 0, "soft": 0, "agent_ok": False, "fail_reason": "error: 500"},
        "gone": None,
        "nan": {"hard": float("nan"), "soft": 0},
        "none": {"hard": None},
    }
    env = Custom(rows)
    results = run(bench, env, batch(*rows), tmp_path / "o", item_retries=1)
    assert {r.id: r.status for r in results} == {
        "ok": "ok", "down": "error", "gone": "error", "nan": "error", "none": "error"
    }  # fmt: skip
    assert [r.error for r in results] == [
        "",
        "error: 500",
        "environment Custom returned no result for it",
        "item 'nan' is ungraded: hard is nan, not a number in 0..1",
        "item 'none' is ungraded: hard is None, not a number in 0..1",
    ]
    assert env.runs == [["ok", "down", "gone", "nan", "none"], ["down", "gone", "nan", "none"]]
    assert env.folders == [tmp_path / "o", tmp_path / "o" / "retry_1"]


def test_a_folder_with_rows_of_other_work_is_not_handed_over(bench: Any, tmp_path: Path) -> None:
    env = Custom({"a": {"hard": 1, "soft": 1}})
    run(bench, env, batch("a"), tmp_path / "o")
    run(bench, env, batch("a"), tmp_path / "o", skill_hash="another")
    run(bench, env, batch("a"), tmp_path / "o", store=None)
    assert env.folders[0] == env.folders[2] == tmp_path / "o"
    assert env.folders[1].parent == tmp_path / "o"
    assert env.folders[1].name.startswith("rerun_")


@pytest.mark.parametrize(("item_id", "folder"), [("a", "a"), ("a/b", safe_name("a/b")), ("..:x", safe_name("..:x"))])
def test_trajectory_files_are_read(bench: Any, tmp_path: Path, item_id: str, folder: str) -> None:
    class Filing(Custom):
        def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:
            place = Path(out_dir) / "predictions" / folder
            place.mkdir(parents=True)
            (place / "conversation.json").write_text(json.dumps([{"role": "agent", "content": "hé"}, "odd"]), "utf-8")
            (place / "target_system_prompt.txt").write_text("be brief", "utf-8")
            (place / "codex_trace_summary.txt").write_text("trace", "utf-8")
            return super().rollout(env_manager, skill_content, out_dir, **kw)

    (result,) = run(bench, Filing({item_id: {"hard": 0, "soft": 0}}), batch(item_id), tmp_path / "o")
    assert result.trajectory == ({"role": "agent", "content": "hé"}, {"role": "agent", "content": "odd"})
    assert result.target_system_prompt == "be brief"
    assert result.extras["codex_trace_summary"] == "trace"


def test_an_id_cannot_reach_files_outside_its_folder(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "conversation.json").write_text('[{"role": "agent", "content": "secret"}]', "utf-8")
    (tmp_path / "o" / "predictions").mkdir(parents=True)
    for item_id in ("../..", "x" * 500):
        (result,) = run(bench, Custom({item_id: {"hard": 0, "soft": 0}}), batch(item_id), tmp_path / "o")
        assert result.trajectory == ()


def test_odd_row_values_do_not_break_a_result(bench: Any, tmp_path: Path) -> None:
    row = {"hard": 0, "soft": 0, "fail_reason": None, "instruction": "do", "instruction_type": 7, "trajectory": "x"}
    (result,) = run(bench, Custom({"a": {**row, "n_turns": None, "usage": "?"}}), batch("a"), tmp_path / "o")
    assert (result.fail_reason, result.task_description, result.task_type) == ("", "do", "7")
    assert (result.n_turns, result.trajectory, result.usage.calls) == (0, (), 0)


def test_training_rollouts_get_feedback_and_are_kept_apart(bench: Any, tmp_path: Path) -> None:
    env = Custom({"a": {"hard": 1, "soft": 1}})
    run(bench, env, batch("a", phase="train"), tmp_path / "t")
    run(bench, env, batch("a"), tmp_path / "e")
    assert env.keywords == [{"use_eval_feedback": True}, {}]


def test_a_batch_with_metadata_stays_whole(bench: Any, tmp_path: Path) -> None:
    env = Custom({name: {"hard": 1, "soft": 1} for name in "ab"})
    run(bench, env, batch("a"), tmp_path / "one")
    results = run(bench, env, batch("a", "b", metadata={"gamefiles": ["x", "y"]}), tmp_path / "two")
    assert env.runs[1] == ["a", "b"]
    assert [r.id for r in results] == ["a", "b"]


def test_an_environment_without_loader_draws_its_own_tasks_once(bench: Any, tmp_path: Path) -> None:
    env = Custom({name: {"hard": 1, "soft": 1} for name in "cab"})
    spec = BatchSpec(phase="eval", split="val", seed=1, batch_size=0, metadata={"out_root": "x"})
    first = run(bench, env, spec, tmp_path / "one")
    again = run(bench, env, spec, tmp_path / "two")
    assert [r.id for r in first] == ["a", "b", "c"]
    assert again == first
    assert len(env.runs) == 1
    run(bench, env, BatchSpec(phase="eval", split="test", seed=1, batch_size=0), tmp_path / "three")
    run(bench, env, BatchSpec(phase="train", split="train", seed=1, batch_size=2), tmp_path / "four")
    assert [len(ids) for ids in env.runs] == [3, 3, 2]


def test_a_drawn_batch_with_errors_is_not_kept(bench: Any, tmp_path: Path) -> None:
    env = Custom({"a": {"hard": 1, "soft": 1}, "b": {"hard": 0, "soft": 0, "agent_ok": False}})
    spec = BatchSpec(phase="eval", split="val", seed=1, batch_size=0)
    results = run(bench, env, spec, tmp_path / "one", item_retries=0)
    assert [r.status for r in results] == ["ok", "error"]
    env.rows["b"] = {"hard": 0, "soft": 0}
    results = run(bench, env, spec, tmp_path / "one", item_retries=1)
    assert [r.status for r in results] == ["ok", "ok"]


def test_an_environment_that_draws_nothing_is_an_error(bench: Any, tmp_path: Path) -> None:
    spec = BatchSpec(phase="eval", split="val", seed=1, batch_size=0)
    with pytest.raises(RunError, match="returned no result for split 'val'"):
        run(bench, Custom({}), spec, tmp_path)


def test_what_a_rollout_raises(bench: Any, tmp_path: Path) -> None:
    (result,) = run(bench, Custom({"a": TransientError("500")}), batch("a"), tmp_path / "1")
    assert result.error == "TransientError: 500"
    with pytest.raises(AuthError):
        run(bench, Custom({"a": AuthError("401")}), batch("a"), tmp_path / "2")
    with pytest.raises(RunError, match="Custom raised ZeroDivisionError in rollout: x"):
        run(bench, Custom({"a": ZeroDivisionError("x")}), batch("a"), tmp_path / "3")


def test_the_runs_session_is_behind_the_public_model_functions(bench: Any, tmp_path: Path) -> None:
    class Calling(Custom):
        def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:
            with ThreadPoolExecutor(1) as pool:
                self.seen = [active_session(), pool.submit(active_session).result()]
            return super().rollout(env_manager, skill_content, out_dir, **kw)

    session = Session({"target": RoleConfig("target", "mock_chat", "m")})
    env = Calling({"a": {"hard": 1, "soft": 1}})
    run_batch(env, batch("a"), "skill", bench.context(session), tmp_path)
    assert env.seen == [session, session]


def test_rows_that_are_none_are_refused(bench: Any, tmp_path: Path) -> None:
    class Odd(Custom):
        def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> Any:
            return self.rows["value"]

    for value, words in [("text", "not a list"), ([3], "not a result dict"), ([{"hard": 1}], "without an id")]:
        with pytest.raises(DataError, match=words):
            run(bench, Odd({"value": value}), batch("a"), tmp_path / words)


def test_ray_is_refused_in_one_sentence(bench: Any, tmp_path: Path) -> None:
    class Ray(Custom):
        def requires_ray(self) -> bool:
            return True

    with pytest.raises(ConfigError, match="asks for ray"):
        run(bench, Ray({}), batch("a"), tmp_path)


def test_item_payloads_of_built_in_environments_go_to_the_runner(bench: Any, tmp_path: Path, items: list[Item]) -> None:
    spec = BatchSpec(phase="train", split="train", seed=1, batch_size=2, payload=[item.to_dict() for item in items])
    results = run_batch(bench.env, spec, "skill", bench.context(bench.session()), tmp_path)
    assert [r.id for r in results] == [item.id for item in items]


def test_reference_hooks_and_reflect_of_the_base_class() -> None:
    env = Custom({})
    rows: list[dict[str, Any]] = [{"id": str(n), "hard": n % 2, "task_type": "ab"[n // 4]} for n in range(8)]
    items = [{"id": str(n), "reference_text": f"gold {n} " + "x" * 500} for n in range(8)]
    assert env.get_reference_metadata(items[0])["fields"] == ["reference_text"]
    assert len(env.get_reference_metadata(items[0])["preview"]) == 400
    assert env.attach_reference_context(rows, items[:1])[0]["reference_text"].startswith("gold 0")
    assert "reference_text" not in env.attach_reference_context(rows, items[:1])[1]
    chosen = env.select_representative_items(rows, items, n_failures=2, n_successes=1, seed=3)
    kinds = [rows[int(item["id"])] for item in chosen]
    assert [row["hard"] for row in kinds] == [0, 0, 1]
    assert {row["task_type"] for row in kinds[:2]} == {"a", "b"}
    assert chosen == env.select_representative_items(rows, items, n_failures=2, n_successes=1, seed=3)
    assert env.reflect([], "", "") is None
    assert not overrides_reflect(env)
    assert env.get_dataloader() is None
    assert env.get_error_minibatch_prompt() is None
