"""Episodes through the real runner and the real game: what the target sees, what is scored, what is an error."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import given_time, until

from skillopt.config.resolve import resolve
from skillopt.datasets.samples import alfworld as samples
from skillopt.engine.setup import prepare
from skillopt.envs.alfworld.adapter import AlfworldEnv
from skillopt.envs.alfworld.simulator import Simulator, SimulatorPool
from skillopt.envs.registry import accepted_keys, make_adapter
from skillopt.envs.runner import run_items
from skillopt.errors import ConfigError, DataError, InterruptedRunError, MissingExtraError, TransientError
from skillopt.gradient.trajectories import fmt_minibatch_trajectories
from skillopt.types import Item, RolloutResult
from skillopt.utils.cancel import CancelToken

SKILL = "# Skill\n\nRule: {braces} stay."

# Stands in for the game where only what is around it matters: nothing ever changes in this room.
EMPTY_ROOM = """
import json, sys
for line in sys.stdin:
    shown = {"observation": "A room. Your task is to: wait.", "actions": ["look"], "won": False, "done": False}
    print(json.dumps(shown), flush=True)
"""


def simulators() -> list[int]:
    """Living simulator processes of this test process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if fields[0] != b"Z" and int(fields[1]) == os.getpid() and b"worker.py" in words:
            found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def shared(games: Path) -> Iterator[AlfworldEnv]:
    env = make(games)
    yield env
    env._pool.close()


@pytest.fixture
def idle(games: Path, tmp_path: Path) -> Iterator[Callable[..., AlfworldEnv]]:
    """Makes environments in whose games nothing happens."""
    script, made = tmp_path / "worker.py", list[AlfworldEnv]()
    script.write_text(EMPTY_ROOM, encoding="utf-8")

    def make_idle(**settings: Any) -> AlfworldEnv:
        made.append(make(games, **settings))
        made[-1]._pool = SimulatorPool(8, lambda: Simulator(script=script))
        return made[-1]

    yield make_idle
    for env in made:
        env._pool.close()


def make(games: Path, **settings: Any) -> AlfworldEnv:
    keys = {"split_mode": "split_dir", "split_dir": str(games), "data_root": str(games), "max_steps": 10, **settings}
    env = make_adapter({"env": "alfworld", **keys})
    env.setup({"env": "alfworld", **keys})
    assert isinstance(env, AlfworldEnv)
    return env


def act(action: str) -> str:
    return f"<think>go on</think><action>{action}</action>"


def walk(env: AlfworldEnv, item: Item) -> Callable[[str, CancelToken], str]:
    """A target that follows the walkthrough of an item."""
    plan = json.loads(env.game_of(item).read_text(encoding="utf-8"))["walkthrough"]
    return lambda prompt, _: act(plan[int(re.findall(r"Step (\d+) of at most", prompt)[0]) - 1])


def only(results: list[RolloutResult]) -> RolloutResult:
    (result,) = results
    return result


def test_an_episode_that_is_done_is_one_full_row(shared: AlfworldEnv, bench: Any) -> None:
    item = shared.all_items()[0]
    result = only(run_items(shared, [item], SKILL, bench.context(bench.session(walk(shared, item)))))
    assert (result.status, result.hard, result.soft, result.fail_reason) == ("ok", 1.0, 1.0, "")
    assert result.task_type == result.extras["instruction_type"] == "pick_and_place_simple"
    assert result.task_description == "bring a book to the shelf."
    assert result.extras["gamefile"] == "games/train/pick_and_place_simple-Book-Shelf/game.tw-pddl"
    assert result.n_turns == len(result.trajectory) == 5
    assert "Parameters: object_target Book" in result.reference_text
    last = result.trajectory[-1]
    assert set(last) == {"step", "action", "reasoning", "env_feedback", "model_response", "reward", "done"}
    assert (last["step"], last["reward"], last["done"], last["reasoning"]) == (5, 10.0, True, "go on")
    assert result.usage.calls == 5


