"""The training run, from the first evaluation to the summary.

    baseline ─▶ for each epoch, for each step: run_step, commit ─▶ final checks and tests ─▶ summary

A run that was stopped anywhere goes on when it is started again: committed steps are loaded, and whatever else was
finished is served by the store.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import SplitDataLoader
from skillopt.engine import setup
from skillopt.engine.finish import finish
from skillopt.engine.gating import gate_score
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.state import Progress, Saved, Standing, load_progress, save_progress
from skillopt.engine.step import StepPlan, run_step
from skillopt.envs.base import EnvAdapter
from skillopt.errors import ConfigError, SkillOptError
from skillopt.optimizer.step_buffer import StepEntry
from skillopt.skill.document import Skill
from skillopt.tracking.events import Sink
from skillopt.types import JsonObject
from skillopt.utils.cancel import CancelToken
from skillopt.utils.files import atomic_write_text, read_json

SMALL_SELECTION = 10  # below so many items, the report says that the gate has little to go by


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many steps a run has. `batches_per_epoch` counts accumulated batches."""

    epochs: int
    steps_per_epoch: int
    batches_per_epoch: int

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.epochs * self.steps_per_epoch

    @classmethod
    def of(cls, config: RunConfig, train_size: int) -> Schedule:
        """`steps_per_epoch = ceil(train_size / (batch_size * accumulation))`."""
        per_step = config.train.batch_size * config.train.accumulation
        steps = math.ceil(train_size / per_step)
        return cls(config.train.num_epochs, steps, steps * config.train.accumulation)


