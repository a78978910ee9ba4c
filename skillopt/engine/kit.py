"""What every stage of a run works with: settings, environment, model session, store, events and folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import BatchSpec
from skillopt.datasets.sampling import epoch_batch_seeds
from skillopt.engine.run_dir import RunDir
from skillopt.envs.base import EnvAdapter
from skillopt.envs.runner import RunContext, check_error_rate, run_batch
from skillopt.evaluation.evaluate import Evaluation, Evaluator, write_results
from skillopt.model.session import Session
from skillopt.skill.document import Skill
from skillopt.store import Store
from skillopt.tracking.events import Emit
from skillopt.types import RolloutResult
from skillopt.utils.cancel import CancelToken

SELECTION = "val"
TEST = "test"


@dataclass(frozen=True, slots=True)
class Kit:
    """The tools of one run. Stages take it, use it and keep nothing of their own."""

    config: RunConfig
    adapter: EnvAdapter
    session: Session
    store: Store
    folder: RunDir
    emit: Emit
    stop: CancelToken

    def context(self, split: str, purpose: str, skill: Skill) -> RunContext:
        """How items are run, for one purpose."""
        env = self.config.env
        return RunContext(
            session=self.session,
            store=self.store,
            emit=self.emit,
            workers=env.workers or getattr(self.adapter, "workers", None) or 1,
            item_timeout=float(env.exec_timeout),
            item_retries=env.item_retries,
            split=split,
            purpose=purpose,
            skill_hash=skill.hash,
            stop=self.stop,
        )

    def evaluate(
        self, skill: Skill, split: str, *, purpose: str, out_dir: Path, limit: int | None = None
    ) -> Evaluation:
        """Score `skill` on the first `limit` items of `split` (0: all, None: what the settings say for the split)."""
        evaluation = self.config.evaluation
        limits = {SELECTION: evaluation.sel_env_num, TEST: evaluation.test_env_num}
        evaluator = Evaluator(
            adapter=self.adapter,
            context=self.context(split, purpose, skill),
            max_error_rate=self.config.env.max_error_rate,
            limits=limits if limit is None else {split: limit},
            seed=self.config.train.seed,
        )
        return evaluator.evaluate(skill, split, purpose=purpose, out_dir=out_dir)

    def rollout(self, batch: BatchSpec, skill: Skill, out_dir: Path) -> list[RolloutResult]:
        """Run one training batch; raises TooManyErrorsError when too many of its items fail."""
        results = run_batch(self.adapter, batch, skill.text, self.context("train", "rollout", skill), out_dir)
        check_error_rate(results, self.config.env.max_error_rate)
        write_results(out_dir, results)
        return results

    def batches(self, epoch: int, steps_per_epoch: int) -> Sequence[BatchSpec]:
        """The `steps_per_epoch * accumulation` training batches of an epoch (1-based), equal whenever asked for."""
        train = self.config.train
        loader = self.adapter.get_dataloader()
        if loader is not None:
            return loader.plan_train_epoch(
                epoch=epoch,
                steps_per_epoch=steps_per_epoch,
                accumulation=train.accumulation,
                batch_size=train.batch_size,
                seed=train.seed,
            )
        seeds = epoch_batch_seeds(epoch=epoch, batches=steps_per_epoch * train.accumulation, seed=train.seed)
        return [BatchSpec("train", "train", batch_seed, train.batch_size) for batch_seed in seeds]