def test_what_is_constant_comes_first_and_the_state_last(shared: AlfworldEnv, bench: Any) -> None:
    item = shared.all_items()[0]
    session = bench.session(walk(shared, item))
    run_items(shared, [item], SKILL, bench.context(session))
    systems = {call.messages[0]["content"] for call in session.seen}
    assert len(systems) == 1
    assert systems.pop().endswith(f"## Skill\n\n{SKILL}")
    first, fourth = session.calls[0], session.calls[3]
    assert first.startswith("Task: bring a book to the shelf.\nStep 1 of at most 10.")
    assert "Welcome to TextWorld" in first
    assert "'inventory'\n" in first
    assert "'help'" not in first
    assert re.findall(r"- Step (\d): saw ", fourth) == ["2", "3"]
    assert "3 taken so far" in fourth
    assert all(len(call.messages) == 2 for call in session.seen)
    assert "Skill" not in shared.messages(item, " ")[0]["content"]


def test_steps_that_run_out_are_a_failure_of_the_target(idle: Callable[..., AlfworldEnv], bench: Any) -> None:
    env = idle(max_steps=2)
    result = only(run_items(env, env.all_items()[:1], "", bench.context(bench.session(lambda *_: act("look")))))
    assert (result.status, result.hard, result.soft, result.n_turns) == ("ok", 0.0, 0.0, 2)
    assert result.fail_reason == "timeout: not done within 2 steps"


def test_w8_a_malformed_reply_is_asked_again_with_the_list_and_then_costs_a_step(
    shared: AlfworldEnv, games: Path, bench: Any
) -> None:
    env = make(games, max_steps=3)
    env._pool = shared._pool  # warm
    replies = iter(["no tags", act("go to shelf 1"), "none", "none again", act("Fly")])
    session = bench.session(lambda *_: next(replies))
    result = only(run_items(env, env.all_items()[:1], "", bench.context(session)))
    assert result.ok
    assert [step["action"] for step in result.trajectory] == ["go to shelf 1", "look", "fly"]
    assert result.trajectory[2]["env_feedback"] == "Nothing happens."
    assert (result.extras["malformed_replies"], result.extras["inadmissible_actions"]) == (3, 1)
    again = session.seen[1].messages
    assert [m["role"] for m in again] == ["system", "user", "assistant", "user"]
    assert again[2]["content"] == "no tags"
    assert "'go to shelf 1'" in again[3]["content"]


def test_w7_w8_an_endpoint_that_is_down_is_an_error_and_never_a_score(
    idle: Callable[..., AlfworldEnv], bench: Any
) -> None:
    def down(prompt: str, _: CancelToken) -> str:
        if "Step 3 " in prompt:
            raise TransientError("connection refused")
        return act("look")

    env = idle(max_steps=4)
    result = only(run_items(env, env.all_items()[:1], "", bench.context(bench.session(down))))
    assert result.status == "error"
    assert "connection refused" in result.error
    session = bench.session(lambda *_: act("look"))
    again = only(run_items(env, env.all_items()[:1], "", bench.context(session)))
    assert (again.status, len(session.calls)) == ("ok", 4)  # the error was not kept


def test_a_crash_of_the_simulator_is_tried_again(
    shared: AlfworldEnv, idle: Callable[..., AlfworldEnv], bench: Any
) -> None:
    shared._pool.close()
    env, crashes = idle(max_steps=2), iter([True])

    def crash_once(*_: Any) -> str:
        if next(crashes, False):
            os.kill(simulators()[0], signal.SIGKILL)
        return act("look")

    session = bench.session(crash_once)
    result = only(run_items(env, env.all_items()[:1], "", bench.context(session)))
    assert (result.status, result.hard, result.n_turns) == ("ok", 0.0, 2)
    assert len(session.calls) == 1 + result.n_turns