def train(
    config: RunConfig,
    *,
    adapter: EnvAdapter | None = None,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> JsonObject:
    """Train a skill and return the summary that is written to `summary.json`.

    `adapter`: an environment that is already set up, in place of the one that `env.name` names. `sinks` receive every
    event. `stop.cancel()` ends the run at the next item with everything kept. Raises SkillOptError; the class says
    what to do, and its `exit_code` what a command line ends with.
    """
    _refuse_unsupported(config)
    adapter = adapter or setup.prepare(config)
    skill = setup.initial_skill(config)
    schedule = Schedule.of(config, _train_size(config, adapter))
    with setup.open_kit(config, adapter, sinks=sinks, stop=stop) as kit:
        try:
            return _Run(kit, skill, schedule).train()
        except SkillOptError as error:
            kit.emit("run_stopped", reason=str(error), kind_of_error=type(error).__name__)
            raise


@dataclass(frozen=True, slots=True)
class _Run:
    kit: Kit
    initial: Skill
    schedule: Schedule

    def train(self) -> JsonObject:
        kit = self.kit
        fingerprint = setup.fingerprint(kit, self.initial)
        saved = load_progress(kit.folder, fingerprint, kit.emit)
        if saved is not None and self._is_finished(saved):
            kit.emit("notice", text=f"{kit.folder.root}: this run is finished; nothing was called.")
            summary: JsonObject = read_json(kit.folder.summary)
            return summary
        setup.write_config(kit, self._derived())
        self._announce(saved)
        kit.session.preflight()
        progress = self._start(fingerprint) if saved is None else self._resume(saved)
        buffer = self._buffer(progress)
        for plan in self._plans(progress.step):
            kit.stop.raise_if_cancelled()
            progress, entry = run_step(kit, progress, plan, buffer)
            buffer.append(entry)
            save_progress(kit.folder, progress, fingerprint)
        progress, summary = finish(kit, progress, self.initial, self.schedule.total_steps)
        save_progress(kit.folder, replace(progress, finished=True), fingerprint)
        kit.emit("run_finished", **{key: summary[key] for key in ("best_step", "test_hard", "baseline_test_hard")})
        return summary

    def _is_finished(self, saved: Saved) -> bool:
        done = saved.state.last_completed_step >= self.schedule.total_steps
        return saved.state.finished and done and self.kit.folder.summary.exists()

    def _announce(self, saved: Saved | None) -> None:
        self.kit.emit(
            "run_started",
            out_root=str(self.kit.folder.root),
            epochs=self.schedule.epochs,
            total_steps=self.schedule.total_steps,
            resumed_from=None if saved is None else saved.state.last_completed_step,
        )
        for text in (*_not_yet(self.kit.config), *getattr(self.kit.adapter.get_dataloader(), "notices", ())):
            self.kit.emit("notice", text=text)

    def _derived(self) -> dict[str, object]:
        return {
            "train_size": _train_size(self.kit.config, self.kit.adapter),
            "steps_per_epoch": self.schedule.steps_per_epoch,
            "batches_per_epoch": self.schedule.batches_per_epoch,
            "samples_per_epoch": self.schedule.batches_per_epoch * self.kit.config.train.batch_size,
        }

    def _start(self, fingerprint: Mapping[str, Any]) -> Progress:
        kit = self.kit
        kit.emit("baseline_started", purpose="baseline")
        atomic_write_text(kit.folder.skill(0), self.initial.text)
        scores = kit.evaluate(self.initial, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
        score = gate_score(kit, (scores.hard, scores.soft), self.initial)
        standing = Standing(self.initial, score, "initial_skill", kit.folder.relative(kit.folder.skill(0)), scores)
        if len(scores.graded) < SMALL_SELECTION:
            kit.emit(
                "notice",
                text=f"The selection split has {len(scores.graded)} items: a gate on fewer than {SMALL_SELECTION} is "
                "decided by chance as much as by the skill.",
            )
        progress = Progress(0, standing, standing, 0, (scores.hard, scores.soft))
        save_progress(kit.folder, progress, fingerprint)
        return progress

    def _resume(self, saved: Saved) -> Progress:
        """The saved progress; the scores by item of its current skill come from the store."""
        kit, origin = self.kit, saved.state.current_origin
        folder = kit.folder.baseline
        if origin.startswith("step_"):
            folder = kit.folder.root / "steps" / origin / "selection_eval"
        return saved.progress(kit.evaluate(saved.current, SELECTION, purpose="current", out_dir=folder))

    def _buffer(self, progress: Progress) -> list[StepEntry]:
        """What the optimizer remembers of the steps so far, read back from their digests."""
        return [
            StepEntry.from_dict(read_json(self.kit.folder.step(record["step"]) / "trajectory_digest.json"))
            for record in progress.history
        ]

    def _plans(self, done: int) -> Iterator[StepPlan]:
        schedule, per_step = self.schedule, self.kit.config.train.accumulation
        for epoch in range(1, schedule.epochs + 1):
            first = (epoch - 1) * schedule.steps_per_epoch + 1
            if first + schedule.steps_per_epoch - 1 <= done:
                continue
            self.kit.emit("epoch_started", epoch=epoch, epochs=schedule.epochs)
            batches = self.kit.batches(epoch, schedule.steps_per_epoch)
            for index in range(schedule.steps_per_epoch):
                if first + index > done:
                    chosen = tuple(batches[index * per_step : (index + 1) * per_step])
                    yield StepPlan(first + index, schedule.total_steps, epoch, index + 1, chosen)


def _train_size(config: RunConfig, adapter: EnvAdapter) -> int:
    """Number of training items. Raises ConfigError when it is unknown or differs from `train.train_size`."""
    loader, wanted = adapter.get_dataloader(), config.train.train_size
    size = len(loader.items("train")) if isinstance(loader, SplitDataLoader) else None
    if size is None and not wanted:
        raise ConfigError("train.train_size must be set: this environment draws its own tasks and gives no size.")
    if size is not None and wanted and wanted != size:
        raise ConfigError(f"train.train_size is {wanted}, but the train split has {size} items; leave the key out.")
    return size if size is not None else wanted


def _refuse_unsupported(config: RunConfig) -> None:
    """Raise ConfigError for a choice that this version does not have; training without it is not what was asked."""
    optimizer = config.optimizer
    refused = {
        "optimizer.skill_update_mode": (optimizer.skill_update_mode, "patch"),
        "optimizer.lr_control_mode": (optimizer.lr_control_mode, "fixed or none"),
        "optimizer.lr_scheduler": (optimizer.lr_scheduler, "constant, linear or cosine"),
        "optimizer.use_skill_aware_reflection": (str(optimizer.use_skill_aware_reflection).lower(), "false"),
    }
    for key, (value, allowed) in refused.items():
        if value not in allowed.replace(",", " ").split():
            raise ConfigError(f"{key}: {value!r} is not part of this version; use {allowed}.")


def _not_yet(config: RunConfig) -> list[str]:
    optimizer = config.optimizer
    wanted = {"use_slow_update": optimizer.use_slow_update, "use_meta_skill": optimizer.use_meta_skill}
    return [f"optimizer.{name} is on, but this version does not run it." for name, on in wanted.items() if on]
