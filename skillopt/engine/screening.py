"""Edit screening: each selected edit is tried alone on the training items just rolled out, before the gate looks.

One bad edit must not take good ones down with it, nor ride in on them. Training items cost no look at the selection
split, and the current skill's results on them are there already:

    each edit alone ─▶ those that gain, together ─▶ gate ─▶ refused? one by one ─▶ gate
                  └─▶ none gains: all of them together ─▶ gains? ─▶ gate
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from skillopt.datasets.base import BatchSpec
from skillopt.engine.gating import Candidate, Look, look
from skillopt.engine.kit import Kit
from skillopt.engine.leaks import find_leaks, leak_record
from skillopt.engine.state import Progress
from skillopt.evaluation.early_stop import gains
from skillopt.evaluation.evaluate import Evaluation, item_ids, write_results
from skillopt.evaluation.gate import flips
from skillopt.evaluation.leaks import Leak
from skillopt.optimizer.update import update_skill
from skillopt.skill.document import Skill
from skillopt.types import Edit, JsonObject, Patch, RolloutResult, Usage
from skillopt.utils.files import atomic_write_json, atomic_write_text

TrialStatus = Literal["gain", "no_gain", "no_change", "leak"]

NO_CHANGE: Literal["no_change"] = "no_change"
"""What is said of edits that leave the skill as it is."""

SKIPPED = "skip_screened"
"""The action of a step in which no edit gained on the training items: the gate was not asked."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a step has just rolled out with the current skill: its training items as one batch, and their scores."""

    batch: BatchSpec
    scores: Evaluation

    @classmethod
    def of(cls, rolled: Sequence[tuple[BatchSpec, Sequence[RolloutResult]]], skill: Skill) -> Trained:
        """The accumulated batches of a step as one: the items that have a score, each once.

        Of batches that the environment draws by itself, without a list of items, only the first is used.
        """
        first, results = rolled[0]
        rows: dict[str, Any] = {}
        for batch, _ in rolled:
            ids = item_ids(batch)
            if ids is None:
                return cls(first, Evaluation.of(skill.hash, first.split, [result for result in results if result.ok]))
            rows |= dict(zip(ids, batch.payload, strict=True))
        scored = {result.id: result for _, part in rolled for result in part if result.ok}
        chosen = [item for item in rows if item in scored]
        batch = replace(first, batch_size=len(chosen), payload=[rows[item] for item in chosen])
        return cls(batch, Evaluation.of(skill.hash, first.split, [scored[item] for item in chosen]))


