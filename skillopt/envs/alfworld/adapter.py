"""The environment `alfworld`: household tasks in text games, one process an episode, one model call a step."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.datasets.materialize.games import DATA_VARIABLE, games_root
from skillopt.datasets.samples.alfworld import GAMES_FOLDER
from skillopt.envs.alfworld import games
from skillopt.envs.alfworld.episode import Episode
from skillopt.envs.alfworld.simulator import INSTALL, Seats, SimulatorPool
from skillopt.envs.benchmark import BenchmarkEnv, Row
from skillopt.envs.fingerprint import default_fingerprint
from skillopt.errors import ConfigError, DataError, MissingExtraError
from skillopt.scoring import Score
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

if TYPE_CHECKING:
    from skillopt.envs.chat import Chat
    from skillopt.model.values import ModelReply

DONE = "done"
_LIBRARIES = ("textworld", "alfworld", "fast_downward")
_VERSIONED = ("textworld", "alfworld")


@dataclass(eq=False)
class AlfworldEnv(BenchmarkEnv):
    """ALFWorld. The fields are the `env.*` keys.

    `max_steps`: actions of one episode. `workers`: episodes, each with its simulator, at the same time.
    `max_api_workers`: model calls at the same time. `data_root`: the folder of relative game files; blank:
    $ALFWORLD_DATA. `exec_timeout`: seconds for a whole episode.
    """

    max_turns: int = field(default=1, init=False)
    scoring: str = field(default="strict", init=False)
    exec_timeout: float = 3600
    workers: int = 8
    max_steps: int = 50
    max_api_workers: int = 8
    data_root: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_steps", "workers", "max_api_workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"env.{name} is {getattr(self, name)}; expected 1 or more.")
        self._root = games_root(self.data_root)
        self._pool = SimulatorPool(self.workers)
        self._calls = Seats(self.max_api_workers)
        weakref.finalize(self, self._pool.close)

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load the splits. Raises MissingExtraError without the game library, DataError for games that are missing."""
        absent = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
        if absent:
            raise MissingExtraError(
                f"env.name=alfworld needs the package {absent[0]}, which is missing; run: {INSTALL}"
            )
        super().setup(cfg)
        self._require_games(self.all_items())

    def normalize(self, row: Row) -> Row:
        """The row with its task type and a hash of its game, so that another game under the same name is noticed."""
        item = {**row, "task_type": games.task_type(row)}
        item.pop("game_hash", None)
        path = games.game_path(Item.from_dict({"id": "?", **row}), self._root)
        if path.is_file():
            item["game_hash"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        return item

    def check(self, item: Item) -> None:
        """Raise DataError for an item without a game file, or with one outside the data folder."""
        self.game_of(item)

    def game_of(self, item: Item) -> Path:
        """The game file of an item. Raises DataError."""
        return games.game_path(item, self._root)

    def messages(self, item: Item, skill: str) -> list[JsonObject]:  # noqa: ARG002
        """What every step of the episode begins with: role, form of the reply, skill."""
        return [{"role": "system", "content": self.with_skill("system", skill)}]

    def score(self, item: Item, answer: str) -> Score:  # noqa: ARG002
        """1 for an episode whose task was done, else 0."""
        done = float(answer == DONE)
        return Score(hard=done, soft=done)

    def reference(self, item: Item) -> str:
        """What the makers of the game wrote about its task."""
        return games.reference_text(self.game_of(item))

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        """Play one episode. A failing endpoint or simulator is an error, not a score."""
        prompt = self.messages(item, skill)

        def ask(messages: list[Mapping[str, Any]]) -> ModelReply:
            with self._calls.seat(chat.cancel):
                return chat(messages)

        with self._pool.game(self.game_of(item), chat.cancel) as (simulator, state):
            episode = Episode(
                simulator, state, prompt[0]["content"], self.prompt, ask, cancel=chat.cancel, max_steps=self.max_steps
            )
            episode.play()
        return self._row(item, episode, prompt, chat)

    def fingerprint(self) -> str:
        """Hash of the sources, the prompts, the simulator's version and the settings that can change a result."""
        own = {"max_steps": self.max_steps, "max_completion_tokens": self.max_completion_tokens}
        versions = [_version(name) for name in _VERSIONED]
        return content_hash(default_fingerprint(type(self), own), versions)

    def _row(self, item: Item, episode: Episode, prompt: list[JsonObject], chat: Chat) -> RolloutResult:
        result = self.result(item, DONE if episode.state.won else "not done", prompt, [], chat)
        return replace(
            result,
            n_turns=len(episode.steps),
            fail_reason=episode.fail_reason,
            task_description=episode.goal,
            question=episode.goal,
            target_system_prompt="",  # the same for every item; analysts are shown the skill once
            target_user_prompt=episode.first_prompt,
            trajectory=tuple(episode.steps),
            extras={
                **result.extras,
                "gamefile": item.data["gamefile"],
                "instruction_type": result.task_type,
                "malformed_replies": episode.malformed,
                "inadmissible_actions": episode.inadmissible,
            },
        )

    def _require_games(self, items: list[Item]) -> None:
        missing = [item for item in items if not self.game_of(item).is_file()]
        if not missing:
            return
        name = str(missing[0].data["gamefile"])
        fix = (
            "run: skillopt data samples alfworld"
            if name.startswith(f"{GAMES_FOLDER}/")
            else f"run alfworld-download and set {DATA_VARIABLE} (or env.data_root) to the folder it filled"
        )
        raise DataError(
            f"{len(missing)} of {len(items)} game files are missing, e.g. {name!r} of item {missing[0].id!r} "
            f"in {self._root}; {fix}."
        )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
