"""The training run, from the first evaluation to the summary.

    baseline ─▶ for each epoch: run_step for each step, end_epoch ─▶ final checks and tests ─▶ summary

Each step and each end of an epoch is committed. A run that was stopped goes on when it is started again: committed work
is loaded, and whatever else was finished is served by the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillopt.config.run_config import RunConfig
from skillopt.engine import setup
from skillopt.engine.bounds import warn_oversized
from skillopt.engine.epoch import EpochEnd, Memory, end_epoch, load_memory, render_meta_context
from skillopt.engine.extent import Extent, extent_of
from skillopt.engine.finish import finish
from skillopt.engine.gating import gate_score, next_share
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.model_notes import data_notes, note_models
from skillopt.engine.notes import notes_folder
from skillopt.engine.state import Progress, Saved, Standing, load_progress, save_progress
from skillopt.engine.step import StepPlan, run_step
from skillopt.envs.base import EnvAdapter
from skillopt.errors import DataError, SkillOptError
from skillopt.optimizer.step_buffer import StepEntry
from skillopt.skill.document import Skill
from skillopt.tracking.events import Sink
from skillopt.types import JsonObject
from skillopt.utils.cancel import CancelToken
from skillopt.utils.files import atomic_write_text, read_json

_NO_SHARE = 1e-12  # a share of the gate's error budget below this is what rounding left of nothing
_SMALL_SELECTION = 10  # below so many items, a notice says that the gate has little to go by


def train(
    config: RunConfig,
    *,
    adapter: EnvAdapter | None = None,
    initial: Skill | None = None,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> JsonObject:
    """Train a skill and return the summary that is written to `summary.json`.

    `adapter`: an environment that is already set up, in place of the one that `env.name` names. `initial`: the skill to
    start from, in place of the file that `env.skill_init` names. `sinks` receive every event. `stop.cancel()` ends the
    run at the next item with everything kept. Raises SkillOptError; the class says what to do, and its `exit_code`
    what a command line ends with.
    """
    adapter = adapter or setup.prepare(config)
    skill = initial if initial is not None else setup.initial_skill(config)
    extent = extent_of(config, adapter)
    with setup.open_kit(config, adapter, sinks=sinks, stop=stop) as kit:
        try:
            return _Run(kit, skill, extent, setup.fingerprint(kit, skill)).train()
        except SkillOptError as error:
            kit.emit("run_stopped", reason=str(error), kind_of_error=type(error).__name__)
            raise


@dataclass(frozen=True, slots=True)
class _Run:
    """A run whose folder is open. The methods stand in the order in which `train` needs them.

    `fingerprint`: what must be the same for a run to go on; it is saved with all progress.
    """

    kit: Kit
    initial: Skill
    extent: Extent
    fingerprint: Mapping[str, Any]

    def train(self) -> JsonObject:
        kit = self.kit
        saved = load_progress(kit.folder, self.fingerprint, kit.emit, files=self.initial.files)
        if saved is not None and self._is_finished(saved):
            kit.emit("notice", text=f"{kit.folder.root}: this run is finished; nothing was called.")
            summary: JsonObject = read_json(kit.folder.summary)
            return summary
        saved, buffer = self._with_buffer(saved)
        setup.write_config(kit, self._derived())
        self._announce(saved)
        kit.session.preflight()
        note_models(kit)
        progress = self._start() if saved is None else self._resume(saved)
        memory = load_memory(kit, progress.epochs_closed)
        for epoch in range(progress.epochs_closed + 1, self.extent.epochs + 1):
            progress, memory = self._train_epoch(progress, epoch, memory, buffer)
        progress, summary = finish(kit, progress, self.initial, self.extent.total_steps)
        self._commit(replace(progress, finished=True))
        kit.emit("run_finished", **{key: summary[key] for key in ("best_step", "test_hard", "baseline_test_hard")})
        return summary

    def _is_finished(self, saved: Saved) -> bool:
        done = saved.state.epochs_closed >= self.extent.epochs
        return saved.state.finished and done and self.kit.folder.summary.exists()

    def _with_buffer(self, saved: Saved | None) -> tuple[Saved | None, list[StepEntry]]:
        """The saved progress, and what the optimizer remembers of its steps, read back from their digests.

        (None, []), with a notice, when a digest is lost: without it the next questions would be others than in a run
        that was never stopped. The steps are then done again, and the store answers.
        """
        entries = []
        for record in saved.history if saved is not None else ():
            path = self.kit.folder.step_digest(record["step"])
            try:
                entries.append(StepEntry.from_dict(read_json(path)))
            except (DataError, AttributeError, KeyError, TypeError, ValueError) as error:
                place = self.kit.folder.relative(path)
                self.kit.emit(
                    "notice",
                    text=f"{place} could not be read ({type(error).__name__}); the steps are done again, and what is "
                    "paid for is not paid again.",
                )
                return None, []
        return saved, entries

    def _derived(self) -> dict[str, object]:
        return {
            "train_size": self.extent.train_size,
            "steps_per_epoch": self.extent.steps_per_epoch,
            "batches_per_epoch": self.extent.batches_per_epoch,
            "samples_per_epoch": self.extent.batches_per_epoch * self.kit.config.train.batch_size,
        }

    def _announce(self, saved: Saved | None) -> None:
        self.kit.emit(
            "run_started",
            out_root=str(self.kit.folder.root),
            epochs=self.extent.epochs,
            total_steps=self.extent.total_steps,
            resumed_from=None if saved is None else saved.state.last_completed_step,
        )
        self._tell_of_spent_gate(saved)
        for text in data_notes(self.kit):
            self.kit.emit("notice", text=text)

    def _tell_of_spent_gate(self, saved: Saved | None) -> None:
        """Nobody should pay for looks that cannot accept: those of a run that was made longer after all were taken."""
        share = None if saved is None else next_share(self.kit, saved.state)
        if share is not None and share < _NO_SHARE:
            self.kit.emit(
                "notice",
                text="The error budget of the paired gate (evaluation.gate_alpha) is used up by the looks of this run: "
                "no further candidate can be accepted. Use a new --out_root to go on with a new one.",
            )

    def _start(self) -> Progress:
        """Progress of a new run: its initial skill has been scored on the selection split."""
        kit = self.kit
        kit.emit("baseline_started", purpose="baseline")
        atomic_write_text(kit.folder.skill(0), self.initial.text)
        scores = kit.evaluate(self.initial, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
        score = gate_score(kit, (scores.hard, scores.soft), self.initial)
        standing = Standing(self.initial, score, "initial_skill", kit.folder.relative(kit.folder.skill(0)), scores)
        warn_oversized(kit.emit, self.initial)
        if len(scores.graded) < _SMALL_SELECTION:
            kit.emit(
                "notice",
                text=f"The selection split has {len(scores.graded)} items: a gate on fewer than {_SMALL_SELECTION} is "
                "decided by chance as much as by the skill.",
            )
        progress = Progress(0, standing, standing, 0, (scores.hard, scores.soft))
        self._commit(progress)
        return progress

    def _resume(self, saved: Saved) -> Progress:
        """The saved progress; the scores by item of its current skill come from the store.

        Items that had failed are tried again, so the score is taken from what is graded by now.
        """
        kit = self.kit
        scores = kit.evaluate(saved.current, SELECTION, purpose="current", out_dir=self._evaluated_in(saved))
        progress = saved.progress(scores)
        current = replace(progress.current, score=gate_score(kit, (scores.hard, scores.soft), saved.current))
        best = progress.best
        if best.skill.hash == current.skill.hash:
            best = replace(best, score=current.score)
        return replace(progress, current=current, best=best)

    def _evaluated_in(self, saved: Saved) -> Path:
        """The folder of the evaluation that made the saved skill the current one."""
        origin = saved.state.current_origin
        return notes_folder(self.kit, saved.history, origin) or self.kit.folder.selection_of(origin)

    def _train_epoch(
        self, progress: Progress, epoch: int, memory: Memory, buffer: list[StepEntry]
    ) -> tuple[Progress, Memory]:
        """The steps of an epoch that are not done yet, and the work at its end; each is committed.

        `buffer` grows by the entry of each step.
        """
        kit = self.kit
        kit.emit("epoch_started", epoch=epoch, epochs=self.extent.epochs)
        for plan in self._plans(epoch, progress.step):
            kit.stop.raise_if_cancelled()
            progress, entry = run_step(kit, progress, plan, buffer, advice=render_meta_context(memory))
            buffer.append(entry)
            self._commit(progress)
        kit.stop.raise_if_cancelled()
        end = EpochEnd(epoch, self.extent.epochs, kit.config.train.seed)
        progress, memory = end_epoch(kit, progress, end, memory)
        self._commit(progress)
        return progress, memory

    def _plans(self, epoch: int, done: int) -> Iterator[StepPlan]:
        """The steps of an epoch after step number `done`."""
        extent, per_step = self.extent, self.kit.config.train.accumulation
        batches = self.kit.batches(epoch, extent.steps_per_epoch)
        for index in range(extent.steps_per_epoch):
            step = (epoch - 1) * extent.steps_per_epoch + index + 1
            if step > done:
                chosen = tuple(batches[index * per_step : (index + 1) * per_step])
                yield StepPlan(step, extent.total_steps, epoch, index + 1, chosen)

    def _commit(self, progress: Progress) -> None:
        save_progress(self.kit.folder, progress, self.fingerprint)
