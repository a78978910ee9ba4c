"""The base of environments whose tasks are a question to a model: they say what to ask and how to score.

The contract under it, `EnvAdapter`, is importable from here too: a custom environment subclasses one of the two.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillopt.envs.adapter import EnvAdapter
from skillopt.envs.exec_target import asker
from skillopt.types import Item, JsonObject, RolloutResult

if TYPE_CHECKING:
    from skillopt.datasets.base import BaseDataLoader, BatchSpec
    from skillopt.envs.chat import Chat
    from skillopt.model.values import ModelReply
    from skillopt.scoring import Score

__all__ = ["EnvAdapter", "TaskEnv", "is_unit_value", "spoken"]

_CUT_OFF = "The reply was cut off at its token limit."


class TaskEnv(EnvAdapter):
    """An environment whose task is a question to the target model. Subclasses implement `messages` and `score`.

    Environments of several turns implement `run_item` as well and end it with `result`.
    """

    call_options: Mapping[str, Any] = {}
    """Fields of every ModelCall, such as `max_completion_tokens`."""

    train_options: Mapping[str, Any] = {}
    """What `run_item` finds as `chat.rollout_options` in rollouts of training batches, and only there."""

    @abstractmethod
    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """The prompt of an item. What is the same for all items (instructions, skill) comes first."""

    @abstractmethod
    def score(self, item: Item, answer: str) -> Score:
        """How good an answer is, with words for the optimizer when it is not right."""

    def answer(self, reply_text: str) -> str:
        """The answer inside a reply."""
        return reply_text.strip()

    def task_type(self, item: Item) -> str:
        """Type of the task, or an empty text."""
        return str(item.data.get("task_type") or "")

    def question(self, item: Item) -> str:
        """The task in words, as shown to analysts."""
        return str(item.data.get("question") or "")

    def reference(self, item: Item) -> str:
        """The right answer in words, as shown to analysts."""
        return str(item.data.get("reference_text") or "")

    def build_reference_text(self, item: Mapping[str, Any]) -> str:
        """What an analyst may see of the right answer of an item."""
        return self.reference(Item.from_dict(item))

    def build_train_env(self, batch_size: int, seed: int, **kw: Any) -> Any:
        """Item dicts of one training batch of the loader."""
        return self.build_env_from_batch(self._loader().build_train_batch(batch_size, seed), **kw)

    def build_eval_env(self, env_num: int, split: str, seed: int, **kw: Any) -> Any:
        """Item dicts of one split of the loader, in file order."""
        return self.build_env_from_batch(self._loader().build_eval_batch(env_num, split, seed), **kw)

    def build_env_from_batch(self, batch: BatchSpec, **kw: Any) -> Any:  # noqa: ARG002
        """Item dicts of a batch."""
        return list(batch.payload or [])

    def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:  # noqa: ARG002
        """Result dicts of the given item dicts. `context` in `kw` is the RunContext to run in.

        Without a context the active model session is used, and nothing is kept beyond the returned rows.
        """
        from skillopt.envs.runner import RunContext, run_items

        context = kw.get("context") or RunContext.of_active_session(self, skill_content)
        items = [item if isinstance(item, Item) else Item.from_dict(item) for item in env_manager]
        return [result.to_dict() for result in run_items(self, items, skill_content, context)]

    def get_task_types(self) -> list[str]:
        """Task types of all items, in the order of the splits and of their items."""
        from skillopt.datasets.base import SplitDataLoader

        loader = self.get_dataloader()
        if not isinstance(loader, SplitDataLoader):
            return []
        types = [self.task_type(item) for split in ("train", "val", "test") for item in loader.items(split)]
        return list(dict.fromkeys(kind for kind in types if kind))

    def runs_agents(self) -> bool:
        """Whether a coding agent can be the target: true of the `run_item` here, to be said by any other."""
        return type(self).run_item is TaskEnv.run_item

    def one_call(self) -> bool:
        """Whether an item is one call with `messages`, so that a plan knows what a rollout takes."""
        return type(self).run_item is TaskEnv.run_item

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        """Do one item: one call, one answer, one score. For a coding agent the prompt is its task."""
        ask, prompted = asker(chat, skill)
        messages = self.messages(item, prompted)
        reply = ask(messages)
        return self.result(item, self.answer(reply.text), messages, [spoken(reply)], chat)

    def extras(self, item: Item, answer: str) -> Mapping[str, Any]:  # noqa: ARG002
        """What the row of an item says besides, by name."""
        return {}

    def result(
        self,
        item: Item,
        answer: str,
        messages: Sequence[Mapping[str, Any]],
        turns: Sequence[Mapping[str, Any]],
        chat: Chat,
    ) -> RolloutResult:
        """The scored result of an item. `messages` is the first prompt, `turns` is what happened after it."""
        score, ungraded = self._grade(item, answer)
        cut = chat.finish_reason == "length"
        trajectory = [m for m in messages if m.get("role") != "system"] + list(turns)
        if cut:
            trajectory.append({"role": "system", "content": _CUT_OFF})
        return RolloutResult(
            id=item.id,
            hard=score.hard if score else 0.0,
            soft=score.soft if score else 0.0,
            status="ok" if score else "error",
            error=ungraded,
            n_turns=max(1, sum(1 for turn in turns if turn.get("role") == "assistant")),
            fail_reason="" if score is None or score.hard >= 1 else _fail_reason(answer, score, cut=cut),
            task_type=self.task_type(item),
            predicted_answer=answer,
            question=self.question(item),
            reference_text=self.reference(item),
            target_system_prompt=_prompt_text(messages, "system"),
            target_user_prompt=_prompt_text(messages, "user"),
            trajectory=tuple(trajectory),
            usage=chat.usage,
            extras={
                "finish_reason": chat.finish_reason,
                "model": chat.model,
                **self._traces(chat),
                **self.extras(item, answer),
            },
        )

    def _grade(self, item: Item, answer: str) -> tuple[Score | None, str]:
        try:
            score: Score | None = self.score(item, answer)
        except Exception as error:  # noqa: BLE001 - a scorer may be a person's own code; recorded as the item's error
            return None, f"item {item.id!r} is ungraded: the scorer raised {type(error).__name__}: {error}"
        if score is None:
            return None, f"item {item.id!r} is ungraded: the scorer returned None"
        for name, value in (("hard", score.hard), ("soft", score.soft)):
            if not is_unit_value(value):
                return None, f"item {item.id!r} is ungraded: {name} is {value!r}, not a number in 0..1"
        return score, ""

    def _traces(self, chat: Chat) -> JsonObject:
        """What is kept of an agent's work: its trace, and its summary for the optimizer where that is asked for."""
        if chat.work is None:
            return {}
        shown = bool(chat.work.summary and self._cfg.get("codex_trace_to_optimizer"))
        return {"agent_trace": chat.work.trace, **({"codex_trace_summary": chat.work.summary} if shown else {})}

    def _loader(self) -> BaseDataLoader:
        loader = self.get_dataloader()
        if loader is None:
            raise NotImplementedError(f"{type(self).__name__} has no loader: implement get_dataloader.")
        return loader


def spoken(reply: ModelReply) -> JsonObject:
    """The trajectory entry of a model's reply."""
    entry: JsonObject = {"role": "assistant", "content": reply.text}
    if reply.finish_reason == "length":
        entry["finish_reason"] = reply.finish_reason
    return entry


def is_unit_value(value: object) -> bool:
    """Whether a value is a score: a finite number (or bool) in 0..1."""
    return isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value <= 1


def _fail_reason(answer: str, score: Score, *, cut: bool) -> str:
    """What went wrong, as `group: words`; analysts count failures by the group."""
    if cut:
        return f"cut_off: {_CUT_OFF} {score.feedback}".strip()
    return f"{'wrong_answer' if answer.strip() else 'no_answer'}: {score.feedback}".strip()


def _prompt_text(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    return "\n\n".join(_content_text(m.get("content")) for m in messages if m.get("role") == role)


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else []
    return "\n".join(str(p["text"]) for p in parts if isinstance(p, Mapping) and "text" in p)
