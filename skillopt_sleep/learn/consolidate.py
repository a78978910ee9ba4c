"""One consolidation: what failed tonight becomes rules, and the rules stay only if the validation tasks say so.

In order: measure the documents as they are; replay the training tasks; ask for rules for the skill and try them; the
same for the memory; the slow update; measure what came of it once more, with fresh samples, against the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skillopt_sleep import evidence
from skillopt_sleep.errors import CallFailed, PendingCalls
from skillopt_sleep.learn.block import check_document
from skillopt_sleep.learn.measure import Decision, GateSettings, Measure, Pair, measure
from skillopt_sleep.learn.partition import Partition, partition
from skillopt_sleep.learn.policy import sift
from skillopt_sleep.learn.results import TOO_FEW, Ending, result_of
from skillopt_sleep.learn.slow_update import SlowHistory, SlowOutcome, slow_pass
from skillopt_sleep.learn.trial import Bench, Documents
from skillopt_sleep.replay import contrastive_reflect, multi_rollout
from skillopt_sleep.types import ConsolidationResult, EditRecord, TaskRecord

GATE_OFF = ("off", "none", "false", "greedy")


@dataclass(slots=True)
class LearnTrace:
    """What a consolidation learned beside its result: the training results of the documents that it began with, for
    the next night to compare with, and what became of the slow update.
    """

    train_pairs: tuple[Pair, ...] = ()
    slow: SlowOutcome = field(default_factory=SlowOutcome)


@dataclass(frozen=True, slots=True)
class Options:
    """How a consolidation learns; see `consolidate`."""

    edit_budget: int = 4
    rollouts_k: int = 1
    evolve_skill: bool = True
    evolve_memory: bool = True
    night: int = 1
    workers: int = 0
    slow_history: SlowHistory | None = None
    only_if_decidable: bool = False


def consolidate(  # noqa: PLR0913 - the published signature
    backend: Any,
    tasks: Sequence[TaskRecord],
    skill: str,
    memory: str,
    *,
    edit_budget: int = 4,
    gate_metric: str = "mixed",
    gate_mixed_weight: float = 0.5,
    gate_no_regression: bool = True,
    gate_mode: str = "on",
    gate_min_val: int = 5,
    gate_prune: bool = True,
    rollouts_k: int = 1,
    evolve_skill: bool = True,
    evolve_memory: bool = True,
    night: int = 1,
    workers: int = 0,
    slow_history: SlowHistory | None = None,
    only_if_decidable: bool = False,
    trace: LearnTrace | None = None,
) -> ConsolidationResult:
    """Learn from the training tasks what the validation tasks confirm.

    `gate_min_val`: with fewer validation tasks nothing is accepted (`inconclusive`). `gate_prune`: each edit of an
    accepted bundle is left out once, and goes when it is not missed; that costs a validation replay an edit.
    `gate_mode` off, none, false or greedy: every edit stays, nothing is confirmed. `rollouts_k` above 1 contrasts good
    with bad attempts. `slow_history`: what the night before measured; with it the slow update may change the skill.
    `only_if_decidable`: where the gate could accept nothing, nothing is tried and no call is made (`inconclusive`).
    `trace`, when given, is filled in. Edits that were refused join `backend.rejected_edits`.

    Raises MalformedBlock and ValueError (unknown metric) before any call; CallFailed of a fatal kind, BudgetSpent and
    PendingCalls as they come.
    """
    gated = str(gate_mode).strip().lower() not in GATE_OFF
    settings = GateSettings(gate_metric, gate_mixed_weight, gate_no_regression, gate_min_val, gated, gate_prune)
    may_change = (evolve_skill, evolve_memory)
    options = Options(edit_budget, rollouts_k, *may_change, night, workers, slow_history, only_if_decidable)
    return _learned(Learner(backend, tasks, Documents(skill, memory), settings, options), trace)


def _learned(learner: Learner, trace: LearnTrace | None) -> ConsolidationResult:
    learner.settings.score(0.0, 0.0)  # an unknown metric is found out before any call
    check_document(learner.start.skill, name="the skill")
    check_document(learner.start.memory, name="the project's memory")
    result = learner.learn()
    if trace is not None:
        trace.train_pairs, trace.slow = learner.first_train.pairs, learner.slow
    return result


class Learner:
    """One consolidation in progress."""

    def __init__(
        self,
        backend: Any,
        tasks: Sequence[TaskRecord],
        documents: Documents,
        settings: GateSettings,
        options: Options,
    ) -> None:
        self.backend = backend
        self.tasks = tasks
        self.settings = settings
        self.options = options
        self.parts: Partition = partition(tasks)
        self.start = documents
        self.bench = Bench(
            backend, documents, self.parts.val, settings, leaked=self.parts.leaked, workers=options.workers
        )
        self.baseline = Measure()
        self.first_train = Measure()
        self.slow = SlowOutcome()
        self.reasons: list[str] = []
        self.reflect_raw = ""
        self.call_error = ""
        self._train: tuple[Documents, Measure] | None = None

    def learn(self) -> ConsolidationResult:
        """All passes, then the decision."""
        if self.options.only_if_decidable and not self.bench.can_accept:
            self.reasons.append(TOO_FEW)
            return self._end(None)
        if not self.parts.train or not (self.options.evolve_skill or self.options.evolve_memory):
            self.reasons.append("no_training_tasks" if not self.parts.train else "nothing_may_change")
            return self._end(None)
        self._measure_start()
        if self.settings.gated and self.baseline.broken:
            self.reasons.append("too_many_errors")
            return self._end(None)
        for target, wanted in (("skill", self.options.evolve_skill), ("memory", self.options.evolve_memory)):
            if wanted:
                self._learn_into(target)
        if self.options.evolve_skill and self.options.slow_history is not None and self.bench.can_accept:
            self.slow = slow_pass(self.backend, self.bench, self.options.slow_history, self.first_train, self.tasks)
        changed = self.bench.documents != self.start
        return self._end(self.bench.confirm(self.baseline) if changed and self.settings.gated else None)

    def _measure_start(self) -> None:
        """Baseline and first training replay: they need nothing of each other, so calls that wait are collected."""
        waiting: list[PendingCalls] = []
        if self.settings.gated:
            measured = _unless_pending(lambda: self.bench.replay_val(self.start, "baseline_val"), waiting)
            self.baseline = self.bench.current = measured or Measure()
        _unless_pending(lambda: self._replay_train("train"), waiting)
        if waiting:
            raise PendingCalls({key: call for error in waiting for key, call in error.pending.items()})
        hard, soft = self.baseline.means()
        self._log(
            "gate",
            "baseline",
            gate_mode="on" if self.settings.gated else "off",
            n_train=len(self.parts.train),
            n_val=len(self.parts.val),
            hard=hard,
            soft=soft,
            score=self.settings.score(hard, soft),
            metric=self.settings.metric,
            mixed_weight=self.settings.mixed_weight,
        )

    def _replay_train(self, phase: str) -> Measure:
        """The training results of the documents as they are now; not replayed when nothing changed since the last."""
        documents = self.bench.documents
        if self._train is not None and self._train[0] == documents:
            return self._train[1]
        evidence.set_phase(self.backend, phase)
        measured = self.bench.ledger.count(
            measure(self.backend, self.parts.train, documents.skill, documents.memory, workers=self.options.workers)
        )
        if self._train is None:
            self.first_train = measured
        self._train = (documents, measured)
        return measured

    def _learn_into(self, target: str) -> None:
        measured = self._replay_train("train" if target == "skill" else "train_post_skill")
        if measured.broken:
            self.reasons.append("too_many_errors")
            return
        failures = [pair for pair in measured.pairs if pair[0].id in measured.graded and pair[1].hard < 1.0]
        successes = [pair for pair in measured.pairs if pair[0].id in measured.graded and pair[1].hard >= 1.0]
        if not failures:
            self.reasons.append("no_failures")
            return
        edits = self._proposed(target, failures, successes)
        if not edits:
            return
        free, held = sift(edits, self.tasks)
        self.bench.ledger.held += held
        if held:
            rows = [{**one.edit.to_dict(), "reasons": list(one.reasons)} for one in held]
            self._log("reflect", "edits_held", target=target, n_edits=len(rows), edits=rows)
        if not free:
            self.reasons.append("all_held")
            return
        before = len(self.bench.ledger.refused)
        self.bench.try_edits(target, free)
        self._feed_back(self.bench.ledger.refused[before:])

    def _proposed(self, target: str, failures: list[Pair], successes: list[Pair]) -> list[EditRecord]:
        """The edits that reflection proposes; a call that failed gives none and is noted."""
        try:
            edits = self._contrasted(target) if self.options.rollouts_k > 1 else []
            if not edits:
                edits = self.backend.reflect(
                    failures,
                    successes,
                    self.bench.documents.skill,
                    self.bench.documents.memory,
                    edit_budget=self.options.edit_budget,
                    evolve_skill=target == "skill",
                    evolve_memory=target == "memory",
                )
        except CallFailed as error:
            if error.fatal:
                raise
            self.call_error = str(error)
            self.reasons.append("reflect_failed")
            return []
        finally:
            self.reflect_raw = str(getattr(self.backend, "last_reflect_raw", "") or "") or self.reflect_raw
        own = [edit if edit.target == target else replace(edit, target=target) for edit in edits]
        rows = [edit.to_dict() for edit in own]
        self._log("reflect", "edits_returned", target=target, n_edits=len(rows), edits=rows)
        if not own:
            self.reasons.append("no_proposals")
        return own[: max(0, self.options.edit_budget)]

    def _contrasted(self, target: str) -> list[EditRecord]:
        documents = self.bench.documents
        sets = multi_rollout(
            self.backend,
            self.parts.train,
            documents.skill,
            documents.memory,
            k=self.options.rollouts_k,
            workers=self.options.workers,
        )
        self.bench.ledger.n_errors += sum(not attempt.scored for one in sets for attempt in one.attempts)
        return contrastive_reflect(
            self.backend,
            sets,
            documents.skill,
            documents.memory,
            edit_budget=self.options.edit_budget,
            target=target,
            gate_metric=self.settings.metric,
            gate_mixed_weight=self.settings.mixed_weight,
        )

    def _feed_back(self, refused: Sequence[EditRecord]) -> None:
        """Later reflections are told what did not help."""
        if refused and hasattr(self.backend, "rejected_edits"):
            known = list(self.backend.rejected_edits)
            self.backend.rejected_edits = (*known, *(edit for edit in refused if edit not in known))

    def _end(self, final: Decision | None) -> ConsolidationResult:
        ending = Ending(
            bench=self.bench,
            parts=self.parts,
            start=self.start,
            baseline=self.baseline,
            final=final,
            settings=self.settings,
            night=self.options.night,
            reasons=tuple(self.reasons),
        )
        result = result_of(ending, tasks=self.tasks, slow=self.slow)
        result.reflect_raw = self.reflect_raw
        result.call_error = self.call_error or str(getattr(self.backend, "last_call_error", "") or "")
        return result

    def _log(self, stage: str, event: str, **data: Any) -> None:
        log = evidence.get(self.backend)
        if log is not None:
            log.log(stage, event, **data)


def _unless_pending(ask: Callable[[], Measure], waiting: list[PendingCalls]) -> Measure | None:
    try:
        return ask()
    except PendingCalls as error:
        waiting.append(error)
        return None
