"""The contract of an environment: what a custom one subclasses. It may run its items in any way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from skillopt.envs import references
from skillopt.envs.fingerprint import default_fingerprint, package_folder
from skillopt.prompts.modes import PATCH, UPDATE_MODES
from skillopt.types import Item

if TYPE_CHECKING:
    from skillopt.datasets.base import BaseDataLoader, BatchSpec


class EnvAdapter(ABC):
    """One environment of one run.

    Subclasses implement `build_train_env`, `build_eval_env`, `rollout` and `get_task_types`. A result dict needs `id`,
    `hard` and `soft` (0..1). Further keys that the engine reads are the fields of `RolloutResult`; a row with
    `agent_ok: false`, `status: error` or a non-empty `error` is an error, not a score.
    """

    result_roles: ClassVar[tuple[str, ...]] = ("target",)
    """Roles whose models can change a result; part of the key under which results are kept."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """What the target's backend must be able to carry: `images`, `tools`. Another backend is refused at the start."""

    agents_with: ClassVar[str] = ""
    """The setting with which coding agents can be targets, such as `env.mode=single`, where others rule them out."""

    _cfg: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    """What the registry passed to the constructor."""

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Receive the flat configuration once, before anything else."""
        self._cfg = dict(cfg)

    def get_dataloader(self) -> BaseDataLoader | None:
        """The loader whose batches the engine draws, or None when the environment draws its own."""
        return None

    def requires_ray(self) -> bool:
        """Whether the environment needs a running ray."""
        return False

    def runs_agents(self) -> bool:
        """Whether a coding agent can be the target (see `skillopt.envs.exec_target`)."""
        return True

    @abstractmethod
    def build_train_env(self, batch_size: int, seed: int, **kw: Any) -> Any:
        """An object for `rollout` with `batch_size` training tasks drawn with `seed`."""

    @abstractmethod
    def build_eval_env(self, env_num: int, split: str, seed: int, **kw: Any) -> Any:
        """An object for `rollout` with the first `env_num` tasks of `split`; 0 stands for all."""

    def build_env_from_batch(self, batch: BatchSpec, **kw: Any) -> Any:
        """An object for `rollout` with the tasks of a loader's batch."""
        if batch.phase == "train":
            return self.build_train_env(batch.batch_size, batch.seed, **kw)
        return self.build_eval_env(batch.batch_size, batch.split, batch.seed, **kw)

    @abstractmethod
    def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:
        """Do every task of `env_manager` with the skill; one result dict (or RolloutResult) each.

        `use_eval_feedback=True` is among `kw` for training rollouts.
        """

    def reflect(
        self,
        results: list[Any],  # noqa: ARG002
        skill_content: str,  # noqa: ARG002
        out_dir: str,  # noqa: ARG002
        **kw: Any,  # noqa: ARG002
    ) -> list[dict[str, Any] | None] | None:
        """Raw patch dicts made from results. The default, None, stands for the engine's own analyst stage."""
        return None

    @abstractmethod
    def get_task_types(self) -> list[str]:
        """Names of the task types that test scores are broken down by."""

    def get_error_minibatch_prompt(self) -> str | None:
        """Prompt of the analyst of failures: `prompts/analyst_error.md` beside the class; None: the engine's."""
        return self._own_prompt("analyst_error")

    def get_success_minibatch_prompt(self) -> str | None:
        """Prompt of the analyst of successes: `prompts/analyst_success.md` beside the class; None: the engine's."""
        return self._own_prompt("analyst_success")

    def build_reference_text(self, item: Mapping[str, Any]) -> str:
        """What an analyst may see of the right answer of an item."""
        return str(item.get("reference_text") or "")

    def references(self, item: Item) -> Sequence[str]:
        """Every text that is a right answer of an item; none of them may be copied into a skill."""
        text = self.build_reference_text(item.to_dict())
        return [text] if text else []

    def grader_patterns(self) -> Sequence[str]:
        """Regular expressions by which answers are graded; a skill that quotes one is refused."""
        return ()

    def grader_literals(self) -> Sequence[str]:
        """Texts that the grader looks for inside an answer; a skill that adds one causes a notice."""
        return ()

    def get_reference_metadata(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """`fields` and `preview` (first 400 characters) of the item's reference."""
        return references.metadata(self.build_reference_text(item))

    def attach_reference_context(
        self, results: list[dict[str, Any]], items: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Copies of result rows with the reference text of their items, matched by id."""
        return references.attach(results, items, self.build_reference_text)

    def select_representative_items(
        self,
        results: list[dict[str, Any]],
        items: list[dict[str, Any]],
        *,
        n_failures: int,
        n_successes: int,
        seed: int,
    ) -> list[Mapping[str, Any]]:
        """A seeded choice of items, failures first, one of each task type before a second of any."""
        return references.representatives(results, items, failures=n_failures, successes=n_successes, seed=seed)

    def fingerprint(self) -> str:
        """Hash of everything here that can change a result. Results of another fingerprint are never reused."""
        return default_fingerprint(type(self), self.settings)

    def _own_prompt(self, name: str) -> str | None:
        folder = package_folder(type(self))
        if folder is None:
            return None
        mode = UPDATE_MODES.get(str(self._cfg.get("skill_update_mode", "")), PATCH)
        path = folder / "prompts" / f"{name}{mode.suffix}.md"
        return path.read_text(encoding="utf-8") if path.is_file() else None


def overrides_reflect(env: EnvAdapter) -> bool:
    """Whether an environment brings its own `reflect` in place of the engine's analyst stage."""
    return type(env).reflect is not EnvAdapter.reflect
