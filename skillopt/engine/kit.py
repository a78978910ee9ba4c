"""What every stage of a run works with: settings, environment, model session, store, events and folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import BatchSpec
from skillopt.datasets.sampling import epoch_batch_seeds
from skillopt.engine.leaks import LeakGuard
from skillopt.engine.run_dir import RunDir
from skillopt.envs.base import EnvAdapter
from skillopt.envs.runner import RunContext, check_error_rate
from skillopt.evaluation.early_stop import Bar, Means
from skillopt.evaluation.evaluate import Evaluation, Evaluator, write_results
from skillopt.evaluation.gate import select_gate_score
from skillopt.evaluation.samples import run_samples
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
    guard: LeakGuard = field(default_factory=LeakGuard, compare=False)

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

    def evaluator(self, split: str, skill: Skill, *, first_sample: int = 0, limit: int | None = None) -> Evaluator:
        """What scores `skill`, on the first `limit` items of `split` (0: all, None: what the settings say)."""
        evaluation = self.config.evaluation
        limits = {SELECTION: evaluation.sel_env_num, TEST: evaluation.test_env_num}
        return Evaluator(
            adapter=self.adapter,
            context=self.context(split, "evaluation", skill),
            max_error_rate=self.config.env.max_error_rate,
            limits=limits if limit is None else {split: limit},
            seed=self.config.train.seed,
            samples=self.config.env.samples_per_item,
            first_sample=first_sample,
        )

    def evaluate(
        self,
        skill: Skill,
        split: str,
        *,
        purpose: str,
        out_dir: Path,
        limit: int | None = None,
        against: Bar | None = None,
    ) -> Evaluation:
        """Score `skill` on the first `limit` items of `split` (0: all, None: what the settings say for the split).

        With `against`, the evaluation ends once it is certain whether the skill is better than that bar.
        """
        evaluator = self.evaluator(split, skill, limit=limit)
        return evaluator.evaluate(skill, split, purpose=purpose, out_dir=out_dir, against=against)

    def compare(self, skill: Skill, batch: BatchSpec, before: Evaluation, *, purpose: str, out_dir: Path) -> Evaluation:
        """Score `skill` on any batch against the current skill's results; `early_stop.gains` reads the verdict.

        Only the scores count here, without a bonus for words. It ends once the verdict is certain, whichever it is;
        so the result of a winner, too, may be incomplete.
        """
        bar = Bar(
            {item: (result.hard, result.soft) for item, result in before.graded.items()},
            self.gate_score((before.hard, before.soft)),
            self.gate_score,
            self.gate_score,
            two_sided=True,
            stop=self.config.evaluation.early_stop == "exact",
        )
        evaluator = self.evaluator(batch.split, skill)
        return evaluator.evaluate_batch(skill, batch, purpose=purpose, out_dir=out_dir, against=bar)

    def gate_score(self, means: Means, text: str = "") -> float:
        """The number that the gate compares, from mean (hard, soft); the bonus for the words of `text` included."""
        settings = self.config.evaluation
        return select_gate_score(
            *means,
            settings.gate_metric,
            settings.gate_mixed_weight,
            skill_text=text,
            use_semantic_density=settings.use_semantic_density,
            semantic_density_weight=settings.semantic_density_weight,
            leading_words=settings.leading_words or None,
        )

    def rollout(self, batch: BatchSpec, skill: Skill, out_dir: Path) -> list[RolloutResult]:
        """Run one training batch; raises TooManyErrorsError when too many of its items fail."""
        draws = range(self.config.env.samples_per_item)
        context = self.context("train", "rollout", skill)
        results = run_samples(self.adapter, batch, skill.text, context, out_dir, draws)
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
