"""What a night would send, before it sends anything: the exact prompts, by provider, and the most calls it can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.backends import PreviewedCall, backend_for_config
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.mining import normalize_legacy_split
from skillopt_sleep.phases.context import Night
from skillopt_sleep.phases.gathering import find_tasks, gather_sessions
from skillopt_sleep.phases.learning import learn, learn_named_skills
from skillopt_sleep.phases.opening import open_night, utc_now
from skillopt_sleep.types import TaskRecord

_TASKS_A_SESSION = 3
_JUDGED_HERE = ("exact", "rule")


@dataclass(frozen=True, slots=True)
class Plan:
    """`calls` are the prompts that can be known now; those that follow from replies are only counted, in `at_most`.

    `at_most`: calls by kind, without repeated attempts after failures. `cap`: the hard limit on calls of all kinds,
    repeated ones included (None: there is none).
    """

    night: int
    tasks: list[TaskRecord]
    n_sessions: int
    calls: list[PreviewedCall]
    at_most: dict[str, int]
    cap: int | None
    token_cap: int | None
    notes: list[str] = field(default_factory=list)

    @property
    def most(self) -> int:
        """The most calls of all kinds together."""
        total = sum(self.at_most.values())
        return total if self.cap is None else min(total, self.cap)

    def to_dict(self) -> dict[str, Any]:
        """The plan as one JSON document, with the prompts as they would be sent."""
        providers: dict[tuple[str, str], list[PreviewedCall]] = {}
        for call in self.calls:
            providers.setdefault((call.backend, call.model), []).append(call)
        return {
            "plan": True,
            "night": self.night,
            "n_sessions": self.n_sessions,
            "n_tasks": len(self.tasks),
            "providers": [
                {
                    "backend": backend,
                    "model": model,
                    "n_calls": len(calls),
                    "tokens": sum(call.tokens for call in calls),
                    "calls": [
                        {"kind": one.kind, "tokens": one.tokens, "max_tokens": one.max_tokens, "prompt": one.prompt}
                        for one in calls
                    ],
                }
                for (backend, model), calls in providers.items()
            ],
            "calls_at_most": self.most,
            "calls_at_most_by_kind": self.at_most,
            "max_calls_per_night": self.cap,
            "max_tokens_per_night": self.token_cap,
            "notes": self.notes,
        }


def plan_night(config: SleepConfig, *, seed: Sequence[TaskRecord] | None = None, only_mining: bool = False) -> Plan:
    """Go through a night without sending anything, staging anything or moving any cursor."""
    quiet = config.replace(evidence_log=False)
    backend = backend_for_config(quiet, checked=False)
    calls = backend.start_preview()
    night = open_night(quiet, seed=seed, dry_run=True, clock=utc_now, backend=backend)
    night.pins = None
    gather_sessions(night)
    find_tasks(night)
    mined_by_model = any(call.kind == "mine" for call in calls)
    if night.tasks and not only_mining:
        for phase in (learn, learn_named_skills):
            try:
                phase(night)
            except CallFailed as unsent:
                night.report.notes.append(str(unsent))
    notes = [note for note in night.report.notes if "Preview:" not in note]
    if mined_by_model:
        notes.append(
            "The model may find other tasks than those shown here; prompts that follow from replies (judging, "
            "reflection, trials) cannot be shown before the replies are there, and are counted at their most."
        )
    at_most = _at_most(night, len([call for call in calls if call.kind == "mine"]), only_mining=only_mining)
    return Plan(
        night.report.night,
        night.tasks,
        night.report.n_sessions,
        list(calls),
        at_most if config.calls_a_model else {},
        config.get("max_calls_per_night"),
        config.get("max_tokens_per_night"),
        notes,
    )


def _at_most(night: Night, mining: int, *, only_mining: bool) -> dict[str, int]:
    """Calls by kind when everything that can be tried is tried."""
    if only_mining:
        return {"mine": mining}
    config = night.config
    val, train, test, judged = _sizes(night, mined_by_model=mining > 0)
    if not val + train:
        return {"mine": mining}
    targets = int(night.evolve_skill) + int(night.evolve_memory)
    edits, rollouts, dreams = (int(config.get(name)) for name in ("edit_budget", "dream_rollouts", "dream_factor"))
    taught = (train + int(config.get("recall_k"))) * (1 + dreams)
    trials = targets * (1 + edits) + int(bool(config.get("slow_update")))
    attempts = val * (2 + trials) + taught * targets * (rollouts + 1 if rollouts > 1 else 1) + 2 * test
    groups = len({task.skill_hint for task in night.tasks if task.skill_hint}) if config.fanout else 0
    kinds = {
        "mine": mining,
        "attempt": attempts,
        "judge": 2 * attempts if judged else 0,
        "reflect": 2 * (targets + groups),
        "contrast": (targets + groups) if rollouts > 1 else 0,
        "slow_update": int(bool(config.get("slow_update"))),
    }
    return {kind: count for kind, count in kinds.items() if count}


def _sizes(night: Night, *, mined_by_model: bool) -> tuple[int, int, int, bool]:
    """(validation, training, test) tasks at most, and whether a model judges any."""
    if mined_by_model:
        count = min(int(night.config.get("max_tasks_per_night")), _TASKS_A_SESSION * night.report.n_sessions)
        return count, count, 0, True
    splits = [normalize_legacy_split(task.split) for task in night.tasks]
    judged = any(task.reference_kind not in _JUDGED_HERE for task in night.tasks)
    sizes = {split: splits.count(split) for split in ("val", "train", "test")}
    both = sizes["val"] + sizes["train"]
    return sizes["val"] or both, sizes["train"] or both, sizes["test"], judged
