"""The documents of a night while they change: each bundle of edits is tried, and stays only if the gate says so.

One bad edit must not take good ones down, nor ride in with them. A bundle that the gate rejects is taken apart and its
edits are tried one by one. Of a bundle that it accepts, each edit is left out once, and those that are not missed go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skillopt_sleep import evidence
from skillopt_sleep.errors import PendingCalls
from skillopt_sleep.learn.edits import EditOutcome, run_edits
from skillopt_sleep.learn.gate import is_better
from skillopt_sleep.learn.measure import Decision, GateSettings, Measure, decide, measure
from skillopt_sleep.learn.policy import Held
from skillopt_sleep.show import json_safe
from skillopt_sleep.types import EditRecord, TaskRecord


@dataclass(frozen=True, slots=True)
class Documents:
    """The two texts that a night may change."""

    skill: str
    memory: str

    def text(self, target: str) -> str:
        """The text of the target, skill or memory."""
        return self.skill if target == "skill" else self.memory

    def having(self, target: str, text: str) -> Documents:
        """These documents with another text for the target."""
        return replace(self, skill=text) if target == "skill" else replace(self, memory=text)


@dataclass(slots=True)
class Ledger:
    """What became of the edits of a night, and the rows that tell it.

    `refused`: the gate measured them and they did not help. `undecided`: it could not tell.
    """

    applied: list[EditRecord] = field(default_factory=list)
    refused: list[EditRecord] = field(default_factory=list)
    undecided: list[EditRecord] = field(default_factory=list)
    unmatched: list[EditRecord] = field(default_factory=list)
    unmatched_reasons: list[str] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    trials: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    n_errors: int = 0

    def count(self, measured: Measure) -> Measure:
        """Count the results without a score and pass the measurement on."""
        self.n_errors += measured.n_errors
        return measured


class Bench:
    """Tries edits on the documents, against the validation tasks. `documents` and `current` are what holds now."""

    def __init__(
        self,
        backend: Any,
        documents: Documents,
        val: Sequence[TaskRecord],
        settings: GateSettings,
        *,
        leaked: bool = False,
        workers: int = 0,
    ) -> None:
        self.backend = backend
        self.documents = documents
        self.start_skill = documents.skill
        self.current = Measure()
        self.ledger = Ledger()
        self._val = val
        self._settings = settings
        self._leaked = leaked
        self._workers = workers

    @property
    def can_accept(self) -> bool:
        """False when nothing that the validation tasks say is enough to accept an edit."""
        return not self._settings.gated or (not self._leaked and len(self._val) >= max(1, self._settings.min_val))

    def replay_val(self, documents: Documents, phase: str, *, fresh: bool = False) -> Measure:
        """Measure documents on the validation tasks."""
        evidence.set_phase(self.backend, phase)
        measured = measure(
            self.backend, self._val, documents.skill, documents.memory, workers=self._workers, fresh=fresh
        )
        return self.ledger.count(measured)

    def try_edits(self, target: str, edits: Sequence[EditRecord]) -> None:
        """Try a bundle of edits of one document; then, as the gate says, each edit alone or each left out."""
        outcome = run_edits(self.documents.text(target), edits, name=_NAMES[target])
        self.ledger.unmatched += outcome.unmatched
        self.ledger.unmatched_reasons += outcome.reasons
        self._log_unmatched(target, outcome)
        if outcome.document == self.documents.text(target):
            self.ledger.unmatched += outcome.applied
            self.ledger.unmatched_reasons += ["no change: the edits cancel out"] * len(outcome.applied)
            return
        before = (self.documents, self.current)
        decision = self.try_text(target, outcome.document, outcome.applied)
        if decision is None or decision.accepted:
            if decision is not None and self._settings.prune and len(outcome.applied) > 1:
                self._drop_passengers(target, outcome.applied, *before)
            return
        if decision.verdict == "reject" and len(outcome.applied) > 1 and self.can_accept:
            self._one_by_one(target, outcome.applied)
        else:
            self._turned_down(decision, outcome.applied)

    def try_text(self, target: str, text: str, edits: Sequence[EditRecord], *, label: str = "") -> Decision | None:
        """Try one text for a document; when accepted it holds from now on. None: there is no gate, and it holds."""
        candidate = self.documents.having(target, text)
        if not self._settings.gated:
            self.documents = candidate
            self.ledger.applied += edits
            self._log_trial(target, None, len(edits))
            return None
        measured = self.replay_val(candidate, f"gate_trial:{label or target}")
        decision = decide(self.current, measured, self._settings, leaked=self._leaked)
        self.record(label or target, decision, edits)
        if decision.accepted:
            self.documents, self.current = candidate, measured
            self.ledger.applied += edits
        return decision

    def confirm(self, baseline: Measure) -> Decision:
        """The last look: what holds now, measured anew with fresh samples, against the documents of the beginning."""
        measured = self.replay_val(self.documents, "final_val", fresh=True)
        decision = decide(baseline, measured, self._settings, leaked=self._leaked)
        self.record("final", decision, self.ledger.applied)
        return decision

    def record(self, target: str, decision: Decision, edits: Sequence[EditRecord]) -> None:
        """Keep a decision as a row of the report and as evidence."""
        self.ledger.decisions.append(decision)
        row = {
            "target": target,
            "mode": "gated",
            "verdict": decision.verdict,
            "accepted": decision.accepted,
            "blocked_by_regression": decision.blocked,
            "reason": decision.reason,
            "baseline_score": decision.baseline_score,
            "candidate_score": decision.score,
            "cand_hard": decision.hard,
            "cand_soft": decision.soft,
            "n_compared": decision.n,
            "n_errors": decision.n_errors,
            "n_edits": len(edits),
            "edits": [edit.to_dict() for edit in edits],
            "task_deltas": decision.deltas,
        }
        self.ledger.trials.append(json_safe(row))
        self._log_trial(target, decision, len(edits))

    def _one_by_one(self, target: str, edits: Sequence[EditRecord]) -> None:
        for number, edit in enumerate(edits):
            outcome = run_edits(self.documents.text(target), [edit], name=_NAMES[target])
            if not outcome.applied:
                self.ledger.unmatched += outcome.unmatched
                self.ledger.unmatched_reasons += outcome.reasons
                continue
            try:
                decision = self.try_text(target, outcome.document, [edit])
            except PendingCalls:
                self._ask_for_all(target, edits[number:])
                raise
            if decision is not None and not decision.accepted:
                self._turned_down(decision, [edit])

    def _ask_for_all(self, target: str, edits: Sequence[EditRecord]) -> None:
        """Try all edits that are left when the first waits for answers, so that one round asks about all."""
        text = self.documents.text(target)
        alone = {number: run_edits(text, [edit], name=_NAMES[target]).document for number, edit in enumerate(edits)}
        self._measured(
            f"gate_trial:{target}", {number: self.documents.having(target, made) for number, made in alone.items()}
        )

    def _drop_passengers(self, target: str, edits: Sequence[EditRecord], start: Documents, was: Measure) -> None:
        """Take the edits out of an accepted bundle without which the validation tasks go just as well."""
        without = {index: self._without(target, edits, {index}, start) for index in range(len(edits))}
        measured = self._measured(
            f"gate_trial:{target}", {at: docs for at, docs in without.items() if docs is not None}
        )
        full = self.current
        missed = {index: not self._as_good(found, full) for index, found in measured.items()}
        dropped: set[int] = set()
        for index in [index for index, needed in missed.items() if not needed]:
            documents, found = without[index], measured[index]
            if dropped:
                documents = self._without(target, edits, {*dropped, index}, start)
                if documents is None:
                    continue
                found = self.replay_val(documents, f"gate_trial:{target}")
            if documents is None or not self._as_good(found, self.current):
                continue
            if not decide(was, found, self._settings, leaked=self._leaked).accepted:
                continue
            dropped.add(index)
            self.documents, self.current = documents, found
        for index, needed in missed.items():
            row = {**edits[index].to_dict(), "kept": index not in dropped, "missed": needed}
            self.ledger.left_out.append({**row, "score_without": self._settings.score(*measured[index].means())})
        gone = [edits[index] for index in sorted(dropped)]
        self.ledger.applied = [edit for edit in self.ledger.applied if edit not in gone]
        self.ledger.refused += gone

    def _without(
        self, target: str, edits: Sequence[EditRecord], left_out: set[int], start: Documents
    ) -> Documents | None:
        """The documents with all edits but some; None when the others do not apply without them."""
        rest = [edit for index, edit in enumerate(edits) if index not in left_out]
        outcome = run_edits(start.text(target), rest, name=_NAMES[target])
        return start.having(target, outcome.document) if rest and not outcome.unmatched else None

    def _measured(self, phase: str, candidates: dict[int, Documents]) -> dict[int, Measure]:
        """Measure candidates that do not depend on each other; calls that wait are collected over all of them."""
        found: dict[int, Measure] = {}
        waiting: dict[str, Any] = {}
        for index, documents in candidates.items():
            try:
                found[index] = self.replay_val(documents, phase)
            except PendingCalls as error:
                waiting.update(error.pending)
        if waiting:
            raise PendingCalls(waiting)
        return found

    def _as_good(self, measured: Measure, other: Measure) -> bool:
        """Whether a measurement is complete and not below another, on the tasks that both graded."""
        if measured.n_errors:
            return False
        ids = [task_id for task_id in other.graded if task_id in measured.graded]
        return not is_better(self._settings.score(*other.means(ids)), self._settings.score(*measured.means(ids)))

    def _turned_down(self, decision: Decision, edits: Sequence[EditRecord]) -> None:
        kept = self.ledger.refused if decision.verdict == "reject" else self.ledger.undecided
        kept += edits

    def _log_unmatched(self, target: str, outcome: EditOutcome) -> None:
        log = evidence.get(self.backend)
        if log is not None and outcome.unmatched:
            rows = [
                {**row.edit.to_dict(), "status": row.status, "reason": row.reason}
                for row in outcome.rows
                if row.status != "applied"
            ]
            log.log("reflect", "edits_unmatched", target=target, n_edits=len(rows), edits=rows)

    def _log_trial(self, target: str, decision: Decision | None, n_edits: int) -> None:
        log = evidence.get(self.backend)
        if log is None:
            return
        if decision is None:
            log.log("gate", "trial", target=target, mode="greedy", accepted=True, n_edits=n_edits)
            return
        row = {key: value for key, value in self.ledger.trials[-1].items() if key not in ("edits", "candidate_score")}
        log.log("gate", "trial", **row, cand_score=decision.score, comparison=decision.comparison)


_NAMES = {"skill": "the skill", "memory": "the project's memory"}
