"""A whole run against a server on loopback: what it decides, writes, repeats and refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import TOPICS, World, answer, text_of

from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train
from skillopt.errors import (
    AuthError,
    BudgetExceededError,
    ConfigError,
    DataError,
    ModelSetupError,
    ResumeMismatchError,
    RunError,
    RunLockedError,
    SkillFormatError,
    TooManyErrorsError,
)
from skillopt.testing import every, reset, status
from skillopt.types import JsonObject
from skillopt.utils.files import RunLock


def run(world: World, **sections: Mapping[str, Any]) -> JsonObject:
    return train(resolve(world.config(**sections)))


def timeless(value: Any) -> Any:
    """A record without what differs between two runs of the same thing."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("timing", "wall_time_s")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def history(root: Path) -> Any:
    return timeless(json.loads((root / "history.json").read_text(encoding="utf-8")))


def test_a_run_learns_the_rules_and_writes_what_users_expect(world: World) -> None:
    summary = run(world)
    assert summary["baseline_selection_hard"] == 0.0
    assert summary["best_selection_hard"] == summary["final_selection_hard"] == 1.0
    assert summary["baseline_test_hard"] == 0.0
    assert summary["test_hard"] == summary["final_test_hard"] == summary["test_delta_hard"] == 1.0
    skill = (world.out_root / "best_skill.md").read_text(encoding="utf-8")
    assert all(f"- Rule {topic}:" in skill for topic in TOPICS)
    made = {str(path.relative_to(world.out_root)) for path in world.out_root.rglob("*") if path.is_file()}
    assert {
        "config.json",
        "history.json",
        "runtime_state.json",
        "summary.json",
        "best_skill.md",
        "events.jsonl",
        "store.sqlite",
        "skills/skill_v0000.md",
        "skills/skill_v0001.md",
        "steps/step_0001/candidate_skill.md",
        "steps/step_0001/merged_patch.json",
        "steps/step_0001/ranked_edits.json",
        "steps/step_0001/edit_apply_report.json",
        "steps/step_0001/step_record.json",
        "steps/step_0001/trajectory_digest.json",
        "steps/step_0001/rollout/results.jsonl",
        "steps/step_0001/patches/minibatch_fail_000.json",
        "steps/step_0001/selection_eval/results.jsonl",
        "selection_eval_baseline/results.jsonl",
        "test_eval_baseline/summary.json",
        "test_eval/summary.json",
        "test_eval_final/summary.json",
    } <= made
    first, *_ = json.loads((world.out_root / "history.json").read_text(encoding="utf-8"))
    assert first["action"] == "accept_new_best"
    assert first["edit_budget"] == 2
    assert first["edit_apply_summary"] == {"total": 2, "applied": 2, "skipped": 0, "errors": 0}
    assert first["rollout_n"] == 8
    assert first["tokens"]["calls"] > 0
    buckets = json.loads((world.out_root / "test_eval" / "summary.json").read_text(encoding="utf-8"))
    assert buckets["overall"] == {"total": 12, "hard_acc": 1.0}
    assert buckets["amber"] == {"total": 2, "hard_acc": 1.0}


def test_nothing_is_paid_twice(world: World) -> None:
    run(world)
    seen = [json.dumps(body["messages"]) for body in world.requests("target-model")]
    assert len(seen) == len(set(seen))


def test_the_same_run_twice_is_the_same_to_the_byte(make_world: Callable[..., World], tmp_path: Path) -> None:
    world = make_world()
    run(world)
    other = world.root / "second"
    train(resolve(world.config(env={"out_root": str(other)})))
    assert (other / "best_skill.md").read_bytes() == (world.out_root / "best_skill.md").read_bytes()
    assert history(other) == history(world.out_root)


def test_a_finished_run_started_again_calls_nothing(world: World) -> None:  # C161
    first = run(world)
    before = len(world.server.requests)
    assert run(world) == first
    assert len(world.server.requests) == before


