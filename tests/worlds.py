"""A small world to train in: an HTTP server on loopback plays both models.

Every item belongs to a topic. The target answers it right if and only if the skill holds the rule of that topic; the
optimizer proposes the rules of the topics that it sees fail. So scores follow from the skill alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from skillopt.testing import LoopbackServer

TOPICS = ("amber", "basalt", "cobalt", "dolomite", "emerald", "feldspar")


def write_data(folder: Path, *, train: int = 24, val: int = 12, test: int = 12) -> None:
    for split, number in {"train": train, "val": val, "test": test}.items():
        items = [
            {
                "id": f"{split}-{n}",
                "question": f"[{split}-{n}] what is special about {TOPICS[n % len(TOPICS)]}?",
                "answer": f"{TOPICS[n % len(TOPICS)]} secret",
                "task_type": TOPICS[n % len(TOPICS)],
            }
            for n in range(number)
        ]
        (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / split / "items.json").write_text(json.dumps(items), encoding="utf-8")


def text_of(request: Mapping[str, Any], role: str) -> str:
    return "\n".join(m["content"] for m in request["messages"] if m["role"] == role)


def answer_target(request: Mapping[str, Any]) -> str:
    topic = re.search(r"about (\w+)\?", text_of(request, "user"))
    assert topic is not None
    return f"{topic[1]} secret" if f"Rule {topic[1]}" in text_of(request, "system") else "no idea"


def answer_optimizer(request: Mapping[str, Any]) -> str:
    system, user = text_of(request, "system"), text_of(request, "user")
    if "selected_indices" in system:
        return json.dumps({"reasoning": "first ones", "selected_indices": list(range(20))})
    if "Trajectories (" in user:
        seen = sorted(set(re.findall(r"about (\w+)\?", user.split("Trajectories (")[1])))
        edits = [{"op": "append", "content": f"- Rule {topic}: say its secret."} for topic in seen]
        return json.dumps({"batch_size": 1, "failure_summary": [], "patch": {"reasoning": "gaps", "edits": edits}})
    topics = sorted(set(re.findall(r"Rule (\w+): say", user)))
    edits = [{"op": "append", "content": f"- Rule {topic}: say its secret."} for topic in topics]
    return json.dumps({"reasoning": "merged", "edits": edits})


def answer(request: Mapping[str, Any]) -> str:
    if "Reply with: ok" in text_of(request, "user"):
        return "ok"
    return answer_target(request) if request["model"] == "target-model" else answer_optimizer(request)


@dataclass
class World:
    """The files of a run in `root` and the server that plays its models."""

    root: Path
    server: LoopbackServer
    overrides: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def out_root(self) -> Path:
        return self.root / "run"

    def config(self, **sections: Mapping[str, Any]) -> Path:
        """Write the configuration file, with keys of sections replaced."""
        base: dict[str, dict[str, Any]] = {
            "model": {
                "backend": "openai_compatible",
                "target": "target-model",
                "optimizer": "optimizer-model",
                "openai_compatible_base_url": self.server.url,
                "retries": 3,
            },
            "train": {"num_epochs": 2, "batch_size": 8, "seed": 7},
            "gradient": {"minibatch_size": 4, "failure_only": True, "analyst_workers": 2},
            "optimizer": {
                "learning_rate": 2,
                "min_learning_rate": 1,
                "lr_scheduler": "constant",
                "use_slow_update": False,
                "use_meta_skill": False,
            },
            "env": {
                "name": "jsonl",
                "split_mode": "split_dir",
                "split_dir": str(self.root / "data"),
                "out_root": str(self.out_root),
                "task_type_field": "task_type",
                "workers": 4,
            },
        }
        for name, keys in (*self.overrides.items(), *sections.items()):
            base[name] = {**base.get(name, {}), **keys}
        path = self.root / "config.yaml"
        path.write_text(yaml.safe_dump(base), encoding="utf-8")
        return path

    def requests(self, model: str) -> list[Mapping[str, Any]]:
        """Bodies of what the server was asked for a model, without preflights."""
        bodies = [record.body for record in self.server.requests]
        return [b for b in bodies if b.get("model") == model and "Reply with: ok" not in text_of(b, "user")]
