"""`skillopt-train` as a person runs it: a process, its output, its exit code, and what a kill leaves behind."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of, write_data

from skillopt.skill.document import skill_hash
from skillopt.store import Store

SCRIPTS = Path(__file__).parents[2] / "scripts"


def command(*arguments: str, script: str = "train.py") -> list[str]:
    return [sys.executable, "-W", "error", str(SCRIPTS / script), *arguments]


def run(*arguments: str, script: str = "train.py", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, script=script), capture_output=True, text=True, encoding="utf-8", check=False, cwd=cwd
    )


def test_a_run_prints_progress_on_stderr_and_the_report_on_stdout(world: World) -> None:
    done = run("--config", str(world.config()))
    assert done.returncode == 0, done.stderr
    assert re.search(r"test +0\.000 +1\.000 +12\n", done.stdout)
    assert "- Rule amber: say its secret." in done.stdout
    assert str(world.out_root / "best_skill.md") in done.stdout
    for token in (
        "[EPOCH 1/2]",
        "[STEP 1/6]",
        "1/6 ROLLOUT",
        "6/6 EVALUATE",
        "BASELINE evaluate",
        "gate: accept_new_best",
    ):
        assert token in done.stderr
    assert "\r" not in done.stderr  # no bars without a terminal


def test_json_is_one_document_whatever_else_is_printed(world: World) -> None:  # C124, C170
    (world.root / "noisy.py").write_text(
        "from skillopt.envs.jsonl.adapter import JsonlEnv\n\n\n"
        "class Noisy(JsonlEnv):\n"
        "    def score(self, item, answer):\n"
        "        print('scoring', item.id)\n"
        "        return super().score(item, answer)\n",
        encoding="utf-8",
    )
    path = world.config(env={"name": "noisy:Noisy"})
    env = {**os.environ, "PYTHONPATH": str(world.root)}
    done = subprocess.run(
        command("--config", str(path), "--json"), capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test_hard"] == 1.0
    assert "scoring val-0" in done.stderr


def test_flags_and_options_reach_the_run(world: World) -> None:
    done = run("--config", str(world.config()), "--num_epochs", "1", "--cfg-options", "train.batch_size=12", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["total_steps"] == 2
    assert summary["config"]["batch_size"] == 12


def test_a_skill_and_a_data_file_are_enough(world: World) -> None:
    write_data(world.root / "flat", train=40, val=0, test=0)
    rows = json.loads((world.root / "flat" / "train" / "items.json").read_text(encoding="utf-8"))
    lines = ["id,question,answer", *(f'{row["id"]},"{row["question"]}",{row["answer"]}' for row in rows)]
    (world.root / "tasks.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (world.root / "SKILL.md").write_text("# Stones\n", encoding="utf-8")
    done = run(
        *(
            "--skill",
            "SKILL.md",
            "--data",
            "tasks.csv",
            "--scorer",
            "exact",
            "--out_root",
            "out",
            "--split_ratio",
            "2:1:1",
        ),
        *("--backend", "openai_compatible", "--openai_compatible_base_url", world.server.url),
        *("--target_model", "target-model", "--optimizer_model", "optimizer-model", "--num_epochs", "2", "--json"),
        cwd=world.root,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["test_hard"] > summary["baseline_test_hard"] == 0.0
    assert (world.root / "out" / "best_skill.md").read_text(encoding="utf-8").startswith("# Stones\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--cfg-options", "train.batchsize=3"], 2, "batch_size"),
        (["--batch_size", "zero"], 2, "batch_size"),
        (["--no_such_flag", "1"], 2, "no_such_flag"),
        (["--split_dir", "nowhere"], 2, "nowhere"),
        (["--env", "jsonnl"], 2, "jsonl"),
        (["--skill_init", "nowhere.md"], 2, "flag --skill_init: env.skill_init: nowhere.md"),
        (["--skill", "nowhere.md"], 2, "flag --skill: env.skill_init: nowhere.md"),
        (["--target_backend", "codex_exec", "--codex_exec_use_sdk", "skd"], 2, "use_sdk of codex_exec is 'skd'"),
    ],
)
def test_bad_input_ends_with_code_2_before_any_call(
    world: World, arguments: Sequence[str], code: int, said: str
) -> None:
    done = run("--config", str(world.config()), *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not world.server.requests
    assert not world.out_root.exists()


def test_a_budget_ends_with_code_3(world: World) -> None:
    done = run("--config", str(world.config(budget={"max_calls": 40})))
    assert done.returncode == 3
    assert "budget.max_calls" in done.stderr
    assert run("--config", str(world.config())).returncode == 0


def test_a_failure_ends_with_code_1(make_world: Callable[..., World]) -> None:
    world = make_world(key="right")
    done = run("--config", str(world.config()))
    assert done.returncode == 1
    assert "OPENAI_COMPATIBLE_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_130_and_goes_on(make_world: Callable[..., World], number: int) -> None:
    world = make_world(latency=0.02)
    path = str(world.config())
    with subprocess.Popen(
        command("--config", path), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        _wait(lambda: len(world.server.requests) > 20)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "everything finished is kept" in said
    stored = _stored(world.out_root)
    assert stored
    before = len(world.requests("target-model"))
    assert run("--config", path).returncode == 0
    assert not stored & {_identity(body) for body in world.requests("target-model")[before:]}


def _wait(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)


def _identity(body: Mapping[str, Any]) -> tuple[str, str]:
    """Item and skill of a target call."""
    user = text_of(body, "user")
    return user[1 : user.index("]")], skill_hash(text_of(body, "system"))


def _stored(root: Path) -> set[tuple[str, str]]:
    """Item and skill of each rollout that a run folder keeps."""
    if not (root / "store.sqlite").exists():
        return set()
    store = Store(root / "store.sqlite")
    kept = {(result.id, hashed) for _, hashed, result in store.rollouts()}
    store.close()
    return kept


@pytest.mark.parametrize("moments", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_as_if_never_stopped(make_world: Callable[..., World], moments: int) -> None:
    world = make_world(latency=0.005)
    whole = world.root / "whole"
    assert run("--config", str(world.config(env={"out_root": str(whole)}))).returncode == 0
    total = len(world.server.requests)
    path, chance = str(world.config()), random.Random(20)
    kills = 0
    while kills < moments:
        asked, stored = len(world.server.requests), _stored(world.out_root)
        more = chance.randint(3, total // 9)
        with subprocess.Popen(
            command("--config", path), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as process:
            _wait(partial(_reached, world, process, asked + more))
            time.sleep(chance.random() * 0.02)
            process.kill()
        kills += 1
        assert not stored & {_identity(b) for b in _targets(world, asked)}
    asked, stored = len(world.server.requests), _stored(world.out_root)
    done = run("--config", path, "--json")
    assert done.returncode == 0, done.stderr
    assert not stored & {_identity(b) for b in _targets(world, asked)}
    assert (world.out_root / "best_skill.md").read_bytes() == (whole / "best_skill.md").read_bytes()
    assert _scores(world.out_root) == _scores(whole)
    assert _timeless_history(world.out_root) == _timeless_history(whole)


def _reached(world: World, process: subprocess.Popen[bytes], requests: int) -> bool:
    return len(world.server.requests) >= requests or process.poll() is not None


def _targets(world: World, start: int) -> list[Mapping[str, Any]]:
    bodies = [record.body for record in world.server.requests[start:]]
    return [b for b in bodies if b.get("model") == "target-model" and "Reply with: ok" not in text_of(b, "user")]


def _scores(root: Path) -> dict[str, Any]:
    summary = json.loads((root / "summary.json").read_text(encoding="utf-8"))
    return {key: value for key, value in summary.items() if key.endswith(("_hard", "_soft", "_step", "_score", "_n"))}


def _timeless_history(root: Path) -> list[dict[str, Any]]:
    records = json.loads((root / "history.json").read_text(encoding="utf-8"))
    return [{k: v for k, v in record.items() if k not in ("timing", "wall_time_s")} for record in records]


def test_a_full_disk_stops_cleanly_and_the_run_goes_on_with_room(world: World) -> None:  # C164
    import resource

    path = str(world.config())
    done = subprocess.run(
        command("--config", path), capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "cannot be" in done.stderr
    assert "Traceback" not in done.stderr
    stored, asked = _stored(world.out_root), len(world.server.requests)
    assert stored
    assert run("--config", path).returncode == 0
    assert not stored & {_identity(b) for b in _targets(world, asked)}


def test_two_runs_in_the_same_second_get_two_folders(world: World) -> None:  # C167
    both = ["--config", str(world.config(env={"out_root": ""})), "--num_epochs", "0", "--cfg-options"]
    for _ in range(3):
        assert run(*both, "evaluation.eval_test=false", cwd=world.root).returncode == 0
    folders = list((world.root / "outputs").iterdir())
    assert len(folders) == 3


def test_a_server_that_dies_in_the_middle_stops_the_run_and_a_living_one_ends_it(
    make_world: Callable[..., World],
) -> None:
    served = {"n": 0, "limit": 60}

    def dying(request: Mapping[str, Any]) -> Any:
        served["n"] += 1
        return answer(request) if served["n"] < served["limit"] else {"choices": []}

    world = make_world(dying)
    path = str(world.config(model={"retries": 0}, env={"item_retries": 0}))
    stopped = run("--config", path)
    assert stopped.returncode == 1
    assert "env.max_error_rate" in stopped.stderr or "analyst calls failed" in stopped.stderr
    served["limit"] = 10**9
    assert run("--config", path).returncode == 0


def test_a_run_that_stops_in_a_folder_nobody_chose_says_how_to_go_on(world: World) -> None:
    path = str(world.config(env={"out_root": ""}))
    stopped = run("--config", path, "--budget_max_calls", "60", cwd=world.root)
    assert stopped.returncode == 3, stopped.stderr
    said = re.search(r"^note: to go on with this run, add --out_root (\S+)$", stopped.stderr, re.MULTILINE)
    assert said
    again = run("--config", path, "--budget_max_calls", "2000", "--out_root", said[1], cwd=world.root)
    assert again.returncode == 0, again.stderr
    assert "going on" in again.stderr
    assert (
        "to go on with this run"
        not in run("--config", str(world.config()), "--budget_max_calls", "60", cwd=world.root).stderr
    )