@dataclass(frozen=True, slots=True)
class Trial:
    """One try on the training items. `edits`: numbers of the edits in it, from 1, as in the ranked list.

    `evaluated` counts the items that were run or read from the store, of which `gained` became right and `lost`
    became wrong. A try whose outcome was certain was stopped early. `no_change`: the edits alone change nothing.
    `leak`: they would put into the skill what must not stand there (`leaks`), and were not tried.
    """

    edits: tuple[int, ...]
    status: TrialStatus
    evaluated: int = 0
    gained: int = 0
    lost: int = 0
    usage: Usage = field(default_factory=Usage)
    leaks: tuple[Leak, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the skill with these edits did better on the training items."""
        return self.status == "gain"

    def to_dict(self) -> JsonObject:
        """The row of `screening.json`."""
        return {
            "edits": list(self.edits),
            "status": self.status,
            "passed": self.passed,
            "evaluated": self.evaluated,
            "gained": self.gained,
            "lost": self.lost,
            **leak_record(self.leaks),
        }


@dataclass(frozen=True, slots=True)
class Gated:
    """One look of the gate: the edits in the candidate and what was decided; `no_change` where no look was needed."""

    edits: tuple[int, ...]
    action: str


@dataclass(frozen=True, slots=True)
class ScreeningReport:
    """What screening and the gate did with the edits of one step.

    `trials`: each edit alone, in their order; `together`: all edits in one, tried when none passed alone. `gated`: the
    edits of each look in order. `refused`: edits that the gate rejected on their own, to be remembered. `look`: the
    one that tells the step's outcome, the last that accepted, else the first, None without any. `candidate`: the
    skill that the first look judged.
    """

    trials: tuple[Trial, ...]
    together: Trial | None
    gated: tuple[Gated, ...]
    refused: tuple[Edit, ...]
    look: Look | None
    candidate: Skill | None

    @property
    def action(self) -> str:
        """The step's outcome: what the telling look decided, or `skip_screened`."""
        return self.look.action if self.look is not None else SKIPPED

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """Why edits were refused without a trial."""
        return tuple(leak for trial in self._all_trials for leak in trial.leaks)

    @property
    def usage(self) -> Usage:
        """What the trials cost, whenever they were paid."""
        return sum((trial.usage for trial in self._all_trials), Usage())

    @property
    def _all_trials(self) -> tuple[Trial, ...]:
        return self.trials if self.together is None else (*self.trials, self.together)

    def record(self) -> JsonObject:
        """The fields of a step record that say what screening did."""
        fields: JsonObject = {
            "n_edits_screened": len(self.trials),
            "n_edits_passed": sum(trial.passed for trial in self.trials),
            "screening_evaluated": sum(trial.evaluated for trial in self._all_trials),
            "gate_looks": sum(entry.action != NO_CHANGE for entry in self.gated),
        }
        if self.candidate is not None:
            fields |= {"candidate_hash": self.candidate.hash, "candidate_skill_len": len(self.candidate.text)}
        return fields

    def to_dict(self) -> JsonObject:
        """The contents of `screening.json`."""
        return {
            "trials": [trial.to_dict() for trial in self.trials],
            "together": None if self.together is None else self.together.to_dict(),
            "gated": [{"edits": list(entry.edits), "action": entry.action} for entry in self.gated],
            "refused": [edit.to_dict() for edit in self.refused],
            "action": self.action,
        }


def screen(kit: Kit, current: Skill, edits: Sequence[Edit], trained: Trained, out_dir: Path) -> tuple[Trial, ...]:
    """Try each edit alone on the training items; one trial an edit, in order.

    Raises what running items raises; finished items are in the store and are not run again.
    """
    numbered = list(enumerate(edits, 1))
    return tuple(_try(kit, current, [pair], trained, out_dir / f"edit_{pair[0]:02d}") for pair in numbered)


def gate_screened(
    kit: Kit, progress: Progress, ranked: Patch, trained: Trained, step: int
) -> tuple[Progress, tuple[Look, ...], ScreeningReport]:
    """Screen the ranked edits and let the gate judge what passes; write `screening.json` and the candidate.

    Edits that gain alone are gated together; when that candidate does not become current and holds several edits,
    they are gated one by one, each on the skill that is current by then. When none gains alone, all of them together
    are tried, and gated if they gain. An edit that leaks is left out of everything.
    """
    folder = kit.folder.step(step)
    edits = [edit for edit in ranked.edits if isinstance(edit, Edit)]
    numbered = list(enumerate(edits, 1))
    trials = screen(kit, progress.current.skill, edits, trained, folder / "screening")
    chosen, together = [pair for pair, trial in zip(numbered, trials, strict=True) if trial.passed], None
    usable = [pair for pair, trial in zip(numbered, trials, strict=True) if trial.status != "leak"]
    if not chosen and len(usable) > 1:
        together = _try(kit, progress.current.skill, usable, trained, folder / "screening" / "together")
        chosen = usable if together.passed else []
    judge = _Judge(kit, progress, step)
    if chosen:
        judge.judge(chosen, folder / "selection_eval")
        if together is None and not judge.accepted and len(chosen) > 1:
            judge.one_by_one(chosen)
    report = ScreeningReport(trials, together, tuple(judge.gated), tuple(judge.refused), judge.telling, judge.candidate)
    if report.candidate is not None:
        atomic_write_text(folder / "candidate_skill.md", report.candidate.text)
    atomic_write_json(folder / "screening.json", report.to_dict())
    return judge.progress, tuple(judge.looks), report


_Numbered = Sequence[tuple[int, Edit]]


class _Judge:
    """The looks of one step."""

    def __init__(self, kit: Kit, progress: Progress, step: int) -> None:
        self._kit, self._step = kit, step
        self.progress = progress
        self.looks: list[Look] = []
        self.gated: list[Gated] = []
        self.refused: list[Edit] = []
        self.candidate: Skill | None = None

    @property
    def accepted(self) -> bool:
        return any(seen.accepted for seen in self.looks)

    @property
    def telling(self) -> Look | None:
        taken = [seen for seen in self.looks if seen.accepted]
        return taken[-1] if taken else self.looks[0] if self.looks else None

    def judge(self, chosen: _Numbered, out_dir: Path) -> None:
        """One look at the current skill with these edits; no look when they change nothing."""
        update = update_skill(self.progress.current.skill, Patch(tuple(edit for _, edit in chosen)))
        numbers = tuple(number for number, _ in chosen)
        if not update.changed:
            self.gated.append(Gated(numbers, NO_CHANGE))
            return
        folder = self._kit.folder
        path = folder.relative(folder.skill(self._step))
        candidate = Candidate(update.skill, path, f"step_{self._step:04d}", self._step)
        self.candidate = self.candidate or update.skill
        self.progress, seen = look(self._kit, self.progress, candidate, out_dir)
        self.looks.append(seen)
        self.gated.append(Gated(numbers, seen.action))
        if len(chosen) == 1 and seen.action == "reject":
            self.refused.append(chosen[0][1])

    def one_by_one(self, chosen: _Numbered) -> None:
        """A look at each edit; `selection_eval` then holds the scores of what became current."""
        folder = self._kit.folder.step(self._step)
        for pair in chosen:
            self.judge([pair], folder / "screening" / f"edit_{pair[0]:02d}" / "selection_eval")
        if self.accepted and self.telling is not None:
            write_results(folder / "selection_eval", self.telling.scored.results)


def _try(kit: Kit, current: Skill, chosen: _Numbered, trained: Trained, out_dir: Path) -> Trial:
    numbers = tuple(number for number, _ in chosen)
    update = update_skill(current, Patch(tuple(edit for _, edit in chosen)))
    if not update.changed:
        return _told(kit, Trial(numbers, NO_CHANGE))
    if leaks := find_leaks(kit, update.skill, current):
        return _told(kit, Trial(numbers, "leak", leaks=leaks))
    after = kit.compare(update.skill, trained.batch, trained.scores, purpose="screening", out_dir=out_dir)
    gained, lost = flips(trained.scores.hard_by_item, after.hard_by_item)
    status: TrialStatus = "gain" if gains(trained.scores, after) else "no_gain"
    return _told(kit, Trial(numbers, status, len(after.results), len(gained), len(lost), after.usage))


def _told(kit: Kit, trial: Trial) -> Trial:
    kit.emit("edits_screened", **trial.to_dict())
    return trial
