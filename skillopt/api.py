"""Training, scoring and planning from Python. The command lines call the same functions.

    import skillopt

    trained = skillopt.train("configs/quickstart/default.yaml")
    trained.skill, trained.score, trained.test_score

A configuration is a YAML file, the same settings as a mapping (structured or flat, `_base_` may name a file), or a
`RunConfig`. Every error is a `skillopt.errors.SkillOptError` whose text says what to do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.config.providers import PROVIDERS, normalize_role_backend
from skillopt.config.resolve import check_available, check_env_keys, resolve
from skillopt.config.run_config import RunConfig
from skillopt.datasets.memory import MemoryLoader
from skillopt.engine import trainer
from skillopt.engine.doctor import diagnose
from skillopt.engine.doctor_install import diagnose_installation
from skillopt.engine.findings import Finding
from skillopt.engine.plan import Plan, make_plan, refuse_too_small
from skillopt.engine.run_dir import RunDir
from skillopt.engine.scoring import score_skill
from skillopt.engine.setup import parse_skill
from skillopt.envs.functions import FunctionEnv, Rollout, RunItem, ScoreAnswer
from skillopt.envs.identity import identity_of
from skillopt.errors import ConfigError
from skillopt.model.scripted import ScriptedModel
from skillopt.scoring import Score
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, RoleConfig
from skillopt.utils.files import read_text

if TYPE_CHECKING:
    from skillopt.envs.base import EnvAdapter
    from skillopt.tracking.events import Sink
    from skillopt.utils.cancel import CancelToken

__all__ = [
    "Finding",
    "OptimizedSkill",
    "Plan",
    "Rollout",
    "Score",
    "doctor",
    "evaluate",
    "optimize_skill",
    "plan",
    "train",
]

ConfigSource = str | Path | Mapping[str, Any] | RunConfig
Optimizer = str | Mapping[str, Any] | RoleConfig | ScriptedModel | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class OptimizedSkill:
    """What a run learned. `skill` is the best text, `out_root` the run's folder, `summary` its `summary.json`.

    Scores are mean hard scores in 0..1, None where there is none.
    """

    skill: str
    out_root: Path
    summary: JsonObject = field(repr=False)

    @property
    def baseline(self) -> float | None:
        """Score of the initial skill on the validation items."""
        return self._score("baseline_selection_hard")

    @property
    def score(self) -> float | None:
        """Score of the learned skill on the validation items, on which it was chosen."""
        return self._score("best_selection_hard")

    @property
    def test_baseline(self) -> float | None:
        """Score of the initial skill on the test items."""
        return self._score("baseline_test_hard")

    @property
    def test_score(self) -> float | None:
        """Score of the learned skill on the test items, which decided nothing."""
        return self._score("test_hard")

    def _score(self, name: str) -> float | None:
        value = self.summary.get(name)
        return None if value is None else float(value)


def train(
    config: ConfigSource,
    *,
    adapter: EnvAdapter | None = None,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> OptimizedSkill:
    """Train a skill, or go on with a run that was stopped, in the folder `env.out_root`.

    `adapter`: an environment that is set up already, in place of the one that `env.name` names. `sinks` receive every
    event. `stop.cancel()` ends the run with everything kept.

    Raises UsageError when something must be changed first (also when a budget does not allow one complete step),
    ModelError and RunError when the run cannot go on, BudgetExceededError when a budget is used up; the same call
    then goes on from there.
    """
    return _train(_resolved(config, "train"), adapter, None, sinks=sinks, stop=stop)


def evaluate(
    skill: str | Path | Skill,
    config: ConfigSource,
    *,
    split: str = "val",
    adapter: EnvAdapter | None = None,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> JsonObject:
    """Score a skill on a split (`train`, `val`, `test`, or `all`) and return what `eval_summary.json` holds.

    `skill`: a text, a `Path`, or one line that ends in `.md` and names a file. Raises as `train` does.
    """
    settings = _resolved(config, "eval")
    name, document = _skill_of(skill)
    return score_skill(settings, document, split, name=name, adapter=adapter, sinks=sinks, stop=stop)


def plan(config: ConfigSource, *, adapter: EnvAdapter | None = None) -> Plan:
    """What a run would take at least and at most: calls, tokens, price. Calls no model and writes nothing.

    Raises UsageError for a configuration or data that cannot be used.
    """
    return make_plan(_resolved(config, "train"), adapter)


def doctor(
    config: ConfigSource | None = None, *, cfg_options: Sequence[str] = (), offline: bool = False
) -> list[Finding]:
    """What would stop a run with this configuration, or any run when there is none: one finding for each thing checked.

    A finding of the level `fail` would stop a run; `fix` is the command, key or variable that mends it. Makes one tiny
    call to each distinct model unless `offline`, and writes nothing. Raises nothing for what it finds.
    """
    if config is None:
        return diagnose_installation()
    return diagnose(config, cfg_options=cfg_options, offline=offline)


def optimize_skill(  # noqa: PLR0913 - a program names what it has
    skill: str | Path | Skill,
    train: Sequence[Mapping[str, Any]],
    val: Sequence[Mapping[str, Any]],
    *,
    run_item: RunItem,
    score: ScoreAnswer,
    test: Sequence[Mapping[str, Any]] = (),
    optimizer: Optimizer | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    out_root: str | Path | None = None,
    version: str = "",
    workers: int = 8,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> OptimizedSkill:
    """Train the skill of an agent that is a function.

    `run_item(item, skill)` does one item with the text of a skill and returns the answer, or a `Rollout` with what
    happened on the way. `score(item, answer)` returns a number in 0..1 or a `Score` with words for the optimizer. Both
    are called from up to `workers` threads. Their exceptions make an item an error, never a score of 0; errors that
    usually pass (`ConnectionError`, `TimeoutError`, `skillopt.errors.TransientError`) are tried again.

    `train`, `val`, `test`: items as mappings with a unique `id` and JSON values. `skill`: as for `evaluate`.
    `optimizer`: `"backend/model"`, a mapping with `backend`, `model` and the backend's settings, a `RoleConfig`, a
    `ScriptedModel`, or a function from a `ModelCall` to a text. `config`: further settings, as a file or a mapping.
    `out_root`: the run's folder; without one, a new folder for temporary files. With one, the same call goes on where
    a run was stopped; `version` then stands for the functions and whatever they use (without it, their source and
    the plain values in them).

    Raises as `train` does, and ConfigError or DataError for functions or items that cannot be used.
    """
    loader = MemoryLoader({"train": train, "val": val, "test": test})
    adapter = FunctionEnv(loader, run_item, score, version=version, workers=workers)
    root = Path(out_root) if out_root is not None else Path(tempfile.mkdtemp(prefix="skillopt_"))
    settings = _settings_of_functions(config, root, optimizer)
    adapter.setup(settings.flat())
    return _train(settings, adapter, _skill_of(skill)[1], sinks=sinks, stop=stop)


def _settings_of_functions(
    config: str | Path | Mapping[str, Any] | None, root: Path, optimizer: Optimizer | None
) -> RunConfig:
    """The checked settings of a run in `root` whose target is a function: no model stands behind that role."""
    role = _optimizer_role(optimizer)
    flags: dict[str, object] = {
        **_optimizer_flags(optimizer if role is None else {"backend": role.backend, "model": role.model}),
        "env": "functions",
        "out_root": str(root),
        "target_backend": "mock_chat",
        "target_model": "run_item",
    }
    settings = resolve({} if config is None else config, flags=flags, command="train")
    if role is not None:
        settings = replace(settings, roles={**settings.roles, "optimizer": replace(role, role="optimizer")})
    check_env_keys(settings, ())
    check_available(settings)
    return settings


def _train(
    settings: RunConfig,
    adapter: EnvAdapter | None,
    initial: Skill | None,
    *,
    sinks: Sequence[Sink],
    stop: CancelToken | None,
) -> OptimizedSkill:
    folder = RunDir(Path(settings.env.out_root))
    if not folder.store.exists():
        refuse_too_small(settings, adapter, initial)
    summary = trainer.train(settings, adapter=adapter, initial=initial, sinks=sinks, stop=stop)
    return OptimizedSkill(read_text(folder.best_skill), folder.root, summary)


def _resolved(config: ConfigSource, command: str) -> RunConfig:
    return config if isinstance(config, RunConfig) else resolve(config, command=command)


def _skill_of(skill: str | Path | Skill) -> tuple[str, Skill]:
    """What to call a skill, and the skill."""
    if isinstance(skill, Skill):
        return "", skill
    if isinstance(skill, Path) or ("\n" not in skill and skill.endswith(".md")):
        return str(skill), parse_skill(Path(skill))
    return "", Skill.parse(skill)


def _optimizer_role(optimizer: Optimizer | None) -> RoleConfig | None:
    """The role of an optimizer that is given as an object, None when it is described by settings."""
    if isinstance(optimizer, RoleConfig):
        return optimizer
    if isinstance(optimizer, ScriptedModel):
        return optimizer.role("optimizer")
    if callable(optimizer):
        name = getattr(optimizer, "__name__", type(optimizer).__name__)
        model = f"{name}-{identity_of(optimizer)[:8]}"
        return ScriptedModel(optimizer, name=name).role("optimizer", model=model)
    return None


def _optimizer_flags(optimizer: str | Mapping[str, Any] | Any) -> dict[str, object]:
    """An optimizer's settings by the names of the configuration's keys."""
    if optimizer is None:
        return {}
    if isinstance(optimizer, str):
        backend, _, model = optimizer.partition("/")
        optimizer = {"backend": backend, **({"model": model} if model else {})}
    if not isinstance(optimizer, Mapping):
        raise ConfigError(
            f"optimizer: expected backend/model, a mapping or a function, not {type(optimizer).__name__}."
        )
    given = dict(optimizer)
    backend = normalize_role_backend("optimizer", str(given.pop("backend", "") or "openai_chat"))
    flags: dict[str, object] = {"optimizer_backend": backend}
    if given.get("model"):
        flags["optimizer_model"] = given.pop("model")
    names = {field.name: field.keys_for("optimizer")[0] for field in PROVIDERS[backend].fields}
    return {**flags, **{names.get(name, name): value for name, value in given.items()}}