def test_more_epochs_go_on_from_a_finished_run(world: World) -> None:
    run(world, train={"num_epochs": 1})
    calls = len(world.requests("target-model"))
    summary = run(world, train={"num_epochs": 2})
    assert summary["total_steps"] == 6
    assert [record["step"] for record in history(world.out_root)] == [1, 2, 3, 4, 5, 6]
    seen = [json.dumps(body["messages"]) for body in world.requests("target-model")]
    assert len(seen) == len(set(seen)) >= calls


def test_a_budget_stops_the_run_and_a_larger_one_ends_it_as_if_never_stopped(world: World) -> None:
    whole = world.root / "whole"
    train(resolve(world.config(env={"out_root": str(whole)})))
    stops = 0
    for most in range(20, 400, 37):
        try:
            summary = run(world, budget={"max_calls": most})
            break
        except BudgetExceededError as error:
            assert error.exit_code == 3
            stops += 1
    assert stops >= 3
    assert summary["test_hard"] == 1.0
    assert (whole / "best_skill.md").read_bytes() == (world.out_root / "best_skill.md").read_bytes()
    assert history(whole) == history(world.out_root)


def test_a_wrong_key_stops_at_the_preflight_and_says_which_setting(make_world: Callable[..., World]) -> None:
    world = make_world(key="right")
    with pytest.raises(AuthError, match="OPENAI_COMPATIBLE_API_KEY") as caught:
        run(world)
    assert "openai_compatible_api_key" in str(caught.value)
    assert len(world.server.requests) == 1


def test_a_server_that_is_down_stops_before_the_first_rollout(world: World) -> None:
    world.server.close()
    with pytest.raises(ModelSetupError, match=r"127\.0\.0\.1"):
        run(world)
    assert not (world.out_root / "selection_eval_baseline").exists()


def test_rate_limits_are_waited_for(make_world: Callable[..., World]) -> None:
    world = make_world(faults={5: status(429, {"Retry-After": "1"}), 9: status(429, {"retry-after-ms": "20"})}.get)
    assert run(world)["test_hard"] == 1.0


def test_broken_connections_change_no_score(make_world: Callable[..., World]) -> None:
    world = make_world(faults=every(10, reset()))
    summary = run(world)
    assert (summary["best_selection_hard"], summary["test_hard"]) == (1.0, 1.0)
    assert summary["best_step"] <= 6


def test_too_many_errors_stop_the_run_and_no_error_becomes_a_score(make_world: Callable[..., World]) -> None:
    broken = {"on": True}

    def sometimes(request: Mapping[str, Any]) -> Any:
        if broken["on"] and "[val-" in text_of(request, "user") and "cobalt" in text_of(request, "user"):
            return {"choices": []}  # a body that is no completion
        return answer(request)

    world = make_world(sometimes)
    with pytest.raises(TooManyErrorsError, match="2 of 12 items"):
        run(world, model={"retries": 0}, env={"item_retries": 0})
    assert not (world.out_root / "runtime_state.json").exists()
    broken["on"] = False
    before = len(world.requests("target-model"))
    assert run(world, model={"retries": 0}, env={"item_retries": 0})["test_hard"] == 1.0
    baseline = [b for b in world.requests("target-model")[before:] if not text_of(b, "system")]
    assert sum("[val-" in text_of(b, "user") for b in baseline) == 2


def test_items_without_a_score_are_left_out_on_both_sides(make_world: Callable[..., World]) -> None:
    def answer_but_one(request: Mapping[str, Any]) -> Any:
        # One item of the selection split can be graded without a skill, and never with one.
        if "[val-0]" in text_of(request, "user") and text_of(request, "system"):
            return {"choices": []}
        return answer(request)

    world = make_world(answer_but_one)
    summary = run(world, model={"retries": 0}, env={"item_retries": 0, "max_error_rate": 0.1})
    assert summary["best_selection_hard"] == 1.0
    assert all(record.get("selection_errors", 1) == 1 for record in history(world.out_root))


