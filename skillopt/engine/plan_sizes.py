"""How long prompts and replies will be: measured on the actual items where that is possible, assumed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING

from skillopt.datasets.base import SplitDataLoader
from skillopt.engine.plan_counts import Shape
from skillopt.envs.base import TaskEnv
from skillopt.errors import SkillOptError
from skillopt.gradient.trajectories import TRAJECTORY_TOKENS
from skillopt.optimizer.comparison import COMPARISON_TOKENS
from skillopt.prompts import load_prompt
from skillopt.prompts.tokens import count_tokens

if TYPE_CHECKING:
    from skillopt.envs.base import EnvAdapter

TARGET_REPLY_TOKENS = (20, 500)
"""How long a target's reply is taken to be, at least and at most."""
OPTIMIZER_REPLY_TOKENS = (200, 2000)
"""How long an optimizer's reply is taken to be, at least and at most."""
EDIT_TOKENS = 60
"""By how much one edit is taken to lengthen the skill, and a prompt that lists it."""
_HEADER_TOKENS = 80  # what is said about a trajectory beside its conversation
_UNKNOWN_PROMPT = 1000  # system prompt of a stage whose prompt is not a file of its name


class PromptSizes:
    """Tokens of the prompts and replies of a run of `shape` that starts from `skill`.

    `prompts`: mean prompt tokens of an item by split under that skill; None when an item is no single call of texts.
    `growth`: by how much the skill is longer at the end when every step applies all the edits that it may.
    """

    def __init__(self, shape: Shape, adapter: EnvAdapter, skill: str) -> None:
        self.shape, self.adapter, self.skill = shape, adapter, skill
        self.growth = shape.steps * shape.edits * EDIT_TOKENS
        self.prompts = self._target_prompts()

    def target_reply(self) -> tuple[int, int]:
        """Tokens of a target's reply, within the limit that the environment sets."""
        limit = getattr(self.adapter, "call_options", {}).get("max_completion_tokens") or TARGET_REPLY_TOKENS[1]
        return min(TARGET_REPLY_TOKENS[0], limit), min(TARGET_REPLY_TOKENS[1], limit)

    def optimizer_prompt(self, stage: str) -> tuple[int, int]:
        """Prompt tokens of one call of a stage: its instructions, the skill, and trajectories or edits."""
        config, skill = self.shape.config, count_tokens(self.skill)
        task = (self.prompts or {}).get("train", TRAJECTORY_TOKENS // 4)
        shortest, longest = (min(TRAJECTORY_TOKENS, task + size + _HEADER_TOKENS) for size in self.target_reply())
        base = _system_tokens(stage) + skill
        if stage == "analyst":
            group = min(int(config.gradient.minibatch_size), max(self.shape.batch_sizes, default=1))
            return base + shortest, base + self.growth + group * longest
        if stage in ("slow_update", "meta_skill"):
            pairs = min(int(config.optimizer.slow_update_samples), self.shape.items["train"])
            return base + skill, base + skill + 2 * self.growth + min(COMPARISON_TOKENS, 2 * pairs * longest)
        listed = int(config.gradient.merge_batch_size) * int(config.optimizer.learning_rate) * EDIT_TOKENS
        return base, base + self.growth + listed

    def _target_prompts(self) -> dict[str, int] | None:
        env, loader = self.adapter, self.adapter.get_dataloader()
        if not isinstance(env, TaskEnv) or not env.one_call():
            return None
        if not isinstance(loader, SplitDataLoader):
            return None
        means = {}
        for split in ("train", "val", "test"):
            sizes = []
            for item in loader.items(split)[: self.shape.items[split]]:
                try:
                    messages = env.messages(item, self.skill)
                except (SkillOptError, LookupError, TypeError, ValueError):
                    continue  # the run says what is wrong with this item, and does without it
                texts = [_text(message.get("content")) for message in messages]
                if None in texts:
                    return None
                sizes.append(sum(count_tokens(text) for text in texts if text))
            means[split] = ceil(sum(sizes) / len(sizes)) if sizes else 0
        return means


def _text(content: object) -> str | None:
    """The text of a message; None when it has other parts, such as images, whose tokens nobody knows."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    return "\n".join(str(text) for text in texts) if None not in texts else None


def _system_tokens(stage: str) -> int:
    name = {"analyst": "analyst_error", "merge": "merge_failure"}.get(stage, stage)
    try:
        return count_tokens(load_prompt(name))
    except FileNotFoundError:
        return _UNKNOWN_PROMPT
