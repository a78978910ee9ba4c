"""A backend whose answers are a function of the documents, and tasks to ask it about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skillopt_sleep.backends.base import Backend
from skillopt_sleep.evidence import EvidenceLog, attach
from skillopt_sleep.types import EditRecord, ReplayResult, TaskRecord

Scorer = Callable[[TaskRecord, str, str], float]
Proposer = Callable[[str, Sequence[Any], str, str], Sequence[EditRecord]]


def task(name: str, split: str = "train", **fields: Any) -> TaskRecord:
    fields.setdefault("reference_kind", "rubric")
    fields.setdefault("reference", "a good answer")
    return TaskRecord(
        name, fields.pop("project", "/p"), fields.pop("intent", f"do the work {name}"), split=split, **fields
    )


def tasks(train: int = 3, val: int = 6, **fields: Any) -> list[TaskRecord]:
    return [task(f"t{n}", "train", **fields) for n in range(train)] + [
        task(f"v{n}", "val", **fields) for n in range(val)
    ]


def add(content: str, target: str = "skill") -> EditRecord:
    return EditRecord(target, "add", content)


def proposing(skill: Sequence[str] = (), memory: Sequence[str] = ()) -> Proposer:
    """Proposes these rules, those that the document does not have yet."""

    def propose(target: str, failures: Sequence[Any], skill_text: str, memory_text: str) -> list[EditRecord]:
        rules, text = (skill, skill_text) if target == "skill" else (memory, memory_text)
        return [add(rule, target) for rule in rules if rule not in text]

    return propose


class FakeBackend(Backend):
    """`score(task, skill, memory)` is what an answer is worth; it may raise. Everything asked for is recorded."""

    name = "fake"

    def __init__(self, score: Scorer, propose: Proposer | None = None) -> None:
        super().__init__()
        self.score = score
        self.propose = propose or proposing()
        self.attempts: list[tuple[str, str, bool]] = []
        self.reflections: list[str] = []
        self.calls: list[str] = []
        self.replies: list[str] = []
        self._asked: list[tuple[str, str]] = []

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        self.attempts.append((task.id, self.evidence_phase, fresh))
        self._asked.append((skill, memory))
        return f"answer {len(self._asked) - 1}"

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        value = self.score(task, *self._asked[int(response.split()[1])])
        return value, value, "so and so"

    def reflect(self, failures: Any, successes: Any, skill: str, memory: str, **options: Any) -> list[EditRecord]:
        target = "skill" if options["evolve_skill"] else "memory"
        self.reflections.append(target)
        return list(self.propose(target, failures, skill, memory))

    def call(self, prompt: str, *, kind: str = "call", max_tokens: int = 1024, fresh: bool = False) -> str:
        self.calls.append(prompt)
        return self.replies.pop(0)

    def phases(self) -> list[str]:
        """The phases in which something was attempted, in order, each once in a row."""
        labels = [phase for _, phase, _ in self.attempts]
        return [label for index, label in enumerate(labels) if not index or labels[index - 1] != label]

    def log_to(self, path: Path) -> FakeBackend:
        attach(self, EvidenceLog(path))
        return self


def holds(*rules: str) -> Scorer:
    """The share of the rules that skill and memory hold."""

    def score(task: TaskRecord, skill: str, memory: str) -> float:
        return sum(rule in f"{skill}\n{memory}" for rule in rules) / len(rules)

    return score


def pair(name: str, hard: float, **fields: Any) -> tuple[TaskRecord, ReplayResult]:
    return task(name), ReplayResult(name, hard, fields.pop("soft", hard), **fields)