def test_w12_a_simulator_that_hangs_is_ended_with_its_item(
    shared: AlfworldEnv, idle: Callable[..., AlfworldEnv], bench: Any
) -> None:
    shared._pool.close()
    env = idle()
    frozen: list[int] = []

    def freeze(*_: Any) -> str:
        frozen.append(simulators()[0])
        os.kill(frozen[-1], signal.SIGSTOP)
        return act("look")

    def hanging(seconds: float) -> str:
        context = bench.context(bench.session(freeze), item_timeout=seconds, item_retries=0)
        result = only(run_items(env, env.all_items()[:1], "", context))
        assert result.error == f"DeadlineError: not finished within {seconds:g} s"
        return result.error

    given_time(hanging, lambda _: bool(frozen), 0.5)
    assert frozen and simulators() == []


def test_w11_an_interrupt_leaves_no_simulator(
    shared: AlfworldEnv, idle: Callable[..., AlfworldEnv], bench: Any
) -> None:
    shared._pool.close()
    env, stop, both = idle(), CancelToken(), threading.Barrier(2)

    def answer(_: str, token: CancelToken) -> str:
        both.wait(60)
        stop.cancel()
        token.wait(60)
        return act("look")

    with pytest.raises(InterruptedRunError):
        run_items(env, env.all_items()[:2], "", bench.context(bench.session(answer), stop=stop))
    assert until(lambda: simulators() == [])


def test_w10_finished_items_are_kept_one_by_one_and_only_under_their_own_settings(
    idle: Callable[..., AlfworldEnv], bench: Any
) -> None:
    env = idle(max_steps=1)
    items = env.all_items()[:2]
    run_items(env, items[:1], "", bench.context(bench.session(lambda *_: act("look"))))
    session = bench.session(lambda *_: act("look"))
    first, _ = run_items(env, items, "", bench.context(session))
    assert len(session.calls) == 1
    assert first.n_turns == 1
    other = idle(max_steps=2)
    session = bench.session(lambda *_: act("look"))
    run_items(other, items[:1], "", bench.context(session))
    assert len(session.calls) == 2
    assert idle(max_steps=2, workers=1, exec_timeout=9).fingerprint() == other.fingerprint()
    assert other.fingerprint() != env.fingerprint()


