"""The values that travel between the rooms of a night.

The field orders are part of the published interface. Fields that this package adds stand after the published ones.
All have `to_dict` and `from_dict` (see `skillopt_sleep.records`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from skillopt_sleep.records import Record

Outcome = Literal["success", "fail", "mixed", "unknown"]
Verdict = Literal["accept", "reject", "inconclusive"]
GateAction = Literal[
    "accept_new_best", "accept", "reject", "reject_unverified", "inconclusive", "greedy_applied", "greedy_noop", ""
]


@dataclass(slots=True)
class SessionDigest(Record):
    """One session of a coding agent, cut down to what mining needs; all text is redacted already.

    `started_at` and `ended_at` are ISO-8601 in UTC with an offset, or empty. `feedback_signals` are `neg:...` and
    `pos:...`. `skills_used` holds distinct names in the order in which they were first seen.
    """

    session_id: str
    project: str
    git_branch: str = ""
    started_at: str = ""
    ended_at: str = ""
    user_prompts: list[str] = field(default_factory=list)
    assistant_finals: list[str] = field(default_factory=list)
    tools_used: list[str] = field(default_factory=list)
    skills_used: list[str] = field(default_factory=list)
    files_touched: list[str] = field(default_factory=list)
    feedback_signals: list[str] = field(default_factory=list)
    n_user_turns: int = 0
    n_assistant_turns: int = 0
    raw_path: str = ""


@dataclass(slots=True)
class TaskRecord(Record):
    """One recurring request with the means to judge an answer to it.

    `reference_kind` says which judge scores it (exact, rubric, rule, answer, none); `judge` holds its checks.
    `origin` is real or dream; a dream task never leaves the train split. `workspace` is set for a task that changes
    files: `commit`, the state of the project's repository that it starts from, and `folder`, where in it the agent
    works (relative; blank: at the top). Conditions on the work are checks of `judge`.
    """

    id: str
    project: str
    intent: str
    context_excerpt: str = ""
    system: str = ""
    attempted_solution: str = ""
    outcome: str = "unknown"
    reference_kind: str = "none"
    reference: str = ""
    judge: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    source_sessions: list[str] = field(default_factory=list)
    split: str = "train"
    origin: str = "real"
    derived_from: str = ""
    skill_hint: str = ""
    workspace: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ReplayResult(Record):
    """One attempt at one task. `hard` and `soft` lie in 0..1.

    A non-empty `error` says that a call failed: the result then has no score and enters no mean. `work` holds what an
    attempt in a checkout changed: `diff` (unified), `files`, and `checks` (`op`, `arg`, `passed`, `note`); else {}.
    """

    id: str
    hard: float = 0.0
    soft: float = 0.0
    response: str = ""
    fail_reason: str = ""
    task_type: str = "task"
    judge_rationale: str = ""
    tools_called: list[str] = field(default_factory=list)
    tokens: int = 0
    latency_ms: float = 0.0
    error: str = ""
    work: dict[str, Any] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """True when the result has a score."""
        return not self.error


@dataclass(slots=True)
class EditRecord(Record):
    """One change of the learned block. `target` is skill or memory; `op` is add, delete or replace."""

    target: str
    op: str
    content: str = ""
    anchor: str = ""
    rationale: str = ""


@dataclass(slots=True)
class SkillGroupReport(Record):
    """What a night did for one named skill. `status` is consolidated, skipped or failed."""

    skill_name: str
    status: str = ""
    accepted: bool = False
    gate_action: str = ""
    baseline_score: float = 0.0
    candidate_score: float = 0.0
    n_tasks: int = 0
    n_applied_edits: int = 0
    n_rejected_edits: int = 0
    reason: str = ""
    no_edits_reason: str = ""


@dataclass(slots=True)
class SleepReport(Record):
    """The whole result of a night, as report.json holds it.

    Added to the published fields: `status` of the night; `n_errors` results without a score; the scores on the
    reserved test tasks before and after (None: there are none); `held_edits` that a person has to look at before
    anything adopts them; `usage` (calls, tokens, minutes); `gate_detail` (paired differences, interval, p value).
    """

    NESTED: ClassVar[Mapping[str, type[Record]]] = {
        "edits": EditRecord,
        "rejected_edits": EditRecord,
        "unmatched_edits": EditRecord,
        "held_edits": EditRecord,
        "skill_groups": SkillGroupReport,
    }

    night: int
    project: str
    started_at: str = ""
    ended_at: str = ""
    n_sessions: int = 0
    n_tasks: int = 0
    n_replayed: int = 0
    baseline_score: float = 0.0
    candidate_score: float = 0.0
    accepted: bool = False
    gate_action: str = ""
    holdout_leaked: bool = False
    no_edits_reason: str = ""
    edits: list[EditRecord] = field(default_factory=list)
    rejected_edits: list[EditRecord] = field(default_factory=list)
    unmatched_edits: list[EditRecord] = field(default_factory=list)
    skill_groups: list[SkillGroupReport] = field(default_factory=list)
    tokens_used: int = 0
    notes: list[str] = field(default_factory=list)
    gate_no_regression: bool = False
    gate_trials: list[dict[str, Any]] = field(default_factory=list)
    status: str = ""
    n_errors: int = 0
    test_baseline: float | None = None
    test_candidate: float | None = None
    held_edits: list[EditRecord] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    gate_detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ConsolidationResult(Record):
    """What one consolidation decided, with the documents that result from it.

    `holdout_baseline` and `holdout_candidate` are mean hard scores on the validation tasks.
    """

    NESTED: ClassVar[Mapping[str, type[Record]]] = {
        "applied_edits": EditRecord,
        "rejected_edits": EditRecord,
        "unmatched_edits": EditRecord,
        "held_edits": EditRecord,
    }

    accepted: bool
    gate_action: str
    baseline_score: float
    candidate_score: float
    new_skill: str
    new_memory: str
    applied_edits: list[EditRecord]
    rejected_edits: list[EditRecord]
    holdout_baseline: float
    holdout_candidate: float
    unmatched_edits: list[EditRecord] = field(default_factory=list)
    holdout_detail: list[dict[str, Any]] = field(default_factory=list)
    reflect_raw: str = ""
    call_error: str = ""
    holdout_leaked: bool = False
    gate_trials: list[dict[str, Any]] = field(default_factory=list)
    no_edits_reason: str = ""
    held_edits: list[EditRecord] = field(default_factory=list)
    n_errors: int = 0
    gate_detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class CycleOutcome(Record):
    """What `run_sleep_cycle` returns. `staging_dir` is empty when nothing was staged."""

    NESTED: ClassVar[Mapping[str, type[Record]]] = {"report": SleepReport}

    report: SleepReport
    staging_dir: str = ""
    adopted: bool = False
    adopted_paths: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SkillGroup(Record):
    """The tasks that belong to one named skill, with that skill's text."""

    NESTED: ClassVar[Mapping[str, type[Record]]] = {"tasks": TaskRecord}

    skill_name: str
    skill: str = ""
    tasks: list[TaskRecord] = field(default_factory=list)


