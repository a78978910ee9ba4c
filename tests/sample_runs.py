"""Runs of a benchmark on its shipped sample data: real runner, prompts and scorers, a scripted model on loopback.

The target does a task well only when the skill holds a rule; the optimizer proposes that rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import skillopt
from skillopt.testing import LoopbackServer

ROOT = Path(__file__).parents[1]
Target = Callable[[str, str], str]


def sample_items(name: str, split: str) -> list[dict[str, Any]]:
    """The shipped items of one split."""
    path = ROOT / "data" / "samples" / name / split / "items.json"
    items: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return items


def text_of(request: Mapping[str, Any], role: str) -> str:
    return "\n".join(str(m["content"]) for m in request["messages"] if m["role"] == role)


def propose(request: Mapping[str, Any], rule: str) -> str:
    """What the optimizer says at each of its stages."""
    edits = [{"op": "append", "content": rule}]
    if "selected_indices" in text_of(request, "system"):
        return json.dumps({"reasoning": "the only one", "selected_indices": [0]})
    if "Trajectories (" in text_of(request, "user"):
        return json.dumps({"failure_summary": [], "patch": {"reasoning": "a gap", "edits": edits}})
    return json.dumps({"reasoning": "merged", "edits": edits})


class SampleRun:
    """One run of `configs/<name>/sample.yaml`; `requests` are those of the two models."""

    def __init__(self, name: str, out_root: Path, *, target: Target, rule: str) -> None:
        self.name, self.out_root = name, out_root
        self.server = LoopbackServer(lambda request: self._reply(request, target, rule))

    def _reply(self, request: Mapping[str, Any], target: Target, rule: str) -> str:
        if "Reply with: ok" in text_of(request, "user"):
            return "ok"
        if request["model"] == "target-model":
            return target(text_of(request, "system"), text_of(request, "user"))
        return propose(request, rule)

    def config(self, **env: Any) -> dict[str, Any]:
        return {
            "_base_": str(ROOT / "configs" / self.name / "sample.yaml"),
            "model": {
                "backend": "openai_compatible",
                "target": "target-model",
                "optimizer": "optimizer-model",
                "openai_compatible_base_url": self.server.url,
            },
            "env": {
                "skill_init": str(ROOT / "skillopt" / "envs" / self.name / "skills" / "initial.md"),
                "split_dir": str(ROOT / "data" / "samples" / self.name),
                "out_root": str(self.out_root),
                **env,
            },
        }

    def train(self, **env: Any) -> skillopt.OptimizedSkill:
        with self.server:
            return skillopt.train(self.config(**env))

    def asked(self, model: str) -> list[Mapping[str, Any]]:
        """Bodies of what one model was asked, without the first try."""
        bodies = [record.body for record in self.server.requests]
        return [b for b in bodies if b["model"] == model and "Reply with: ok" not in text_of(b, "user")]
