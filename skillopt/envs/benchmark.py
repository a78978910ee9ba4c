"""The base of the built-in benchmarks: splits, prompt files, rounds of one conversation, and two ways to score.

A benchmark adds what differs: how a row of its data becomes an item, its messages, its answers and its scores.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skillopt.datasets.base import SplitDataLoader
from skillopt.envs.base import spoken
from skillopt.envs.chat import Chat
from skillopt.envs.exec_target import asker
from skillopt.envs.fingerprint import NEUTRAL_SETTINGS, default_fingerprint, package_folder
from skillopt.envs.splits import SplitEnv
from skillopt.errors import ConfigError, DataError
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

_RULES_VERSION = 1  # raise it when something outside a benchmark's folder changes results
Row = dict[str, Any]
SCORINGS = ("strict", "paper")


class BenchmarkLoader(SplitDataLoader):
    """Reads rows as its base does and brings each into the form of the benchmark with `normalize`."""

    def __init__(self, normalize: Callable[[Row], Row], **settings: Any) -> None:
        super().__init__(**settings)
        self._normalize = normalize

    def load_split_items(self, split_path: str) -> list[Row]:
        """Normalised rows of one split."""
        return [self._normalize(row) for row in super().load_split_items(split_path)]

    def load_raw_items(self, data_path: str) -> list[Row]:
        """Normalised rows of the source that ratio mode cuts."""
        return [self._normalize(row) for row in super().load_raw_items(data_path)]


@dataclass(eq=False)
class BenchmarkEnv(SplitEnv):
    """A benchmark. `max_turns`: replies in which the target may come to an answer.

    `scoring`: `strict` compares as a careful reader would; `paper` uses the formula of the published results, for
    comparison with them. Prompts are the files `prompts/*.md` beside the class.
    """

    max_turns: int = 1
    scoring: str = "strict"

    def __post_init__(self) -> None:
        if self.scoring not in SCORINGS:
            raise ConfigError(f"env.scoring is {self.scoring!r}; expected {' or '.join(SCORINGS)}.")
        if self.max_turns < 1:
            raise ConfigError(f"env.max_turns is {self.max_turns}; expected 1 or more.")
        super().__post_init__()

    def make_loader(self, **settings: Any) -> SplitDataLoader:
        """A loader that brings every row into the form of the benchmark."""
        return BenchmarkLoader(self.normalize, **settings)

    def normalize(self, row: Row) -> Row:
        """A row of the data as an item of this benchmark; what is an item already stays as it is.

        Raises DataError for a row that cannot be one.
        """
        return row

    @abstractmethod
    def check(self, item: Item) -> None:
        """Raise DataError, naming item and field, for an item that nobody could do or that cannot be scored."""

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load the splits and check every item."""
        self._need_data(cfg)
        super().setup(cfg)
        for item in self.all_items():
            self.check(item)

    def _need_data(self, cfg: Mapping[str, Any]) -> None:
        """Raise DataError, with the command that makes the data, when the folder of the splits is not there."""
        folder = str(self.split_dir or cfg.get("split_dir") or "")
        mode = cfg.get("split_mode") or self.split_mode
        if mode == "split_dir" and folder and not Path(folder).exists():
            name = benchmark_name(type(self))
            if Path(folder) == Path("data", "samples", name):
                raise DataError(f"env.split_dir: {folder} does not exist; `skillopt data samples {name}` writes it.")
            sample = f"configs/{name}/sample.yaml"
            raise DataError(
                f"env.split_dir: {folder} does not exist; `{materialize_command(type(self))}` makes it from the "
                f"public data, and {sample} runs on a few items that are shipped."
            )

    def text_of(self, item: Item, name: str, *, required: bool = False) -> str:
        """A field of an item as text, empty when it is missing. Raises DataError for a blank one that is required."""
        value = item.data.get(name)
        text = value if isinstance(value, str) else "" if value is None else str(value)
        if required and not text.strip():
            raise DataError(f"item {item.id!r}: field {name!r} is missing or empty.")
        return text

    def prompt(self, name: str, **values: str) -> str:
        """Text of `prompts/<name>.md`, with `{key}` replaced by each value. Braces inside values stay as they are."""
        folder = package_folder(type(self))
        assert folder is not None, "benchmarks live in packages"
        parts = (folder / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip("\n")
        return fill(parts, values)

    def with_skill(self, name: str, skill: str, **values: str) -> str:
        """A system prompt: the file's text, then the skill under a heading of its own (nothing if it is blank)."""
        instructions = self.prompt(name, **values)
        return f"{instructions}\n\n## Skill\n\n{skill.strip()}" if skill.strip() else instructions

    def answered(self, reply_text: str) -> bool:
        """Whether a reply holds an answer, so that no further round is needed."""
        return bool(self.answer(reply_text))

    def ask_again(self, item: Item) -> str:  # noqa: ARG002
        """What the user says after a reply without an answer."""
        return "There is no answer between <answer> and </answer> yet. Check your work and give it."

    def fingerprint(self) -> str:
        """Hash of the benchmark's sources and prompts and of the settings that can change a result."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NEUTRAL_SETTINGS}
        return content_hash(_RULES_VERSION, default_fingerprint(type(self), own))

    def runs_agents(self) -> bool:
        """Whether a coding agent can be the target: true of the `run_item` here, to be said by any other."""
        return type(self).run_item is BenchmarkEnv.run_item

    def one_call(self) -> bool:
        """Whether an item is one call, which is so with one turn."""
        return self.max_turns == 1 and type(self).run_item is BenchmarkEnv.run_item

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        """Up to `max_turns` replies in one conversation that keeps everything said before; the last one counts.

        A coding agent starts anew for each of them, with the conversation as its task.
        """
        ask, prompted = asker(chat, skill)
        messages = self.messages(item, prompted)
        talk, turns = list[Mapping[str, Any]](messages), list[JsonObject]()
        for left in reversed(range(self.max_turns)):
            reply = ask(talk)
            turns.append(spoken(reply))
            if not left or self.answered(reply.text):
                break
            again: JsonObject = {"role": "user", "content": self.ask_again(item)}
            talk += [reply.message().model_dump(), again]
            turns.append(again)
        return self.result(item, self.answer(reply.text), messages, turns, chat)


def benchmark_name(cls: type) -> str:
    """Name of a benchmark: that of the folder of its class."""
    folder = package_folder(cls)
    return folder.name if folder is not None else cls.__name__


def materialize_command(cls: type) -> str:
    """The command that makes the splits of a benchmark from its public data."""
    return f"skillopt data materialize {benchmark_name(cls)}"


def headed(parts: Mapping[str, str]) -> str:
    """Each text that is not blank under its heading, with blank lines between."""
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text.strip())


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with each `{key}` replaced by its value, in one pass: a value that looks like a key stays text."""
    names = "|".join(re.escape(name) for name in values)
    return re.sub(rf"\{{({names})\}}", lambda match: values[match[1]], template) if names else template
