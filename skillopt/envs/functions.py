"""An environment around two functions of a Python program: one does an item, the other says how good the answer is."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from skillopt.datasets.memory import MemoryLoader
from skillopt.envs.base import TaskEnv, is_unit_value
from skillopt.envs.chat import Chat
from skillopt.envs.identity import identity_of
from skillopt.envs.rows import error_result
from skillopt.errors import ConfigError, SkillOptError, TransientError
from skillopt.scoring import Score
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

QUESTION_FIELDS = ("question", "input", "prompt", "text", "query")
REFERENCE_FIELDS = ("reference_text", "answer", "answers", "label", "target", "output", "reference", "expected")

RunItem = Callable[[dict[str, Any], str], Any]
ScoreAnswer = Callable[[dict[str, Any], Any], "float | Score"]


@dataclass(frozen=True, slots=True)
class Rollout:
    """What an agent did with one item.

    `answer`: whatever the scorer takes. `trajectory`: what happened on the way, in order, for the optimizer to learn
    from: texts, or entries `{"role": ..., "content": ...}`, `{"type": "tool_call", "cmd": ..., "obs": ...}` or
    `{"action": ..., "env_feedback": ...}`.
    """

    answer: Any
    trajectory: Sequence[Mapping[str, Any] | str] = ()


class FunctionEnv(TaskEnv):
    """Items are done by `run_item(item, skill)` and judged by `score(item, answer)`; both get a copy of the item.

    An exception of either, and an answer or a score that is none, makes the item an error, never a score. Errors
    that usually pass (`TransientError`, `RateLimitError`, `ConnectionError`, `TimeoutError`) are tried again.
    `version` stands for the functions when results are kept: finished items of another version are not used again.
    Without it, the functions' own source and plain values do (`skillopt.envs.identity`).
    `workers`: items at the same time.
    Raises ConfigError for functions that cannot be used.
    """

    result_roles = ()

    def __init__(
        self, loader: MemoryLoader, run_item: RunItem, score: ScoreAnswer, *, version: str = "", workers: int = 8
    ) -> None:
        for name, function in (("run_item", run_item), ("score", score)):
            _check_function(name, function)
        if workers < 1:
            raise ConfigError(f"workers is {workers}; expected at least 1.")
        self._loader_of_items, self._run, self._judge = loader, run_item, score
        self.workers = workers
        self._fingerprint = content_hash("functions", version or [identity_of(run_item), identity_of(score)])

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Check the items across splits."""
        super().setup(cfg)
        self._loader_of_items.setup(cfg)

    def get_dataloader(self) -> MemoryLoader:
        """The loader of the given items."""
        return self._loader_of_items

    def messages(self, item: Item, skill: str) -> list[JsonObject]:  # noqa: ARG002 - the function gets the skill
        """The task as the optimizer sees it; the agent itself gets the item."""
        return [{"role": "user", "content": self.question(item)}]

    def question(self, item: Item) -> str:
        """The item's question, or all of it but what tells the right answer."""
        named = next((item.data[name] for name in QUESTION_FIELDS if isinstance(item.data.get(name), str)), None)
        shown = {name: value for name, value in item.data.items() if name not in ("id", *REFERENCE_FIELDS)}
        return named if named is not None else _text(shown)

    def reference(self, item: Item) -> str:
        """The item's right answer, where it has one under a usual name."""
        return next((_text(item.data[name]) for name in REFERENCE_FIELDS if item.data.get(name) is not None), "")

    def references(self, item: Item) -> Sequence[str]:
        """Every text under the usual names of right answers; none may be copied into a skill."""
        values = (item.data[name] for name in REFERENCE_FIELDS if item.data.get(name) is not None)
        return [_text(part) for value in values for part in (value if isinstance(value, list) else [value])]

    def score(self, item: Item, answer: Any) -> Score:
        """What the given function says of an answer. Raises TypeError or ValueError for what is no score."""
        return _as_score(self._judge(copy.deepcopy(item.to_dict()), answer))

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        """One call of each function."""
        done = self._do(item, skill)
        chat.cancel.raise_if_cancelled()
        rollout = done if isinstance(done, Rollout) else Rollout(done)
        if rollout.answer is None:
            return error_result(
                item.id, f"item {item.id!r} is ungraded: run_item returned None; return the answer, even if empty"
            )
        try:
            score = self.score(item, rollout.answer)
        except SkillOptError:
            raise
        except Exception as error:  # noqa: BLE001 - a person's own code; recorded as the item's error
            return error_result(item.id, f"item {item.id!r} is ungraded: score: {type(error).__name__}: {error}")
        return self._result_of(item, rollout, score)

    def fingerprint(self) -> str:
        """Hash of the version, or of the functions themselves."""
        return self._fingerprint

    def _do(self, item: Item, skill: str) -> Any:
        try:
            return self._run(copy.deepcopy(item.to_dict()), skill)
        except SkillOptError:
            raise
        except (ConnectionError, TimeoutError) as error:
            raise TransientError(f"run_item raised {type(error).__name__}: {error}") from error

    def _result_of(self, item: Item, rollout: Rollout, score: Score) -> RolloutResult:
        answer = _text(rollout.answer)
        question = self.question(item)
        steps = rollout.trajectory or ({"role": "user", "content": question}, {"role": "assistant", "content": answer})
        kind = "wrong_answer" if answer.strip() else "no_answer"
        return RolloutResult(
            id=item.id,
            hard=score.hard,
            soft=score.soft,
            n_turns=max(1, len(rollout.trajectory)),
            fail_reason="" if score.hard >= 1 else f"{kind}: {score.feedback}".strip(),
            task_type=self.task_type(item),
            predicted_answer=answer,
            question=question,
            reference_text=self.reference(item),
            trajectory=tuple({"role": "agent", "content": s} if isinstance(s, str) else dict(s) for s in steps),
        )


def _check_function(name: str, function: object) -> None:
    if not callable(function):
        raise ConfigError(f"{name} must be a function of two arguments, not a {type(function).__name__}.")
    if inspect.iscoroutinefunction(function):
        raise ConfigError(
            f"{name} is an async function; give a plain one, for example lambda a, b: asyncio.run({name}(a, b))."
        )


def _as_score(given: object) -> Score:
    if isinstance(given, Real):
        given = Score(float(given), float(given))
    if not isinstance(given, Score):
        raise TypeError(f"expected a number in 0..1 or a Score, got {given!r}")
    for name, value in (("hard", given.hard), ("soft", given.soft)):
        if not is_unit_value(value):
            raise ValueError(f"{name} is {value!r}, not a number in 0..1")
    return given


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
