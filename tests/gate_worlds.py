"""Scripted worlds for the gate: no model, no server. Scores of a skill follow from its text and a seed.

`Scripted` runs its items itself, as a custom environment does; `ScriptedTasks` leaves that to the runner.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from skillopt.config.resolve import resolve
from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import BaseDataLoader, BatchSpec
from skillopt.engine.gating import Candidate, Look, gate_score, look
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.run_dir import RunDir
from skillopt.engine.state import Progress, Standing
from skillopt.envs.base import EnvAdapter, TaskEnv
from skillopt.evaluation.gate import evaluate_gate
from skillopt.evaluation.stats import ErrorBudget, sign_flip_test
from skillopt.scoring import Score
from skillopt.skill.document import Skill
from skillopt.store import Store
from skillopt.types import Item, RolloutResult
from skillopt.utils.cancel import CancelToken

Draw = Callable[[str, str], "tuple[float, float] | None"]
"""(hard, soft) of a skill's text on an item; None for an error."""


class Items(BaseDataLoader):
    def __init__(self, number: int) -> None:
        self.rows = [{"id": f"item-{n}"} for n in range(number)]

    def build_eval_batch(self, env_num: int, split: str, seed: int) -> BatchSpec:
        rows = self.rows[:env_num] if env_num else self.rows
        return BatchSpec("eval", split, seed, len(rows), list(rows))


class Scripted(EnvAdapter):
    def __init__(self, number: int, draw: Draw) -> None:
        self.loader, self.draw, self.batches = Items(number), draw, []

    def get_dataloader(self) -> BaseDataLoader:
        return self.loader

    def build_train_env(self, batch_size: int, seed: int, **kw: Any) -> Any:
        raise NotImplementedError

    def build_eval_env(self, env_num: int, split: str, seed: int, **kw: Any) -> Any:
        raise NotImplementedError

    def build_env_from_batch(self, batch: BatchSpec, **kw: Any) -> Any:
        return batch.payload

    def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:
        self.batches.append([row["id"] for row in env_manager])
        rows = []
        for row in env_manager:
            drawn = self.draw(skill_content, row["id"])
            hard, soft = drawn or (0.0, 0.0)
            rows.append({"id": row["id"], "hard": hard, "soft": soft, "error": "" if drawn else "no answer"})
        return rows

    def get_task_types(self) -> list[str]:
        return []

    def fingerprint(self) -> str:
        return "scripted"

    @property
    def calls(self) -> int:
        return sum(len(batch) for batch in self.batches)


