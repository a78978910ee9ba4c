"""The end of an epoch: what is compared, asked, scored, kept and repeated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from worlds import TOPICS, World, answer, text_of

from skillopt.config.resolve import resolve
from skillopt.engine import setup
from skillopt.engine.epoch import EpochEnd, Memory, end_epoch, load_memory, render_meta_context
from skillopt.engine.gating import gate_score
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.state import Progress, Standing
from skillopt.envs.base import EnvAdapter
from skillopt.errors import BudgetExceededError
from skillopt.skill.document import Skill
from skillopt.skill.regions import append_to_appendix_field, extract_appendix_notes, extract_slow_update_field
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_text, read_text

GUIDANCE = "- Rule amber: say its secret."
NOTES = "- Short rules are followed."
ON = {"use_slow_update": True, "use_meta_skill": True, "slow_update_samples": 12}


def rules(*topics: str) -> Skill:
    return Skill.parse("".join(f"- Rule {topic}: say its secret.\n" for topic in topics))


BEFORE, NOW = rules("amber", "basalt"), rules("basalt", "cobalt")


def optimizer(request: Mapping[str, Any], guidance: str = GUIDANCE, notes: str = NOTES) -> str:
    """The world, with an optimizer that also answers at the end of an epoch."""
    system = text_of(request, "system")
    for key, text in (("slow_update_content", guidance), ("meta_skill_content", notes)):
        if key in system:
            return json.dumps({"reasoning": "seen", key: text})
    return answer(request)


@contextmanager
def opened(world: World, optimizer_keys: Mapping[str, Any] = ON, **sections: Mapping[str, Any]) -> Iterator[Kit]:
    config = resolve(world.config(optimizer=optimizer_keys, **sections))
    with setup.open_kit(config, setup.prepare(config)) as kit:
        yield kit


def standing(kit: Kit, skill: Skill, path: Path) -> Standing:
    atomic_write_text(path, skill.text)
    scores = kit.evaluate(skill, SELECTION, purpose="selection", out_dir=kit.folder.root / "scores")
    score = gate_score(kit, (scores.hard, scores.soft), skill)
    return Standing(skill, score, "step_0006", kit.folder.relative(path), scores)


def two_epochs(kit: Kit, before: Skill = BEFORE, now: Skill = NOW, best: Skill | None = None) -> Progress:
    """The progress at the end of epoch 2: epoch 1 ended with `before`, and the steps have made `now` of it."""
    atomic_write_text(kit.folder.epoch_skill(1), before.text)
    current = standing(kit, now, kit.folder.skill(6))
    champion = current if best is None else standing(kit, best, kit.folder.skill(5))
    return Progress(6, current, champion, 6 if best is None else 5, (0.0, 0.0), epochs_closed=1)


SECOND, FIRST_MEMORY = EpochEnd(2, 3, 7), Memory(slow_base=1, meta_base=1)


def close(kit: Kit, progress: Progress, memory: Memory = FIRST_MEMORY, epoch: int = 2) -> tuple[Progress, Memory]:
    return end_epoch(kit, progress, EpochEnd(epoch, 3, 7), memory)


def result_of(kit: Kit, name: str = "slow_update", epoch: int = 2) -> JsonObject:
    file = {"slow_update": "slow_result.json", "meta_skill": "meta_skill_result.json"}[name]
    value: JsonObject = json.loads(read_text(kit.folder.root / name / f"epoch_{epoch:02d}" / file))
    return value


def asked(world: World, key: str) -> list[str]:
    return [text_of(b, "user") for b in world.requests("optimizer-model") if key in text_of(b, "system")]


def test_the_first_epoch_leaves_the_skill_and_its_score_alone(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        before = replace(two_epochs(kit), epochs_closed=0)
        calls = len(world.server.requests)
        after, memory = close(kit, before, Memory(), epoch=1)
        assert len(world.server.requests) == calls
        assert (after.current, after.best, after.epochs_closed) == (before.current, before.best, 1)
        assert result_of(kit, epoch=1)["action"] == "inject_placeholder"
        assert result_of(kit, epoch=1)["origin"] == "slow_update_placeholder_epoch_01"
        assert result_of(kit, "meta_skill", 1)["action"] == "skip_first_epoch"
        assert read_text(kit.folder.epoch_skill(1)) == NOW.text
        assert memory == load_memory(kit, 1) == Memory(slow_base=1, meta_base=1)


def test_guidance_becomes_current_with_the_score_that_it_has(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        before = two_epochs(kit)
        after, memory = close(kit, before)
        assert before.current.score == pytest.approx(2 / 6)
        assert after.current.score == pytest.approx(3 / 6)
        assert after.current.scores is not None
        assert after.current.scores.skill_hash == after.current.skill.hash
        assert (after.current.origin, after.current.path) == ("slow_update_epoch_02", "skills/epoch_02.md")
        assert extract_slow_update_field(after.current.skill.text) == GUIDANCE
        assert (after.best, after.best_step, after.step) == (before.best, 6, 6)
        slow, meta = result_of(kit), result_of(kit, "meta_skill")
        wanted = {
            "epoch": 2,
            "action": "force_accept",
            "reasoning": "seen",
            "slow_update_content": GUIDANCE,
            "compared_with_epoch": 1,
            "n_pairs": 12,
            "prev_hard": round(4 / 12, 6),
            "curr_hard": round(4 / 12, 6),
            "candidate_hash": after.current.skill.hash,
            "update_origin": "slow_update_momentum",
            "selection_hard": 0.5,
            "candidate_gate_score": 0.5,
            "errors": [],
        }
        assert {key: slow[key] for key in wanted if key not in ("prev_hard", "curr_hard")} == {
            key: value for key, value in wanted.items() if key not in ("prev_hard", "curr_hard")
        }
        assert sum(slow["pair_categories"].values()) == 12
        assert slow["pair_categories"]["regressed"] > 0
        assert slow["pair_categories"]["improved"] > 0
        assert slow["prev_hard"] == round(
            (slow["pair_categories"]["regressed"] + slow["pair_categories"]["stable_success"]) / 12, 6
        )
        assert meta["action"] == "write_meta_skill"
        assert meta["meta_skill_content"] == NOTES
        assert memory == load_memory(kit, 2) == Memory(NOTES, "", 2, 2)
        assert render_meta_context(memory) == NOTES
        # one comparison for both, every rollout counted once
        assert slow["tokens"]["calls"] == 24 + 1 + 12
        assert meta["tokens"]["calls"] == 1
        folder = kit.folder.slow_update(2)
        made = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
        assert made == {
            "slow_result.json",
            "candidate_skill.md",
            "comparison_pairs.json",
            "rollout_prev/results.jsonl",
            "rollout_curr/results.jsonl",
            "selection_eval/results.jsonl",
        }
        assert read_text(kit.folder.epoch_skill(2)) == after.current.skill.text
        assert read_text(kit.folder.skill(6)) == NOW.text  # the text before the update is not lost


def test_the_prompts_hold_both_skills_and_no_item_id(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        close(kit, two_epochs(kit), replace(FIRST_MEMORY, meta_skill="- Earlier notes."))
    (slow,), (meta,) = asked(world, "slow_update_content"), asked(world, "meta_skill_content")
    for text in (slow, meta):
        assert BEFORE.body.strip() in text
        assert NOW.body.strip() in text
        assert "12 tasks:" in text
    assert "- Earlier notes." in meta
    assert GUIDANCE not in meta.split("## The skill now")[1].split("##")[0]  # the skill as it was before this update


def test_a_forced_update_that_harms_has_its_own_score_and_the_best_stays(
    make_world: Callable[..., World],
) -> None:  # C082, C083
    def spoiled(request: Mapping[str, Any]) -> str:
        if request["model"] == "target-model" and "hum" in text_of(request, "system"):
            return "hum"
        return optimizer(request, guidance="- Always hum.")

    world = make_world(spoiled)
    with opened(world, {**ON, "use_meta_skill": False}, evaluation={"gate_metric": "soft"}) as kit:
        before = two_epochs(kit)
        after, _ = close(kit, before)
        assert after.current.score == 0.0
        assert (after.best, after.best_step) == (before.best, before.best_step)
        seen = world.requests("target-model")
        again = kit.evaluate(after.current.skill, SELECTION, purpose="again", out_dir=kit.folder.root / "again")
        assert (again.hard, again.soft) == (0.0, 0.0)
        assert len(world.requests("target-model")) == len(seen)
        hummed = [b for b in seen if "hum" in text_of(b, "system") and "[val-" in text_of(b, "user")]
        assert len(hummed) == 12


@pytest.mark.parametrize(("guidance", "action"), [("- Always hum.", "reject"), (GUIDANCE, "accept_new_best")])
def test_the_gate_decides_when_it_is_asked(
    make_world: Callable[..., World], guidance: str, action: str
) -> None:  # C082
    def reply(request: Mapping[str, Any]) -> str:
        if request["model"] == "target-model" and "hum" in text_of(request, "system"):
            return "hum"
        return optimizer(request, guidance=guidance)

    world = make_world(reply)
    with opened(world, {**ON, "slow_update_gate_with_selection": True}) as kit:
        before = two_epochs(kit)
        after, memory = close(kit, before)
        assert result_of(kit)["action"] == action
        assert memory == load_memory(kit, 2)
        if action == "reject":
            assert (after.current, after.best) == (before.current, before.best)
            assert "- Always hum." in memory.refused
            assert read_text(kit.folder.epoch_skill(2)) == NOW.text
        else:
            assert after.current == after.best
            assert (after.best.origin, after.best_step, after.best.path) == (
                "slow_update_epoch_02", 6, "skills/epoch_02.md",
            )  # fmt: skip
            assert memory.refused == ""


def test_an_epoch_that_changed_nothing_calls_nobody(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        before = two_epochs(kit, now=Skill.parse(BEFORE.text.replace("\n", " \n") + "\n"))
        calls = len(world.server.requests)
        after, memory = close(kit, before, replace(FIRST_MEMORY, meta_skill=NOTES))
        assert len(world.server.requests) == calls
        assert after.current == before.current
        assert result_of(kit)["action"] == result_of(kit, "meta_skill")["action"] == "no_change"
        assert result_of(kit)["tokens"]["calls"] == result_of(kit, "meta_skill")["tokens"]["calls"] == 0
        assert memory == Memory(NOTES, "", 2, 2)


def test_guidance_that_is_there_already_is_not_scored_again(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        first, memory = close(kit, two_epochs(kit))
        text = first.current.skill.text.replace("cobalt", "emerald")
        progress = replace(first, current=standing(kit, Skill.parse(text), kit.folder.skill(9)), step=9)
        after, memory = close(kit, progress, memory, epoch=3)
        assert result_of(kit, epoch=3)["action"] == "no_change"
        assert after.current == progress.current
        assert not (kit.folder.slow_update(3) / "selection_eval").exists()


@pytest.mark.parametrize("broken", ["I would rather not.", '{"slow_update_content": "", "meta_skill_content": ""}'])
def test_what_failed_is_done_at_the_next_end_with_the_notes_kept(make_world: Callable[..., World], broken: str) -> None:
    state = {"broken": True}

    def reply(request: Mapping[str, Any]) -> str:
        system = text_of(request, "system")
        if state["broken"] and ("slow_update_content" in system or "meta_skill_content" in system):
            return broken
        return optimizer(request, notes="- Newer notes.")

    world = make_world(reply)
    with opened(world) as kit:
        before = two_epochs(kit)
        after, memory = close(kit, before, replace(FIRST_MEMORY, meta_skill=NOTES))
        assert result_of(kit)["action"] == result_of(kit, "meta_skill")["action"] == "no_content"
        assert after.current == before.current
        assert not (kit.folder.slow_update(2) / "candidate_skill.md").exists()
        assert memory == Memory(NOTES, "", 1, 1)
        state["broken"] = False
        after, memory = close(kit, replace(after, step=9), memory, epoch=3)  # the epoch itself changed nothing
        assert result_of(kit, epoch=3)["action"] == "force_accept"
        assert result_of(kit, epoch=3)["compared_with_epoch"] == 1
        assert memory == Memory("- Newer notes.", "", 3, 3)


def test_items_that_failed_are_in_no_pair(make_world: Callable[..., World]) -> None:
    def reply(request: Mapping[str, Any]) -> Any:
        if "[train-0]" in text_of(request, "user") and "cobalt" in text_of(request, "system"):
            return {"choices": []}  # a body that is no completion
        return optimizer(request)

    world = make_world(reply)
    sections = {"model": {"retries": 0}, "env": {"item_retries": 0, "max_error_rate": 0.1}}
    with opened(world, {**ON, "slow_update_samples": 24}, **sections) as kit:
        close(kit, two_epochs(kit))
        assert result_of(kit)["n_pairs"] == 23
        pairs = json.loads(read_text(kit.folder.slow_update(2) / "comparison_pairs.json"))
        assert "train-0" not in {pair["id"] for pair in pairs}


def test_the_policy_changed_tops_up_in_batches(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    keys = {**ON, "slow_update_samples": 5, "longitudinal_pair_policy": "changed"}
    with opened(world, keys) as kit:
        close(kit, two_epochs(kit))
        folder = kit.folder.slow_update(2)
        shown = json.loads(read_text(folder / "comparison_pairs.json"))
        seen = json.loads(read_text(folder / "comparison_pairs_all.json"))
        assert len(shown) == 5
        assert {pair["category"] for pair in shown} <= {"improved", "regressed"}
        assert len(seen) % 5 == 0
        assert len({pair["id"] for pair in seen}) == len(seen) > 5
        batches = sorted(path.name for path in (folder / "rollout_prev" / "topup").iterdir())
        assert batches == [f"batch_{n:02d}" for n in range(1, len(seen) // 5)]


def test_the_policy_changed_with_nothing_changed_asks_nothing(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    keys = {**ON, "slow_update_samples": 2, "longitudinal_pair_policy": "changed"}
    with opened(world, keys) as kit:
        _, memory = close(kit, two_epochs(kit, now=Skill.parse(BEFORE.text + "- Be polite.\n")))
        assert result_of(kit)["action"] == "no_content"
        assert result_of(kit)["errors"] == ["no item to compare"]
        assert sum(result_of(kit)["pair_categories"].values()) == 2 * (1 + 4)
        assert memory == FIRST_MEMORY
    assert not asked(world, "slow_update_content")


class OwnTasks(EnvAdapter):
    """An environment without a loader: it draws its own tasks, one for each topic of the world."""

    def build_train_env(self, batch_size: int, seed: int, **_kw: Any) -> Any:
        return [f"train-{seed}-{n}" for n in range(batch_size)]

    def build_eval_env(self, env_num: int, split: str, _seed: int, **_kw: Any) -> Any:
        return [f"{split}-{n}" for n in range(env_num or 6)]

    def rollout(self, env_manager: Any, skill_content: str, _out_dir: str, **_kw: Any) -> list[Any]:
        solved = {task: f"Rule {TOPICS[int(task[-1]) % 6]}" in skill_content for task in env_manager}
        return [{"id": task, "hard": float(ok), "soft": float(ok), "question": task} for task, ok in solved.items()]

    def get_task_types(self) -> list[str]:
        return []


@pytest.mark.parametrize("policy", ["mixed", "changed"])
def test_an_environment_that_draws_its_own_tasks(make_world: Callable[..., World], policy: str) -> None:
    world = make_world(optimizer)
    keys = {**ON, "slow_update_samples": 6, "longitudinal_pair_policy": policy}
    with opened(world, keys) as kit:
        kit = replace(kit, adapter=OwnTasks())
        after, _ = close(kit, two_epochs(kit))
        result = result_of(kit)
        assert (result["prev_hard"], result["curr_hard"], after.current.score) == (0.333333, 0.333333, 0.5)
        assert result["pair_categories"] == {
            "regressed": 1, "persistent_fail": 3, "improved": 1, "stable_success": 1,
        }  # fmt: skip
        assert result["n_pairs"] == (6 if policy == "mixed" else 2)


def test_the_policy_unchanged_shows_the_rest(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world, {**ON, "slow_update_samples": 24, "longitudinal_pair_policy": "unchanged"}) as kit:
        close(kit, two_epochs(kit))
        shown = json.loads(read_text(kit.folder.slow_update(2) / "comparison_pairs.json"))
        assert {pair["category"] for pair in shown} == {"stable_success", "persistent_fail"}
        assert not (kit.folder.slow_update(2) / "rollout_prev" / "topup").exists()


def test_the_meta_skill_alone_makes_its_own_comparison(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world, {**ON, "use_slow_update": False}) as kit:
        before = two_epochs(kit)
        after, memory = close(kit, before, Memory(meta_base=1))
        assert after.current == before.current
        assert not kit.folder.slow_update(2).exists()
        assert (kit.folder.meta_skill(2) / "rollout_prev" / "results.jsonl").exists()
        assert result_of(kit, "meta_skill")["tokens"]["calls"] == 25
        assert memory == load_memory(kit, 2) == Memory(NOTES, "", 0, 2)


def test_with_both_off_only_the_skill_is_kept(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world, {"use_slow_update": False, "use_meta_skill": False}) as kit:
        before = two_epochs(kit)
        calls = len(world.server.requests)
        after, memory = close(kit, before)
        assert len(world.server.requests) == calls
        assert replace(after, wall_time_s=0.0) == replace(before, epochs_closed=2)
        assert read_text(kit.folder.epoch_skill(2)) == NOW.text
        assert memory == FIRST_MEMORY
        assert not kit.folder.slow_update(2).exists()
        assert not kit.folder.meta_skill(2).exists()


def test_guidance_that_names_an_item_is_refused_unscored(make_world: Callable[..., World]) -> None:
    world = make_world(lambda request: optimizer(request, guidance="- For train-3 say feldspar."))
    with opened(world) as kit:
        before = two_epochs(kit)
        after, memory = close(kit, before)
        assert after.current == before.current
        assert result_of(kit)["action"] == "reject_leak"
        assert "train-3" in result_of(kit)["leak_reasons"][0]
        assert memory.refused.startswith("Refused before it was tried")
        assert "train-3" not in memory.refused
        assert memory == load_memory(kit, 2)
        assert not (kit.folder.slow_update(2) / "selection_eval").exists()


def test_the_appendix_stays_beside_the_guidance(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        noted = Skill.parse(append_to_appendix_field(NOW.text, ["Read twice"]))
        after, _ = close(kit, two_epochs(kit, now=noted))
        assert extract_appendix_notes(after.current.skill.text) == ["Read twice"]
        assert after.current.skill.body.strip() == NOW.body.strip()


def test_rollouts_that_are_in_the_store_are_not_paid_again(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        progress = two_epochs(kit)
        close(kit, progress)
        calls = len(world.server.requests)
        again, memory = close(kit, progress)
        assert len(world.server.requests) == calls
        assert memory == Memory(NOTES, "", 2, 2)
        assert again.current.score == 0.5


def test_a_broken_result_file_is_told_and_counts_as_nothing(make_world: Callable[..., World]) -> None:
    world = make_world(optimizer)
    with opened(world) as kit:
        close(kit, two_epochs(kit))
        (kit.folder.slow_update(2) / "slow_result.json").write_text("{", encoding="utf-8")
        assert load_memory(kit, 2) == Memory(NOTES, "", 0, 2)
    assert "slow_update/epoch_02/slow_result.json could not be read" in read_text(kit.folder.events)


def snapshot(root: Path) -> dict[str, Any]:
    """Every file of the epoch's end, without times."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file() and name.startswith(("slow_update", "meta_skill", "skills")):
            found[name] = re.sub(r'"time_s": [\d.e-]+', "", read_text(path))
    return found