def test_an_optimizer_that_is_down_stops_the_run_instead_of_skipping_every_step(
    make_world: Callable[..., World],
) -> None:
    def no_optimizer(request: Mapping[str, Any]) -> Any:
        preflight = "Reply with: ok" in text_of(request, "user")
        if request["model"] == "optimizer-model" and not preflight:
            return "I would rather not."
        return answer(request)

    world = make_world(no_optimizer)
    with pytest.raises(RunError, match="analyst calls failed"):
        run(world)
    state = json.loads((world.out_root / "runtime_state.json").read_text(encoding="utf-8"))
    assert state["last_completed_step"] == 0


def test_an_edit_that_changes_nothing_is_not_evaluated(make_world: Callable[..., World]) -> None:  # C052
    def useless(request: Mapping[str, Any]) -> str:
        if "Trajectories (" in text_of(request, "user"):
            edit = {"op": "delete", "target": "a line that is not there", "content": ""}
            return json.dumps({"batch_size": 4, "patch": {"reasoning": "", "edits": [edit]}})
        return answer(request)

    world = make_world(useless)
    summary = run(world, train={"num_epochs": 1})
    assert {record["action"] for record in history(world.out_root)} == {"no_change"}
    assert summary["total_skips"] == 3
    assert not any((world.out_root / "steps").rglob("selection_eval"))


def test_a_rejected_candidate_leaves_the_skill_as_it_was(make_world: Callable[..., World]) -> None:
    def harmful(request: Mapping[str, Any]) -> str:
        patch = {"reasoning": "", "edits": [{"op": "append", "content": "- Always hum."}]}
        if "Trajectories (" in text_of(request, "user"):
            return json.dumps({"patch": patch})
        return answer(request) if request["model"] == "target-model" else json.dumps(patch)

    world = make_world(harmful)
    summary = run(world, train={"num_epochs": 1})
    assert summary["total_rejects"] == 3
    assert (world.out_root / "best_skill.md").read_text(encoding="utf-8") == ""
    later = [text_of(b, "user") for b in world.requests("optimizer-model")]
    assert any("Always hum" in text for text in later[1:])  # the optimizer hears of what was rejected


def test_the_gate_switched_off_accepts_and_keeps_the_best(make_world: Callable[..., World]) -> None:  # C080
    def harmful_after_all(request: Mapping[str, Any]) -> str:
        user = text_of(request, "user")
        if request["model"] == "target-model" and "hum" in text_of(request, "system"):
            return "hum"
        if "Trajectories (" in user and "Rule" in user.split("Trajectories (")[0]:
            edit = {"op": "append", "content": "- Always hum."}
            return json.dumps({"batch_size": 4, "patch": {"reasoning": "", "edits": [edit]}})
        return answer(request)

    world = make_world(harmful_after_all)
    summary = run(world, train={"num_epochs": 1}, evaluation={"use_gate": False})
    records = history(world.out_root)
    assert [record["action"] for record in records][:2] == ["force_accept", "force_accept"]
    assert records[1]["current_score"] == 0.0
    assert summary["best_step"] == 1
    assert "hum" not in (world.out_root / "best_skill.md").read_text(encoding="utf-8")


def test_score_zero_survives_a_resume(make_world: Callable[..., World]) -> None:  # C154
    world = make_world(lambda request: "ok" if request["model"] == "target-model" else "{}")
    for _ in range(2):
        with pytest.raises(RunError):
            run(world)
    state = json.loads((world.out_root / "runtime_state.json").read_text(encoding="utf-8"))
    assert state["current_score"] == state["best_score"] == 0.0
    baseline = [b for b in world.requests("target-model") if "[val-" in text_of(b, "user")]
    assert len(baseline) == 12


