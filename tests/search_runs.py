"""Whole searches in the search world: with a preset and a seed, in this process or against a server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from search_world import SearchWorld, test_score, write_data

from skillopt.config.resolve import resolve
from skillopt.config.run_config import RunConfig
from skillopt.engine.trainer import train
from skillopt.model.values import ModelCall
from skillopt.testing import LoopbackServer, ScriptedModel
from skillopt.tracking.events import Event

PRESETS = Path(__file__).parents[1] / "configs" / "features"
TARGET_CALLS = 1400  # what a search may take before the final tests


@dataclass(frozen=True)
class Search:
    """What a run reached. Calls are those before the final tests; `within`: the score of the skill that the last step
    within TARGET_CALLS target calls left; `score`: that of the best skill, as the final test measured it."""

    score: float
    within: float
    target_calls: int
    optimizer_calls: int
    repeated: int
    steps: tuple[tuple[int, float], ...]


class _Recorder:
    """Answers for the world, keeping what was asked, and the true score after each step."""

    def __init__(self, world: SearchWorld, skills: Path) -> None:
        self._world, self._skills, self._lock = world, skills, threading.Lock()
        self.asked: dict[str, list[str]] = {"target-model": [], "optimizer-model": []}
        self.steps: list[tuple[int, float]] = [(0, 0.0)]

    def answer(self, request: Mapping[str, Any]) -> str:
        reply = self._world.answer(request)
        if reply != "ok":
            with self._lock:
                self.asked[request["model"]].append(json.dumps(request["messages"]))
        return reply

    def write(self, event: Event) -> None:
        if event.kind == "step_finished":
            skill = (self._skills / f"skill_v{event.data['step']:04d}.md").read_text(encoding="utf-8")
            self.steps.append((len(self.asked["target-model"]), test_score(skill)))

    def close(self) -> None:
        """Nothing is open."""


def search(preset: str, world: SearchWorld, root: Path, *, loopback: bool = False, workers: int = 8) -> Search:
    """Train in `root` with the preset of that name, 120 train, 100 validation and 200 test items."""
    write_data(root / "data")
    recorder = _Recorder(world, root / "run" / "skills")
    if loopback:
        with LoopbackServer(recorder.answer) as server:
            summary = train(resolve(_config(preset, root, world.seed, workers, server.url)), sinks=[recorder])
    else:
        config = resolve(_config(preset, root, world.seed, workers))
        summary = train(_scripted(config, recorder), sinks=[recorder])
    before = [text for text in recorder.asked["target-model"] if "[test]" not in text]
    everything = recorder.asked["target-model"] + recorder.asked["optimizer-model"]
    return Search(
        score=summary["test_hard"],
        within=[score for calls, score in recorder.steps if calls <= TARGET_CALLS][-1],
        target_calls=len(before),
        optimizer_calls=len(recorder.asked["optimizer-model"]),
        repeated=len(everything) - len(set(everything)),
        steps=tuple(recorder.steps),
    )


def _config(preset: str, root: Path, seed: int, workers: int, url: str = "") -> Path:
    """The preset with the data and the models of the world; nothing of the search itself is changed."""
    model: dict[str, Any] = {"backend": "mock_chat", "target": "target-model", "optimizer": "optimizer-model"}
    if url:
        model |= {"backend": "openai_compatible", "openai_compatible_base_url": url}
    env = {"name": "jsonl", "split_mode": "split_dir", "split_dir": str(root / "data"), "out_root": str(root / "run")}
    sections = {
        "_base_": str(PRESETS / f"{preset}.yaml"),
        "model": model,
        "train": {"seed": seed},
        "env": {**env, "task_type_field": "task_type", "workers": workers},
    }
    path = root / "config.yaml"
    path.write_text(yaml.safe_dump(sections), encoding="utf-8")
    return path


def _scripted(config: RunConfig, recorder: _Recorder) -> RunConfig:
    """The same run with models in this process, which takes a fraction of the time."""

    def script(call: ModelCall, model: str) -> str:
        return recorder.answer({"model": model, "messages": [dict(message) for message in call.messages]})

    target = ScriptedModel(lambda call: script(call, "target-model"))
    optimizer = ScriptedModel(lambda call: script(call, "optimizer-model"))
    roles = {"target": target.role("target", model="t"), "optimizer": optimizer.role("optimizer", model="o")}
    return replace(config, roles={**config.roles, **roles})