@dataclass(slots=True)
class GroupConsolidation(Record):
    """One group's consolidation. `status` is consolidated, skipped or failed; `reason` says why not."""

    NESTED: ClassVar[Mapping[str, type[Record]]] = {"result": ConsolidationResult}

    skill_name: str
    status: str
    result: ConsolidationResult | None = None
    reason: str = ""
    n_tasks: int = 0

    @property
    def accepted(self) -> bool:
        """True when the gate accepted this group's change."""
        return self.result is not None and self.result.accepted


@dataclass(slots=True)
class SkillProposal(Record):
    """A new text for one named skill, pinned to the live file that it was made from ("" hash: the file is absent)."""

    skill_name: str
    proposed_skill: str
    live_skill_path: str
    live_sha256: str | None = None
    live_realpath: str = ""


@dataclass(slots=True)
class AdoptedSkill(Record):
    """Receipt of one adopted skill. `sha256_before` is empty when the file was new."""

    skill_name: str
    live_skill_path: str
    sha256_before: str
    sha256_after: str
    backup_path: str = ""


@dataclass(frozen=True, slots=True)
class SkillResolution(Record):
    """Where a named skill lies. `status` is found, missing, ambiguous or rejected."""

    name: str
    status: str
    path: str = ""
    candidates: tuple[str, ...] = ()
    reason: str = ""

    @property
    def ok(self) -> bool:
        """True when exactly one file was found."""
        return self.status == "found"


@dataclass(slots=True)
class RolloutSet(Record):
    """Several attempts at one task. Attempts that failed with an error count for nothing."""

    NESTED: ClassVar[Mapping[str, type[Record]]] = {"task": TaskRecord, "attempts": ReplayResult}

    task: TaskRecord
    attempts: list[ReplayResult] = field(default_factory=list)

    @property
    def scored(self) -> list[ReplayResult]:
        """The attempts that have a score, in order."""
        return [attempt for attempt in self.attempts if attempt.scored]

    @property
    def best(self) -> ReplayResult | None:
        """The first attempt with the highest hard score."""
        return max(self.scored, key=lambda attempt: attempt.hard, default=None)

    @property
    def worst(self) -> ReplayResult | None:
        """The first attempt with the lowest hard score."""
        return min(self.scored, key=lambda attempt: attempt.hard, default=None)

    @property
    def spread(self) -> float:
        """Highest minus lowest hard score; 0 without a score."""
        best, worst = self.best, self.worst
        return best.hard - worst.hard if best is not None and worst is not None else 0.0

    @property
    def pass_rate(self) -> float:
        """Share of scored attempts with a full hard score; 0 without a score."""
        scored = self.scored
        return sum(attempt.hard >= 1.0 for attempt in scored) / len(scored) if scored else 0.0
