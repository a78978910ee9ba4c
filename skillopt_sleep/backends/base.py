"""What a night asks of a model, whoever answers: attempt a task, judge an answer, propose edits, or plainly answer.

A failed call raises `CallFailed`; there is no empty answer that stands for a failure, so none can be scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends.cache import CallCache
from skillopt_sleep.backends.egress import PreviewedCall
from skillopt_sleep.budget import Meter
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.types import EditRecord, ReplayResult, TaskRecord

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Work, Workshop

Pairs = Sequence[tuple[TaskRecord, ReplayResult]]


class Backend:
    """The protocol, with what all backends share.

    `preferences`: the person's wishes, read by `reflect`. `rejected_edits`: edits that earlier nights refused;
    `reflect` asks not to repeat them. `evidence`, `evidence_phase`: see `skillopt_sleep.evidence`. `meter` counts and
    caps the calls; `cache` keeps their answers. `has_tools`: it can prove that a tool was called. `works_in_files`: it
    can do a task in a checkout, which `workshop` then makes; `say` tells whoever watches how such a task went.
    `replayed`: the ids of the tasks that have a result, with a score or with an error.
    """

    name = ""
    has_tools = False
    works_in_files = False

    def __init__(self, model: str = "", *, meter: Meter | None = None, cache: CallCache | None = None) -> None:
        self.model = model
        self.meter = meter if meter is not None else Meter()
        self.cache = cache
        self.workshop: Workshop | None = None
        self.say: Callable[[str], None] | None = None
        self.replayed: set[str] = set()
        self.preferences = ""
        self.rejected_edits: Sequence[EditRecord] = ()
        self.evidence: Any = None
        self.evidence_phase = ""
        self.last_call_error = ""
        self.last_reflect_raw = ""

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        """One answer to `task`. `sample_id` numbers attempts that shall differ; `fresh`: not from the cache.

        Raises CallFailed, BudgetSpent or PendingCalls, as all of these do.
        """
        raise NotImplementedError

    def attempt_with_tools(
        self,
        task: TaskRecord,
        skill: str,  # noqa: ARG002
        memory: str,  # noqa: ARG002
        tools: Sequence[str],
        sample_id: int = 0,  # noqa: ARG002
        *,
        fresh: bool = False,  # noqa: ARG002
    ) -> tuple[str, list[str]]:
        """One answer to `task`, and which of the stand-in `tools` were called, as recorded by whoever ran them.

        A backend that cannot run tools refuses: text that claims a call proves none.
        """
        names = ", ".join(tools)
        raise CallFailed(
            f"The backend {self.name} cannot run tools, and task {task.id} is judged by a call of {names}; replay it "
            "with the backend claude, codex or azure_openai.",
            kind="refused",
        )

    def attempt_in_checkout(
        self,
        task: TaskRecord,
        skill: str,  # noqa: ARG002
        memory: str,  # noqa: ARG002
        sample_id: int = 0,  # noqa: ARG002
        *,
        fresh: bool = False,  # noqa: ARG002
    ) -> tuple[str, Work]:
        """One attempt at a task with a `workspace`, in a fresh checkout: the last message, and what was changed."""
        raise CallFailed(
            f"The backend {self.name} cannot work in files, and task {task.id} is done in a checkout; replay it with "
            "the backend claude or codex.",
            kind="refused",
        )

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        """(hard, soft, rationale) of an answer, both scores finite and within 0..1."""
        raise NotImplementedError

    def reflect(
        self,
        failures: Pairs,
        successes: Pairs,
        skill: str,
        memory: str,
        *,
        edit_budget: int,
        evolve_skill: bool,
        evolve_memory: bool,
    ) -> list[EditRecord]:
        """At most `edit_budget` edits of the skill, or else of the memory, that would have prevented the failures."""
        raise NotImplementedError

    def call(  # a backend without a model has nothing to read in these
        self,
        prompt: str,  # noqa: ARG002
        *,
        kind: str = "call",  # noqa: ARG002
        max_tokens: int = 1024,  # noqa: ARG002
        fresh: bool = False,  # noqa: ARG002
    ) -> str:
        """The answer to a prompt of one's own. `kind` is what evidence and budget book it under."""
        raise CallFailed(f"The backend {self.name} calls no model.", kind="refused")

    def _call(self, prompt: str, *, max_tokens: int = 1024) -> str:
        return self.call(prompt, max_tokens=max_tokens)

    def tokens_used(self) -> int:
        """Tokens of all calls so far."""
        return 0

    def tokens_here(self) -> int:
        """Tokens of the calls that the running thread has made: a difference of two is exact with many threads."""
        return self.tokens_used()

    @property
    def tokens_estimated(self) -> bool:
        """Whether a part of the tokens is an estimate, because a provider told none."""
        return False

    def check(self) -> None:
        """Find out before the night, without a call, whether one could be made.

        Raises UsageProblem or CallFailed with what has to be set up.
        """

    def start_preview(self) -> list[PreviewedCall]:
        """From now on send nothing: calls are recorded in the list that this returns, and raise NotSent."""
        calls: list[PreviewedCall] = []
        self.share_preview(calls)
        return calls

    def share_preview(self, calls: list[PreviewedCall]) -> None:
        """As `start_preview`, with a list that others record in too. A backend that sends nothing records nothing."""

    @property
    def model_key(self) -> str:
        """Who answers, for noticing that it changed since the last night."""
        return f"{self.name}::{self.model}"


def skill_hash(text: str) -> str:
    """16 hex digits of a document."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def target_of(*, evolve_skill: bool) -> str:
    """The document that a reflection is about: the skill when that may change, else the memory."""
    return "skill" if evolve_skill else "memory"