@pytest.mark.parametrize("policy", ["mixed", "changed"])
def test_a_stop_anywhere_and_a_second_start_end_the_same(make_world: Callable[..., World], policy: str) -> None:
    keys = {**ON, "slow_update_samples": 5, "longitudinal_pair_policy": policy}
    whole = make_world(optimizer)
    with opened(whole, keys) as kit:
        expected, kept = close(kit, two_epochs(kit))
        files = snapshot(kit.folder.root)
    calls = len(whole.server.requests)

    stopped, stops = make_world(optimizer), 0
    stopped.overrides = {"env": {"out_root": str(stopped.root / "stopped")}}
    for most in range(13, 300, 5):
        try:
            with opened(stopped, keys, budget={"max_calls": most}) as kit:
                after, memory = close(kit, two_epochs(kit))
                break
        except BudgetExceededError:
            stops += 1
    assert stops >= 4
    assert (after.current, after.best, memory) == (expected.current, expected.best, kept)
    assert snapshot(kit.folder.root) == files
    # an item that is under way when the budget ends may be asked for again; nothing that finished is
    assert calls <= len(stopped.server.requests) <= calls + 4 * stops
    questions = [text_of(b, "user") for b in stopped.requests("optimizer-model")]
    assert len(questions) == len(set(questions)) == 2
