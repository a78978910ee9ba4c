"""What a night would send, before it sends anything: the exact prompts, by provider, and the most calls it can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.backends import PreviewedCall, backend_for_config
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.mining import normalize_legacy_split
from skillopt_sleep.phases.coding import close_workshop, place_tasks, workshop_of
from skillopt_sleep.phases.context import LiveDocument, Night
from skillopt_sleep.phases.gathering import asks_miner, find_tasks, gather_sessions
from skillopt_sleep.phases.holdout import arrange_holdout, helpers_at_most, practised, tell_changes
from skillopt_sleep.phases.learning import learn, learn_named_skills
from skillopt_sleep.phases.opening import open_night, utc_now
from skillopt_sleep.show import counted
from skillopt_sleep.state import SleepState
from skillopt_sleep.types import SessionDigest, SleepReport, TaskRecord

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
                    "calls": [_shown(one) for one in calls],
                }
                for (backend, model), calls in providers.items()
            ],
            "calls_at_most": self.most,
            "calls_at_most_by_kind": self.at_most,
            "max_calls_per_night": self.cap,
            "max_tokens_per_night": self.token_cap,
            "notes": self.notes,
        }


def _shown(call: PreviewedCall) -> dict[str, Any]:
    row = {"kind": call.kind, "tokens": call.tokens, "max_tokens": call.max_tokens, "prompt": call.prompt}
    return {**row, "note": call.note} if call.note else row


def plan_night(
    config: SleepConfig, *, seed: Sequence[TaskRecord] | None = None, assigned: bool = False, only_mining: bool = False
) -> Plan:
    """Go through a night without sending anything, staging anything or moving any cursor.

    `assigned`: the splits of `seed` were not written by a person.
    """
    quiet = config.replace(evidence_log=False, replay_mode="mock" if only_mining else None)
    backend = backend_for_config(quiet, checked=False)
    calls = backend.start_preview()
    night = open_night(quiet, seed=seed, dry_run=True, clock=utc_now, backend=backend, preview=True)
    night.assigned = assigned
    try:
        _go_through(night, only_mining=only_mining)
        about = _about_checkouts(night)
    finally:
        close_workshop(night)
    mined_by_model = any(call.kind == "mine" for call in calls)
    notes = [note for note in night.report.notes if "Preview:" not in note] + about
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


def tasks_tonight(
    config: SleepConfig, state: SleepState, tasks: Sequence[TaskRecord], digests: Sequence[SessionDigest]
) -> tuple[list[TaskRecord], list[str]]:
    """(tasks that were found outside of a night, on the sides that they have tonight, what the night says to that).

    Earlier tasks that would help to decide are told of, and are not among the tasks.
    """
    none = LiveDocument("", "", "", "")
    report = SleepReport(0, str(config.project))
    night = Night(config.replace(progress=False), state, None, utc_now, report, none, none, "")
    night.evolve_skill = bool(config.get("evolve_skill"))
    night.tasks, night.digests = list(tasks), list(digests)
    with workshop_of(config) as night.workshop:
        place_tasks(night)
        arrange_holdout(night)
    tell_changes(night)
    return [task for task in night.tasks if task.id not in night.helpers], report.notes


def _go_through(night: Night, *, only_mining: bool) -> None:
    """All phases that ask a model anything, up to the first call of each."""
    night.pins = None
    gather_sessions(night)
    night.practise_anyway = asks_miner(night)
    find_tasks(night)
    if night.tasks and not only_mining:
        for phase in (learn, learn_named_skills):
            try:
                phase(night)
            except CallFailed as unsent:
                night.report.notes.append(str(unsent))


def _about_checkouts(night: Night) -> list[str]:
    """What an agent that works in files sees and sends, which no preview of prompts can show."""
    if night.workshop is None:
        return []
    done = sum(bool(task.workspace) for task in night.tasks)
    if not done:
        return []
    target = getattr(night.backend, "target", night.backend)
    share = f"{done} of {counted(len(night.tasks), 'task')} {'is' if done == 1 else 'are'}"
    return [
        f"{share} done by an agent in a fresh checkout of {night.workshop.repository}. It may read every file there, "
        f"and what it reads goes to the provider of {getattr(target, 'name', '')}. An agent's run counts as one call. "
        "The commands of replay_checks run on this machine, without a network."
    ]


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
        count += helpers_at_most(night)
        return count, count, 0, True
    tasks = practised(night)
    splits = [normalize_legacy_split(task.split) for task in tasks]
    judged = any(task.reference_kind not in _JUDGED_HERE for task in tasks)
    sizes = {split: splits.count(split) for split in ("val", "train", "test")}
    both = sizes["val"] + sizes["train"]
    return sizes["val"] or both, sizes["train"] or both, sizes["test"], judged
