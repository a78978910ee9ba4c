"""The training run, from the first evaluation to the summary.

    baseline ─▶ for each epoch: run_step for each step, end_epoch ─▶ final checks and tests ─▶ summary

Each step and each end of an epoch is committed. A run that was stopped goes on when it is started again: committed work
is loaded, and whatever else was finished is served by the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

NO_SHARE = 1e-12  # rounding of what the looks took
SMALL_SELECTION = 10  # below so many items, the report says that the gate has little to go by


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
    start from, in place of the file that `env.skill_init` names. `sinks` receive every
    event. `stop.cancel()` ends the run at the next item with everything kept. Raises SkillOptError; the class says
    what to do, and its `exit_code` what a command line ends with.
    """
    adapter = adapter or setup.prepare(config)
    skill = initial if initial is not None else setup.initial_skill(config)
    extent = extent_of(config, adapter)
    with setup.open_kit(config, adapter, sinks=sinks, stop=stop) as kit:
        try:
            return _Run(kit, skill, extent).train()
        except SkillOptError as error:
            kit.emit("run_stopped", reason=str(error), kind_of_error=type(error).__name__)
            raise


@dataclass(frozen=True, slots=True)
class _Run:
    kit: Kit
    initial: Skill
    extent: Extent

    def train(self) -> JsonObject:
        kit = self.kit
        fingerprint = setup.fingerprint(kit, self.initial)
        saved = load_progress(kit.folder, fingerprint, kit.emit, files=self.initial.files)
        if saved is not None and self._is_finished(saved):
            kit.emit("notice", text=f"{kit.folder.root}: this run is finished; nothing was called.")
            summary: JsonObject = read_json(kit.folder.summary)
            return summary
        buffer = [] if saved is None else self._buffer(saved)
        saved = saved if buffer is not None else None
        setup.write_config(kit, self._derived())
        self._announce(saved)
        kit.session.preflight()
        note_models(kit)
        progress = self._start(fingerprint) if saved is None else self._resume(saved)
        buffer, memory = buffer or [], load_memory(kit, progress.epochs_closed)
        for epoch in range(progress.epochs_closed + 1, self.extent.epochs + 1):
            progress, memory = self._train_epoch(progress, epoch, memory, buffer, fingerprint)
        progress, summary = finish(kit, progress, self.initial, self.extent.total_steps)
        save_progress(kit.folder, replace(progress, finished=True), fingerprint)
        kit.emit("run_finished", **{key: summary[key] for key in ("best_step", "test_hard", "baseline_test_hard")})
        return summary

    def _is_finished(self, saved: Saved) -> bool:
        done = saved.state.epochs_closed >= self.extent.epochs
        return saved.state.finished and done and self.kit.folder.summary.exists()

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
        if share is not None and share < NO_SHARE:
            self.kit.emit(
                "notice",
                text="The error budget of the paired gate (evaluation.gate_alpha) is used up by the looks of this run: "
                "no further candidate can be accepted. Use a new --out_root to go on with a new one.",
            )

    def _derived(self) -> dict[str, object]:
        return {
            "train_size": self.extent.train_size,
            "steps_per_epoch": self.extent.steps_per_epoch,
            "batches_per_epoch": self.extent.batches_per_epoch,
            "samples_per_epoch": self.extent.batches_per_epoch * self.kit.config.train.batch_size,
        }

    def _start(self, fingerprint: Mapping[str, Any]) -> Progress:
        kit = self.kit
        kit.emit("baseline_started", purpose="baseline")
        atomic_write_text(kit.folder.skill(0), self.initial.text)
        scores = kit.evaluate(self.initial, SELECTION, purpose="baseline", out_dir=kit.folder.baseline)
        score = gate_score(kit, (scores.hard, scores.soft), self.initial)
        standing = Standing(self.initial, score, "initial_skill", kit.folder.relative(kit.folder.skill(0)), scores)
        warn_oversized(kit.emit, self.initial)
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
        """The saved progress; the scores by item of its current skill come from the store.

        Items that had failed are tried again, so the score is taken from what is graded by now.
        """
        kit, origin = self.kit, saved.state.current_origin
        folder = kit.folder.baseline
        if origin.startswith("step_"):
            folder = kit.folder.root / "steps" / origin / "selection_eval"
        elif origin.startswith("slow_update_"):
            folder = kit.folder.root / "slow_update" / origin.removeprefix("slow_update_") / "selection_eval"
        folder = notes_folder(kit, saved.history, origin) or folder
        scores = kit.evaluate(saved.current, SELECTION, purpose="current", out_dir=folder)
        progress = saved.progress(scores)
        current = replace(progress.current, score=gate_score(kit, (scores.hard, scores.soft), saved.current))
        best = progress.best
        if best.skill.hash == current.skill.hash:
            best = replace(best, score=current.score)
        return replace(progress, current=current, best=best)

    def _buffer(self, saved: Saved) -> list[StepEntry] | None:
        """What the optimizer remembers of the steps so far, read back from their digests.

        None, with a notice, when one is lost: without it the next questions would be others than in a run that was
        never stopped. The steps are then done again, and the store answers.
        """
        entries = []
        for record in saved.history:
            path = self.kit.folder.step(record["step"]) / "trajectory_digest.json"
            try:
                entries.append(StepEntry.from_dict(read_json(path)))
            except (DataError, AttributeError, KeyError, TypeError, ValueError) as error:
                place = self.kit.folder.relative(path)
                self.kit.emit(
                    "notice",
                    text=f"{place} could not be read ({type(error).__name__}); the steps are done again, and what is "
                    "paid for is not paid again.",
                )
                return None
        return entries

    def _train_epoch(
        self, progress: Progress, epoch: int, memory: Memory, buffer: list[StepEntry], fingerprint: Mapping[str, Any]
    ) -> tuple[Progress, Memory]:
        """The steps of an epoch that are not done yet, and the work at its end; each is committed."""
        kit = self.kit
        kit.emit("epoch_started", epoch=epoch, epochs=self.extent.epochs)
        for plan in self._plans(epoch, progress.step):
            kit.stop.raise_if_cancelled()
            progress, entry = run_step(kit, progress, plan, buffer, advice=render_meta_context(memory))
            buffer.append(entry)
            save_progress(kit.folder, progress, fingerprint)
        kit.stop.raise_if_cancelled()
        end = EpochEnd(epoch, self.extent.epochs, kit.config.train.seed)
        progress, memory = end_epoch(kit, progress, end, memory)
        save_progress(kit.folder, progress, fingerprint)
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