@pytest.mark.parametrize("name", ["history.json", "runtime_state.json"])
def test_a_half_written_file_is_put_aside_and_the_run_goes_on(world: World, name: str) -> None:  # C155
    run(world, train={"num_epochs": 1})
    before = len(world.requests("target-model"))
    records = history(world.out_root)
    path = world.out_root / name
    path.write_text(path.read_text(encoding="utf-8")[:57], encoding="utf-8")
    run(world, train={"num_epochs": 1})
    assert (world.out_root / f"{name}.broken").exists()
    assert history(world.out_root) == records
    assert len(world.requests("target-model")) == before


def test_a_copied_run_goes_on_in_its_new_place(world: World) -> None:  # C158
    with pytest.raises(BudgetExceededError):
        run(world, budget={"max_calls": 60})
    copy = world.root / "copy"
    shutil.copytree(world.out_root, copy)
    shutil.rmtree(world.out_root)
    summary = train(resolve(world.config(env={"out_root": str(copy)})))
    assert summary["test_hard"] == 1.0
    assert not world.out_root.exists()
    seen = [json.dumps(body["messages"]) for body in world.requests("target-model")]
    assert len(seen) - len(set(seen)) <= 4  # at most what was under way when the budget ran out


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"train": {"seed": 8}}, "train.seed: was 7, now 8"),
        ({"model": {"target": "other-model"}}, "other-model"),
        ({"env": {"extract": "all"}}, "env.extract"),
        ({"evaluation": {"gate_metric": "soft"}}, "gate_metric"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused_with_the_difference(
    world: World, sections: dict[str, dict[str, Any]], named: str
) -> None:  # C160
    run(world, train={"num_epochs": 1})
    before = len(world.server.requests)
    merged = {"train": {"num_epochs": 1}}
    for section, keys in sections.items():
        merged[section] = {**merged.get(section, {}), **keys}
    with pytest.raises(ResumeMismatchError, match="new --out_root") as caught:
        run(world, **merged)
    assert named in str(caught.value)
    assert len(world.server.requests) == before


def test_data_edited_during_a_run_are_noticed(world: World) -> None:  # C110
    run(world, train={"num_epochs": 1})
    path = world.root / "data" / "val" / "items.json"
    path.write_text(path.read_text(encoding="utf-8").replace("amber secret", "amber fact"), encoding="utf-8")
    with pytest.raises(ResumeMismatchError, match="data"):
        run(world, train={"num_epochs": 1})


def test_what_may_change_does_not_stop_a_resume(world: World) -> None:
    with pytest.raises(BudgetExceededError):
        run(world, budget={"max_calls": 60})
    summary = run(world, env={"workers": 2, "exec_timeout": 30}, model={"retries": 1, "max_concurrency": 3})
    assert summary["test_hard"] == 1.0


def test_a_patch_file_of_another_batch_is_not_reused(world: World) -> None:  # C157
    stale = world.out_root / "steps" / "step_0001" / "patches" / "minibatch_fail_000.json"
    stale.parent.mkdir(parents=True)
    edit = {"op": "append", "content": "- A rule of another run."}
    stale.write_text(json.dumps({"patch": {"edits": [edit]}, "source_type": "failure"}), encoding="utf-8")
    run(world, train={"num_epochs": 1})
    assert "another run" not in (world.out_root / "best_skill.md").read_text(encoding="utf-8")
    assert "another run" not in stale.read_text(encoding="utf-8")


def test_a_gate_on_very_few_items_is_said_to_be_weak(world: World) -> None:  # C073
    run(world, train={"num_epochs": 0}, evaluation={"sel_env_num": 1, "eval_test": False})
    assert "The selection split has 1 items" in (world.out_root / "events.jsonl").read_text(encoding="utf-8")


def test_a_folder_in_use_is_refused(world: World) -> None:  # C166
    with RunLock(world.out_root), pytest.raises(RunLockedError, match="another run"):
        run(world)
    assert not world.server.requests


def test_a_folder_that_cannot_be_made_is_refused_before_any_call(world: World) -> None:  # C163
    (world.root / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(ConfigError, match="file is a file; name a folder"):
        run(world, env={"out_root": str(world.root / "file" / "run")})
    assert not world.server.requests


def test_wrong_data_are_refused_before_anything_is_made(world: World) -> None:
    path = world.root / "data" / "val" / "items.json"
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="val"):
        run(world)
    assert not world.out_root.exists()


def test_an_empty_test_split_means_no_final_test(world: World) -> None:  # C092
    (world.root / "data" / "test" / "items.json").write_text("[]", encoding="utf-8")
    summary = run(world)
    assert summary["test_hard"] is None
    assert summary["best_selection_hard"] == 1.0


def test_no_secret_is_written_anywhere(make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    import secrets

    key = secrets.token_hex(16)
    world = make_world(key=key)
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", key)
    run(world, train={"num_epochs": 1})
    for path in world.out_root.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
    config = json.loads((world.out_root / "config.json").read_text(encoding="utf-8"))
    assert any(str(v).startswith("set (env OPENAI_COMPATIBLE_API_KEY") for v in config.values())


def test_accumulation_reflects_on_several_batches_with_the_same_skill(world: World) -> None:
    run(world, train={"num_epochs": 1, "accumulation": 2, "batch_size": 6})
    first, second = history(world.out_root)
    assert first["rollout_n"] == second["rollout_n"] == 12
    assert [batch["batch_idx"] for batch in first["accumulation_batches"]] == [0, 1]
    assert (world.out_root / "steps" / "step_0001" / "batch_1" / "rollout" / "results.jsonl").exists()


def test_the_split_of_a_start_that_failed_is_cut_again(world: World) -> None:
    rows = "".join(f"t{n},what is special about amber? {n},amber secret\n" for n in range(12))
    path = world.root / "tasks.csv"
    ratio = {"split_mode": "ratio", "split_ratio": "1:1:1", "data_path": str(path), "task_type_field": ""}
    path.write_text(f"id,question,answer\n{rows}bad,q,\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"'bad'.*holds no answer"):
        run(world, train={"num_epochs": 0}, env=ratio)
    path.write_text(f"id,question,answer\n{rows}", encoding="utf-8")
    run(world, train={"num_epochs": 0}, env=ratio)
    path.write_text(f"id,question,answer\n{rows}more,q,a\n", encoding="utf-8")
    with pytest.raises(DataError, match="the data file has changed"):
        run(world, train={"num_epochs": 0}, env=ratio)


def test_what_is_no_address_is_refused_before_anything_is_made(world: World) -> None:
    with pytest.raises(ConfigError, match=r"config.yaml:\d+: the address of openai_compatible .*'localhost:3'"):
        run(world, model={"openai_compatible_base_url": "localhost:3"})
    assert not world.out_root.exists()


def test_a_skill_with_broken_markers_is_named_with_its_file(world: World) -> None:
    path = world.root / "SKILL.md"
    path.write_text("<!-- SLOW_UPDATE_START -->\n", encoding="utf-8")
    with pytest.raises(SkillFormatError, match=r"SKILL\.md: Line 1"):
        run(world, env={"skill_init": str(path)})


def test_other_settings_are_named_down_to_the_key(world: World) -> None:
    run(world, train={"num_epochs": 0}, evaluation={"eval_test": False})
    with pytest.raises(ResumeMismatchError) as caught:
        run(world, train={"num_epochs": 0}, evaluation={"eval_test": False}, model={"target": "other"})
    assert 'roles.target.model: was "target-model", now "other"' in str(caught.value)


def test_a_folder_with_other_files_is_told_of_and_goes_on(world: World) -> None:
    world.out_root.mkdir()
    (world.out_root / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"holds other files \(notes.txt …\) and no run"):
        run(world, train={"num_epochs": 1})
    run(world, train={"num_epochs": 1})  # now it holds one
    assert (world.out_root / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_file_that_is_no_run_s_is_not_written_over(world: World) -> None:
    world.out_root.mkdir()
    (world.out_root / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"holds no run, but config\.json, which a run would write over"):
        run(world)
    assert not world.server.requests
    assert [path.name for path in world.out_root.iterdir()] == ["config.json"]