class ScriptedTasks(TaskEnv):
    def __init__(self, number: int, draw: Draw) -> None:
        self.loader, self.draw, self.done = Items(number), draw, []

    def get_dataloader(self) -> BaseDataLoader:
        return self.loader

    def messages(self, item: Item, skill: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    def score(self, item: Item, answer: str) -> Score:
        raise NotImplementedError

    def run_item(self, item: Item, skill: str, chat: Any) -> RolloutResult:
        self.done.append(item.id)
        drawn = self.draw(skill, item.id)
        if drawn is None:
            return RolloutResult(id=item.id, status="error", error="no answer")
        return RolloutResult(id=item.id, hard=drawn[0], soft=drawn[1])

    def fingerprint(self) -> str:
        return "scripted-tasks"

    @property
    def calls(self) -> int:
        return len(self.done)


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder in memory where the system has one: thousands of small files, each synced to disk."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)


_CONFIG: list[RunConfig] = []


def settings(**evaluation: Any) -> RunConfig:
    """A configuration without a model, with keys of the section `evaluation` replaced."""
    if not _CONFIG:
        _CONFIG.append(resolve(cfg_options=["env.name=jsonl", "model.backend=mock_chat"], environ={}))
    config = _CONFIG[0]
    return replace(config, evaluation=config.evaluation.model_copy(update=evaluation))


def with_section(config: RunConfig, section: str, **keys: Any) -> RunConfig:
    return replace(config, **{section: getattr(config, section).model_copy(update=keys)})


def make_kit(adapter: EnvAdapter, config: RunConfig, root: Path, events: list[Any] | None = None) -> Kit:
    def emit(kind: str, **data: Any) -> None:
        if events is not None:
            events.append((kind, data))

    session = cast(Any, SimpleNamespace(roles={}))
    return Kit(config, adapter, session, Store(Path(":memory:")), RunDir(root), emit, CancelToken())


def start(kit: Kit, text: str) -> Progress:
    skill = Skill.parse(text)
    scores = kit.evaluate(skill, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
    standing = Standing(skill, gate_score(kit, (scores.hard, scores.soft), skill), "initial_skill", "", scores)
    return Progress(0, standing, standing, 0, (scores.hard, scores.soft))


def look_at(kit: Kit, progress: Progress, text: str, step: int) -> tuple[Progress, Look]:
    candidate = Candidate(Skill.parse(text), "", f"step_{step}", step)
    return look(kit, progress, candidate, kit.folder.step(step) / "selection_eval")


@dataclass(frozen=True)
class GateWorld:
    """A random world: how many items, which metric, how good each candidate, which items fail now and then."""

    seed: int
    looks: int = 4
    sizes: tuple[int, ...] = (4, 6, 9, 12, 16)

    def evaluation(self) -> dict[str, Any]:
        rng = random.Random(f"settings {self.seed}")
        return {
            "gate_metric": rng.choice(("hard", "hard", "soft", "mixed")),
            "gate_mixed_weight": rng.choice((0.25, 0.5)),
            "use_semantic_density": rng.random() < 0.3,
            "semantic_density_weight": rng.choice((0.05, 0.5)),
        }

    def texts(self) -> Sequence[str]:
        rng = random.Random(f"texts {self.seed}")
        words = ("must", "always", "look", "twice", "never", "guess", "here")
        return [f"skill {n}: " + " ".join(rng.choices(words, k=rng.randint(1, 9))) for n in range(self.looks + 1)]

    @property
    def number(self) -> int:
        return random.Random(f"size {self.seed}").choice(self.sizes)

    @property
    def workers(self) -> int:
        return random.Random(f"workers {self.seed}").choice((1, 2, 4, 8))

    def draw(self, text: str, item: str) -> tuple[float, float] | None:
        """Most items go the same way under most skills; every skill turns some of them over."""
        skill = random.Random(f"{self.seed} {text}")
        level, changed = skill.uniform(0.2, 0.8), skill.choice((0.05, 0.15, 0.4))
        own = random.Random(f"{self.seed} {text} {item}")
        base = random.Random(f"{self.seed} {item}").random()
        if self.seed % 5 == 0 and own.random() < 0.03:
            return None
        solved = (own.random() < level) if own.random() < changed else base < 0.5
        if self.seed % 3 == 0:
            hard = 1.0 if solved else own.choice((0.0, 1 / 3, 0.5))
            return hard, max(hard, own.choice((0.0, 0.25, 0.7)))
        return float(solved), 1.0 if solved else own.choice((0.0, 0.2, 0.6))

    def run(self, root: Path, *, early_stop: str) -> tuple[list[tuple[str, float, float]], int, int]:
        """(action, current score, best score) of each look, and the item runs of all looks, and how many at most."""
        kind = Scripted if self.seed % 10 == 1 else ScriptedTasks
        adapter = kind(self.number, self.draw)
        config = settings(early_stop=early_stop, **self.evaluation())
        config = with_section(config, "env", workers=self.workers, max_error_rate=1.0, item_retries=0)
        kit = make_kit(adapter, config, root)
        first, *candidates = self.texts()
        progress = start(kit, first)
        baseline, seen = adapter.calls, []
        for step, text in enumerate(candidates, 1):
            progress, shown = look_at(kit, progress, text, step)
            seen.append((shown.action, progress.current.score, progress.best.score))
        kit.store.close()
        return seen, adapter.calls - baseline, self.number * len(candidates)


def accepts_of_alike_skills(runs: int, *, looks: int = 12, items: int = 100, seed: int = 1) -> tuple[float, float]:
    """Share of runs that accept at least once although all candidates are the current skill: (strict, paired).

    Items are solved by chance alone: a quarter of them with 3/4, a quarter with 1/4, the others with 1/2. Scores and
    decisions are made by the parts that a look is made of. Outcomes of all items are the bits of one number.
    """
    rng, accepted = random.Random(seed), {"strict": 0, "paired": 0}
    p_values: dict[tuple[int, int], float] = {}

    def draw(easy: int, hard: int) -> int:
        one, two = rng.getrandbits(items), rng.getrandbits(items)
        return (one | two) & easy | (one & two) & hard | one & ~(easy | hard)

    for _ in range(runs):
        first, second = rng.getrandbits(items), rng.getrandbits(items)
        kinds = (first & second, first & ~second)
        for policy in accepted:
            current, budget, any_accept = draw(*kinds), ErrorBudget(0.05), False
            for step in range(looks):
                candidate = draw(*kinds)
                pair = ((candidate & ~current).bit_count(), (current & ~candidate).bit_count())
                if pair not in p_values:
                    p_values[pair] = sign_flip_test([1.0] * pair[0] + [-1.0] * pair[1])[0]
                share = budget.share(looks)
                budget = budget.after(share)
                score, bar = candidate.bit_count() / items, current.bit_count() / items
                significant = policy == "strict" or p_values[pair] <= share
                if evaluate_gate("c", score, "o", bar, "o", bar, 0, step, significant=significant).accepted:
                    current, any_accept = candidate, True
            accepted[policy] += any_accept
    return accepted["strict"] / runs, accepted["paired"] / runs