def test_another_game_under_the_same_name_is_another_item(games: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(games, copy)
    before, moved = make(games), make(copy)
    assert moved.get_dataloader().fingerprint == before.get_dataloader().fingerprint
    assert moved.fingerprint() == before.fingerprint()
    game = moved.game_of(moved.all_items()[0])
    game.write_text(game.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert make(copy).get_dataloader().fingerprint != before.get_dataloader().fingerprint
    assert moved.normalize(dict(moved.all_items()[0].data)) == make(copy).all_items()[0].to_dict()


def test_model_calls_at_the_same_time_are_limited(idle: Callable[..., AlfworldEnv], bench: Any) -> None:
    env, lock, now, most = idle(max_steps=2, max_api_workers=1, workers=2), threading.Lock(), [0], [0]

    def answer(*_: Any) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.02)
        with lock:
            now[0] -= 1
        return act("look")

    run_items(env, env.all_items()[:2], "", bench.context(bench.session(answer), workers=2))
    assert most == [1]


def test_w26_fifty_long_steps_stay_bounded_for_the_analyst(idle: Callable[..., AlfworldEnv], bench: Any) -> None:
    env = idle(max_steps=50)
    chatter = f"<think>{'I wonder about the fridge. ' * 200}</think><action>look</action>"
    result = only(run_items(env, env.all_items()[:1], SKILL * 50, bench.context(bench.session(lambda *_: chatter))))
    assert result.n_turns == 50
    shown = fmt_minibatch_trajectories([result] * 8)
    assert len(shown) < 8 * 6000 * 5
    assert "[step 1 action] look" in shown
    assert "[step 50 obs]" in shown
    assert SKILL not in shown


def test_items_of_all_splits_can_be_joined(idle: Callable[..., AlfworldEnv], bench: Any) -> None:  # W36
    env = idle()
    rows = [row for split in ("train", "valid_seen", "valid_unseen") for row in env.build_eval_env(1, split, 0)]
    assert [row["id"] for row in rows] == ["train:0000", "val:0000", "test:0000"]
    session = bench.session(lambda *_: act("look"))
    results = env.rollout(rows, "", "", context=bench.context(session))
    assert [row["id"] for row in results] == ["train:0000", "val:0000", "test:0000"]
    assert env.get_task_types() == [row["task_type"] for row in samples.items()["train"]]


def test_w31_keys_are_the_environments_own_and_the_limit_holds(games: Path) -> None:
    assert {"max_steps", "workers", "max_api_workers", "data_root", "limit"} <= accepted_keys("alfworld")
    assert not {"max_turns", "scoring", "prompt"} & accepted_keys("alfworld")
    assert [item.id for item in make(games, limit=1).all_items()] == ["train:0000", "val:0000", "test:0000"]
    with pytest.raises(ConfigError, match=r"env\.max_steps"):
        make(games, max_steps=0)


def test_w6_a_game_outside_the_data_folder_is_refused_before_any_call(games: Path, tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        rows = [{"id": f"{split}/../../0", "gamefile": "../outside/game.tw-pddl"}]
        (tmp_path / split).mkdir()
        (tmp_path / split / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"gamefile '\.\./outside/game\.tw-pddl' leads out of the data folder"):
        make(tmp_path)


def test_missing_games_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("textworld", reason='needs the game library: pip install "skillopt[alfworld]"')
    samples.write_items(tmp_path)
    with pytest.raises(
        DataError, match=r"18 of 18 game files are missing.*run: skillopt data samples alfworld"
    ) as caught:
        make(tmp_path)
    assert caught.value.exit_code == 2
    for split in ("train", "val", "test"):
        rows = [{"id": f"{split}:0000", "gamefile": "json_2.1.1/t/trial_T1/game.tw-pddl", "task_type": "x"}]
        (tmp_path / split / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match=r"in .*/data; run alfworld-download and set ALFWORLD_DATA"):
        make(tmp_path, data_root="")


def test_a_missing_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "textworld" else found(name))
    samples.write_items(tmp_path)
    with pytest.raises(MissingExtraError, match=r'textworld.*pip install "skillopt\[alfworld\]"') as caught:
        make(tmp_path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["default", "sample"])
def test_w1_the_shipped_configurations_are_for_this_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(samples.__file__).parents[3])
    config = resolve(f"configs/alfworld/{name}.yaml", environ={})
    assert config.env.name == "alfworld"
    assert config.env.split_mode == "split_dir"
    assert Path(config.env.skill_init).is_file()
    flat = config.flat()
    assert (flat["workers"], flat["max_steps"]) == ((8, 50) if name == "default" else (2, 20))


def test_the_published_manifest_can_be_used_as_it_is(games: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    rows = samples.items()
    for split, folder in (("train", "train"), ("val", "valid_seen"), ("test", "valid_unseen")):
        made = []
        for row in rows[split]:
            target = f"json_2.1.1/{folder}/{row['task_type']}-Mug-None-Shelf-1/trial_T1"
            shutil.copytree((games / row["gamefile"]).parent, root / target)
            made.append({**row, "gamefile": f"{target}/game.tw-pddl"})
        (tmp_path / "manifest" / split).mkdir(parents=True)
        (tmp_path / "manifest" / split / "items.json").write_text(json.dumps(made), encoding="utf-8")
    (tmp_path / "manifest" / "split_manifest.json").write_text('{"benchmark": "alfworld"}', encoding="utf-8")
    config = {
        "model": {"backend": "openai_compatible", "openai_compatible_base_url": "http://127.0.0.1:9"},
        "env": {
            "name": "alfworld",
            "split_mode": "split_dir",
            "split_dir": str(tmp_path / "manifest"),
            "data_root": str(root),
            "out_root": str(tmp_path / "run"),
        },
    }
    env = prepare(resolve(config, environ={}))
    assert isinstance(env, AlfworldEnv)
    assert len(env.all_items()) == 18
    assert "object_target Book" in env.build_reference_text(env.all_items()[0].to_dict())
