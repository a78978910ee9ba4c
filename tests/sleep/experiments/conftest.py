"""A small benchmark in the format of gbrain-evals, of our own making, and a backend that can learn its rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.backends import Backend
from skillopt_sleep.experiments.gbrain import SEEDS
from skillopt_sleep.judges import score_rule_judge
from skillopt_sleep.types import EditRecord, TaskRecord

TOPICS = (
    "harbour dredging", "orchard pruning", "night buses", "library fines", "glacier maps", "bread prices",
    "chess clubs", "rain barrels", "tram wires", "museum labels", "bee keeping", "canal locks",
)  # fmt: skip
RULE = "End every brief with a section called Verdict."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """All four seeds with twelve tasks to learn from and four held-out ones each."""
    root = tmp_path / "gbrain-evals" / "eval" / "data" / "skillopt-v1"
    for folder in SEEDS.values():
        place = root / folder
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text("# Briefs\n\nWrite briefs.\n")
        for name, topics in (("benchmark", TOPICS), ("held-out", [f"{topic} abroad" for topic in TOPICS[:4]])):
            rows = [row(f"{name}-{at}", f"Write a brief about {topic}.") for at, topic in enumerate(topics)]
            (place / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return tmp_path / "gbrain-evals"


def row(task_id: str, task: str) -> dict[str, Any]:
    checks = [{"op": "section_present", "arg": "Verdict"}, {"op": "contains", "arg": "brief"}]
    return {"task_id": task_id, "task": task, "judge": {"kind": "rule", "checks": checks}}


class Writer(Backend):
    """Writes briefs as the skill says, and finds the missing rule when it fails. `gift`: it knows without the rule."""

    def __init__(self, *, name: str = "writer", gift: bool = False) -> None:
        super().__init__("w-1")
        self.name = name
        self.gift = gift
        self.calls = 0

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        self.calls += 1
        knows = self.gift or RULE in skill
        return "A brief.\n\n## Verdict\n\nGood." if knows else "A brief, and that is it."

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        return score_rule_judge(task.judge, response)

    def reflect(self, failures, successes, skill, memory, *, edit_budget, evolve_skill, evolve_memory):
        return [EditRecord("skill", "add", RULE)]

    def tokens_used(self) -> int:
        return self.calls * 10


@pytest.fixture
def writer() -> type[Writer]:
    """The class of the backend, so that a test can make its own."""
    return Writer
