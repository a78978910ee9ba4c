"""Two runs in one process share no settings and no counters; what `config.json` says about roles."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from worlds import World

from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train

KEYS = ("sk-key-of-the-first-run-0001", "sk-key-of-the-second-run-0002")
EFFORTS = ("low", "high")


def test_two_runs_at_once_share_nothing(make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [make_world(), make_world()]
    roots = [world.root / f"run{number}" for number, world in enumerate(worlds)]
    configs = []
    for world, root, key, effort in zip(worlds, roots, KEYS, EFFORTS, strict=True):
        path = world.config(model={"reasoning_effort": effort}, env={"out_root": str(root)})
        configs.append(resolve(path, environ={"OPENAI_COMPATIBLE_API_KEY": key}))
    done: dict[int, Any] = {}

    def run(index: int) -> None:
        done[index] = train(configs[index])

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    for index, world in enumerate(worlds):
        asked = world.server.requests
        assert {record.headers["Authorization"] for record in asked} == {f"Bearer {KEYS[index]}"}
        assert {record.body.get("reasoning_effort") for record in asked} <= {EFFORTS[index], None}
        summary = done[index]
        assert summary["test_hard"] == 1.0
        counted = summary["token_summary"]["_total"]["calls"]
        assert counted == len(asked)
        assert KEYS[1 - index] not in (roots[index] / "config.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["qwen_chat", "openai_compatible"])
def test_config_json_says_how_qwen_thinks(world: World, target: str) -> None:
    own = {"target_backend": target, "qwen_chat_base_url": world.server.url, "qwen_chat_thinking_mode": "off"}
    train(resolve(world.config(model=own, train={"num_epochs": 0})))
    written = json.loads((world.out_root / "config.json").read_text(encoding="utf-8"))
    expected = {"target": "disabled"} if target == "qwen_chat" else None
    assert written.get("resolved_qwen_thinking_modes") == expected
    assert written["target_backend"] == target
