"""Whole runs in every update mode and with every learning-rate control."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of, write_data

from skillopt.config.resolve import resolve
from skillopt.engine import setup
from skillopt.engine.trainer import train
from skillopt.errors import BudgetExceededError
from skillopt.scoring import Score
from skillopt.types import JsonObject

REWRITE = {"skill_update_mode": "rewrite_from_suggestions"}
FULL = {"skill_update_mode": "full_rewrite_minibatch"}
AUTONOMOUS = {"lr_control_mode": "autonomous"}

FRONT = "---\nname: minerals\n---\n"
SLOW = "<!-- SLOW_UPDATE_START -->\nStay calm.\n<!-- SLOW_UPDATE_END -->"
APPENDIX = "<!-- APPENDIX_START -->\n## Execution Notes Appendix\n\n- Read twice.\n<!-- APPENDIX_END -->"


def rules(topics: Any) -> str:
    return "".join(f"- Rule {topic}: say its secret.\n" for topic in sorted(set(topics)))


def stage_of(request: Mapping[str, Any]) -> str:
    system, user = text_of(request, "system"), text_of(request, "user")
    if request["model"] == "target-model" or "Reply with: ok" in user:
        return "other"
    if "Decide how many of them" in system:
        return "lr_autonomous"
    if "selected_indices" in system:
        return "ranking"
    if "Trajectories (" in user:
        return "analyst"
    return "rewrite" if "Write that version." in system else "merge"


def answer_in_mode(request: Mapping[str, Any]) -> str:
    """The optimizer of the world, which replies in the shape that its system prompt asks for."""
    system, user = text_of(request, "system"), text_of(request, "user")
    stage = stage_of(request)
    if stage == "lr_autonomous":
        reply = {"learning_rate": 1, "reasoning": "slowly", "confidence": "high", "risk_notes": ["none"]}
        return json.dumps(reply)
    if stage in ("other", "ranking") or (stage != "rewrite" and '"edits"' in system):
        return answer(request)
    known = re.findall(r"Rule (\w+): say", user)
    seen = re.findall(r"about (\w+)\?", user.split("Trajectories (")[1]) if stage == "analyst" else []
    if stage == "rewrite":
        topics = [*known, *re.findall(r"Add the rule of (\w+)", user)]
        return json.dumps(
            {"reasoning": "r", "change_summary": ["more rules"], "new_skill": "# Rules\n" + rules(topics)}
        )
    if "revise_suggestions" in system:
        topics = [*seen, *re.findall(r"Add the rule of (\w+)", user)]
        rows = [
            {"type": "ADD-RULE", "title": t, "instruction": f"Add the rule of {t}.", "priority_hint": None}
            for t in sorted(set(topics))
        ]
        patch: JsonObject = {"reasoning": "gaps", "revise_suggestions": rows}
    else:
        row = {"title": "all", "change_summary": "one text", "new_skill": "# Rules\n" + rules([*known, *seen])}
        patch = {"reasoning": "gaps", "skill_candidates": [row]}
    return json.dumps({"patch": patch, "failure_summary": []} if stage == "analyst" else patch)


def run(world: World, optimizer: Mapping[str, Any], **sections: Mapping[str, Any]) -> JsonObject:
    room = {"model": {"openai_compatible_max_tokens": 100_000}}
    given = {"train": {"num_epochs": 1}, "evaluation": {"eval_test": False}, **room, **sections}
    return train(resolve(world.config(optimizer=optimizer, **given)))


def history(root: Path) -> Any:
    return [
        {key: value for key, value in record.items() if key not in ("timing", "wall_time_s")}
        for record in json.loads((root / "history.json").read_text(encoding="utf-8"))
    ]


def read(world: World, path: str) -> Any:
    return json.loads((world.out_root / path).read_text(encoding="utf-8"))


def asked(world: World, stage: str) -> list[Mapping[str, Any]]:
    return [body for body in world.requests("optimizer-model") if stage_of(body) == stage]


def test_rewriting_from_suggestions_learns_the_rules(make_world: Callable[..., World]) -> None:
    world = make_world(answer_in_mode)
    summary = run(world, REWRITE, train={"num_epochs": 2})
    assert summary["best_selection_hard"] == 1.0
    first, *_ = history(world.out_root)
    assert first["action"] == "accept_new_best"
    assert (first["edit_budget"], first["n_edits_ranked"]) == (2, 2)
    assert first["rewrite_change_summary"] == ["more rules"]
    assert "edit_apply_summary" not in first
    merged = read(world, "steps/step_0001/merged_patch.json")
    assert merged["revise_suggestions"][0]["type"] == "add_rule"
    result = read(world, "steps/step_0001/rewrite_result.json")
    candidate = (world.out_root / "steps/step_0001/candidate_skill.md").read_text(encoding="utf-8")
    assert result["new_skill"] == candidate
    call = asked(world, "rewrite")[0]
    assert call["max_tokens"] == 64000
    assert "Suggestions (2)" in text_of(call, "user")
    assert first["optimizer_calls"] == first["tokens"]["calls"] - first["rollout_n"] - 12
    assert (first["optimizer_failed"], first["optimizer_repaired"]) == (0, 0)


def test_full_rewrites_are_merged_and_taken_whole(make_world: Callable[..., World]) -> None:
    world = make_world(answer_in_mode)
    summary = run(world, {**FULL, "lr_control_mode": "fixed"})
    assert summary["best_selection_hard"] == 1.0
    first, *_ = history(world.out_root)
    assert (first["edit_budget"], first["lr_control_mode"]) == (None, "none")
    assert first["n_edits_merged"] == first["n_edits_ranked"] == 1
    assert not asked(world, "ranking")
    assert not asked(world, "rewrite")
    result = read(world, "steps/step_0001/full_rewrite_result.json")
    assert result["selected_candidate"]["change_summary"] == ["one text"]
    assert list(result["merged_patch"])[1] == "skill_candidates"
    assert {call["max_tokens"] for call in [*asked(world, "analyst"), *asked(world, "merge")]} == {64000}
    assert "exactly one complete new text" in text_of(asked(world, "analyst")[0], "user")


@pytest.mark.parametrize("mode", [REWRITE, FULL])
def test_regions_and_front_matter_survive_a_rewrite_and_are_never_shown(
    make_world: Callable[..., World], mode: dict[str, Any]
) -> None:  # defect 11
    def meddling(request: Mapping[str, Any]) -> str:
        reply = json.loads(text) if (text := answer_in_mode(request)).startswith("{") else None
        if stage_of(request) == "rewrite" and reply is not None:
            reply["new_skill"] = f"{FRONT}{reply['new_skill']}{SLOW.replace('calm', 'wild')}"
        return text if reply is None else json.dumps(reply)

    world = make_world(meddling)
    start = world.root / "start.md"
    start.write_bytes(f"{FRONT}# Rules\n\n- Be brief.\n\n{SLOW}\n\n{APPENDIX}\n".encode())
    run(world, mode, env={"skill_init": str(start)})
    best = (world.out_root / "best_skill.md").read_bytes().decode()
    assert "- Rule amber: say" in best
    assert best.startswith(FRONT)
    assert best.count("name: minerals") == best.count("SLOW_UPDATE_START") == 1
    assert SLOW in best
    assert APPENDIX in best
    shown = "".join(text_of(b, "user").split("## Trajectories")[0] for b in world.requests("optimizer-model"))
    assert "Be brief" in shown
    assert not any(secret in shown for secret in ("Stay calm", "Read twice", "minerals", "SLOW_UPDATE"))


@pytest.mark.parametrize("reply", ["no", '{"new_skill": " "}', '{"new_skill": "<!-- SLOW_UPDATE_START -->"}'])
def test_a_rewrite_without_a_text_skips_the_step(make_world: Callable[..., World], reply: str) -> None:
    world = make_world(lambda request: reply if stage_of(request) == "rewrite" else answer_in_mode(request))
    summary = run(world, REWRITE)
    records = history(world.out_root)
    assert [record["action"] for record in records] == ["skip_no_rewrite"] * 3
    assert summary["total_skips"] == 3
    assert records[0]["rewrite_error"]
    assert records[0]["optimizer_failed"] == (0 if "SLOW" in reply else 1)
    assert not any((world.out_root / "steps").rglob("selection_eval"))
    assert (world.out_root / "steps/step_0001/candidate_skill.md").read_text(encoding="utf-8") == ""
    assert "SKIP_NO_REWRITE" in text_of(asked(world, "analyst")[-1], "user")


def test_no_candidate_left_after_merging_skips_the_step(make_world: Callable[..., World]) -> None:
    empty = json.dumps({"reasoning": "", "skill_candidates": []})
    world = make_world(lambda request: empty if stage_of(request) == "merge" else answer_in_mode(request))
    run(world, FULL)
    assert {record["action"] for record in history(world.out_root)} == {"skip_no_rewrite"}
    assert read(world, "steps/step_0001/full_rewrite_result.json")["selected_candidate"] is None


def test_a_rewrite_that_repeats_the_skill_is_not_evaluated(make_world: Callable[..., World]) -> None:
    same = json.dumps({"new_skill": "# Rules\n\n\n"})
    world = make_world(lambda request: same if stage_of(request) == "rewrite" else answer_in_mode(request))
    start = world.root / "start.md"
    start.write_text("# Rules\n", encoding="utf-8")
    run(world, REWRITE, env={"skill_init": str(start)})
    assert {record["action"] for record in history(world.out_root)} == {"no_change"}


def test_a_rewrite_that_loses_half_of_the_text_is_pointed_out(make_world: Callable[..., World]) -> None:  # C056
    world = make_world(answer_in_mode)
    start = world.root / "start.md"
    start.write_text("# Rules\n\n" + "- Think before you answer, and think again.\n" * 40, encoding="utf-8")
    run(world, REWRITE, env={"skill_init": str(start)})
    first, second, _ = history(world.out_root)
    assert first["shrank"] is True
    assert "shrank" not in second
    assert "less than half as long" in (world.out_root / "events.jsonl").read_text(encoding="utf-8")


def test_rejected_suggestions_are_remembered_for_the_whole_run(make_world: Callable[..., World]) -> None:
    def harmful(request: Mapping[str, Any]) -> str:
        if stage_of(request) == "rewrite":
            return json.dumps({"new_skill": f"# Rules\n- Hum {len(text_of(request, 'user'))} times.\n"})
        return answer_in_mode(request)

    world = make_world(harmful)
    run(world, REWRITE, train={"num_epochs": 2})
    assert {record["action"] for record in history(world.out_root)} == {"reject"}
    digest = read(world, "steps/step_0001/trajectory_digest.json")
    assert {"type", "title", "instruction"} <= set(digest["rejected_edits"][0])
    last = text_of(asked(world, "analyst")[-1], "user")
    memory = last.split("Earlier steps of this run")[1]
    assert all(f"Step {step}: REJECT" in memory for step in range(1, 6))
    assert "add_rule: amber - Add the rule of amber." in memory


def test_the_optimizer_decides_the_count(make_world: Callable[..., World]) -> None:
    world = make_world(answer_in_mode)
    run(world, AUTONOMOUS)
    records = history(world.out_root)
    assert [record["edit_budget"] for record in records[:2]] == [1, 1]
    assert all(record["n_edits_ranked"] == 1 for record in records[:2])
    decision = read(world, "steps/step_0001/lr_decision.json")
    assert decision["learning_rate"] == decision["raw_learning_rate"] == 1
    assert (decision["confidence"], decision["fallback"], decision["clamped"]) == ("high", False, False)
    assert "slowly" in decision["raw_response"]
    lines = (world.out_root / "lr_history.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]
    assert records[0]["lr_decision"] == {k: v for k, v in decision.items() if k != "raw_response"}
    user = text_of(asked(world, "lr_autonomous")[0], "user")
    assert "Mean hard score: 0.000000" in user
    assert "Tasks tried with the skill: 8" in user


def test_without_an_answer_the_schedule_decides(make_world: Callable[..., World]) -> None:  # defect 9
    world = make_world(lambda request: "no" if stage_of(request) == "lr_autonomous" else answer_in_mode(request))
    run(world, {**AUTONOMOUS, "learning_rate": 3, "min_learning_rate": 1, "lr_scheduler": "linear"})
    records = history(world.out_root)
    assert records[0]["edit_budget"] == records[0]["lr_decision"]["learning_rate"] == 2
    assert records[0]["lr_decision"]["fallback"] is True
    assert records[0]["optimizer_failed"] == 1
    assert "lr_fallback" in (world.out_root / "events.jsonl").read_text(encoding="utf-8")


def test_a_decision_for_nothing_skips_the_step_and_is_remembered(make_world: Callable[..., World]) -> None:
    none = json.dumps({"learning_rate": 0, "reasoning": "all doubtful"})
    world = make_world(lambda request: none if stage_of(request) == "lr_autonomous" else answer_in_mode(request))
    summary = run(world, AUTONOMOUS)
    assert {record["action"] for record in history(world.out_root)} == {"skip_no_budget"}
    assert summary["total_skips"] == 3
    assert not asked(world, "ranking")
    assert "SKIP_NO_BUDGET" in text_of(asked(world, "analyst")[-1], "user")


@pytest.mark.parametrize("optimizer", [{"lr_control_mode": "none"}, {"lr_scheduler": "autonomous"}])
def test_without_a_limit_everything_is_applied(make_world: Callable[..., World], optimizer: dict[str, Any]) -> None:
    world = make_world(answer_in_mode)
    run(world, optimizer)
    first, *_ = history(world.out_root)
    assert first["n_edits_ranked"] == first["n_edits_merged"] > 2
    assert first["edit_budget"] == (None if "lr_control_mode" in optimizer else 999)
    assert not asked(world, "ranking")


def test_replies_that_needed_a_repair_are_counted(make_world: Callable[..., World]) -> None:
    def clumsy(request: Mapping[str, Any]) -> str:
        first_try = "could not be used" not in text_of(request, "user")
        return "Well." if stage_of(request) == "analyst" and first_try else answer_in_mode(request)

    world = make_world(clumsy)
    run(world, {})
    first, *_ = history(world.out_root)
    assert (first["optimizer_repaired"], first["optimizer_failed"]) == (2, 0)
    assert first["optimizer_calls"] == 2 * 2 + 1 + 1


@pytest.mark.parametrize(("threshold", "failed"), [(1.0, 8), (0.5, 0)])
def test_the_threshold_tells_what_is_a_failure(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, threshold: float, failed: int
) -> None:  # C068
    world = make_world(answer_in_mode)
    config = resolve(
        world.config(train={"num_epochs": 1}, gradient={"success_threshold": threshold, "failure_only": True})
    )
    adapter = setup.prepare(config)
    monkeypatch.setattr(adapter, "score", lambda _item, _answer: Score(0.5, 0.5))
    train(config, adapter=adapter)
    digest = read(world, "steps/step_0001/trajectory_digest.json")
    assert (digest["n_fail"], sum(pattern["count"] for pattern in digest["failure_patterns"])) == (failed, failed)
    assert bool(asked(world, "analyst")) == bool(failed)


@pytest.mark.parametrize("optimizer", [REWRITE, FULL, AUTONOMOUS, {**REWRITE, **AUTONOMOUS}])
def test_a_stopped_run_ends_as_if_never_stopped(make_world: Callable[..., World], optimizer: dict[str, Any]) -> None:
    world = make_world(answer_in_mode)
    write_data(world.root / "data", train=12, val=6, test=0)
    whole = world.root / "whole"
    run(world, optimizer, env={"out_root": str(whole)})
    stops = 0
    for most in range(14, 400, 11):
        try:
            run(world, optimizer, budget={"max_calls": most})
            break
        except BudgetExceededError:
            stops += 1
    assert stops >= 2
    assert (whole / "best_skill.md").read_bytes() == (world.out_root / "best_skill.md").read_bytes()
    assert history(whole) == history(world.out_root)
    for stage in ("merge", "ranking", "lr_autonomous", "rewrite"):  # defect 41: no finished reply is asked for again
        counts = Counter(json.dumps(call["messages"]) for call in asked(world, stage))
        assert set(counts.values()) <= {2}, stage
    if AUTONOMOUS.items() <= optimizer.items():
        assert (whole / "lr_history.jsonl").read_bytes() == (world.out_root / "lr_history.jsonl").read_bytes()


def test_an_environment_can_bring_its_own_rewrite_prompt(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(answer_in_mode)
    package = world.root / "own_env_of_a_test"
    (package / "prompts").mkdir(parents=True)
    (package / "__init__.py").write_text("class Own:\n    pass\n", encoding="utf-8")
    (package / "prompts" / "rewrite_skill.md").write_text("Write that version. OWN WORDS", encoding="utf-8")
    monkeypatch.syspath_prepend(str(world.root))
    own = __import__("own_env_of_a_test").Own
    config = resolve(world.config(optimizer=REWRITE, train={"num_epochs": 1}))
    adapter = setup.prepare(config)
    monkeypatch.setattr(adapter, "__class__", type("Own", (type(adapter),), {"__module__": own.__module__}))
    train(config, adapter=adapter)
    assert {text_of(call, "system") for call in asked(world, "rewrite")} == {"Write that version. OWN WORDS"}
