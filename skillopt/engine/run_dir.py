"""The paths of a run that more than one part of the engine knows. A stage names what it alone writes itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunDir:
    """The folder of one run. It may be moved or copied: nothing inside holds an absolute path."""

    root: Path

    @property
    def config(self) -> Path:
        """The settings in force, secrets left out."""
        return self.root / "config.json"

    @property
    def history(self) -> Path:
        """The step records, a JSON array."""
        return self.root / "history.json"

    @property
    def lr_history(self) -> Path:
        """What the optimizer decided on the learning rate, a JSON line a step."""
        return self.root / "lr_history.jsonl"

    @property
    def state(self) -> Path:
        """What a resume needs; replacing it is what commits a step."""
        return self.root / "runtime_state.json"

    @property
    def summary(self) -> Path:
        """The scores of the whole run."""
        return self.root / "summary.json"

    @property
    def best_skill(self) -> Path:
        """The best skill so far."""
        return self.root / "best_skill.md"

    @property
    def events(self) -> Path:
        """What happened, a JSON line each."""
        return self.root / "events.jsonl"

    @property
    def store(self) -> Path:
        """Finished rollouts and replies."""
        return self.root / "store.sqlite"

    @property
    def baseline(self) -> Path:
        """Evaluation of the initial skill on the selection split."""
        return self.root / "selection_eval_baseline"

    @property
    def final_selection(self) -> Path:
        """Evaluation of the last skill on the selection split."""
        return self.root / "final_selection_eval"

    @property
    def best_selection(self) -> Path:
        """Evaluation of the best skill on the selection split, when it is not the last one."""
        return self.root / "best_selection_eval"

    def skill(self, step: int) -> Path:
        """The skill that training goes on from after `step` (0: the initial skill)."""
        return self.root / "skills" / f"skill_v{step:04d}.md"

    def step(self, step: int) -> Path:
        """Folder of one step."""
        return self.root / "steps" / f"step_{step:04d}"

    def step_record(self, step: int) -> Path:
        """The record of one step, as the history has it."""
        return self.step(step) / "step_record.json"

    def step_digest(self, step: int) -> Path:
        """What the optimizer remembers of one step."""
        return self.step(step) / "trajectory_digest.json"

    def edit_report(self, step: int) -> Path:
        """What became of each edit of one step."""
        return self.step(step) / "edit_apply_report.json"

    def batch(self, step: int, index: int, total: int) -> Path:
        """Folder of one of the `total` accumulated batches of a step (the step's own folder when there is one)."""
        return self.step(step) if total == 1 else self.step(step) / f"batch_{index}"

    def slow_update(self, epoch: int) -> Path:
        """Folder of the slow update at the end of an epoch."""
        return self.root / "slow_update" / f"epoch_{epoch:02d}"

    def slow_result(self, epoch: int) -> Path:
        """What the slow update at the end of an epoch came to."""
        return self.slow_update(epoch) / "slow_result.json"

    def meta_skill(self, epoch: int) -> Path:
        """Folder of the meta skill at the end of an epoch."""
        return self.root / "meta_skill" / f"epoch_{epoch:02d}"

    def meta_result(self, epoch: int) -> Path:
        """What the meta skill at the end of an epoch came to."""
        return self.meta_skill(epoch) / "meta_skill_result.json"

    def selection_of(self, origin: str) -> Path:
        """Evaluation on the selection split that a gate let a skill in by; `origin` as in Standing."""
        if origin.startswith("step_"):
            return self.root / "steps" / origin / "selection_eval"
        if origin.startswith("slow_update_"):
            return self.root / "slow_update" / origin.removeprefix("slow_update_") / "selection_eval"
        return self.baseline

    def epoch_skill(self, epoch: int) -> Path:
        """The skill that the next epoch starts from, after all work at the end of this one."""
        return self.root / "skills" / f"epoch_{epoch:02d}.md"

    def test(self, which: str) -> Path:
        """Folder of a test evaluation: `baseline`, `best` or `final`."""
        return self.root / {"baseline": "test_eval_baseline", "best": "test_eval", "final": "test_eval_final"}[which]

    def relative(self, path: Path) -> str:
        """`path` inside the run as it is stored: relative, with forward slashes."""
        return path.relative_to(self.root).as_posix()
