"""Two or three backends as one: the target attempts, the optimizer reflects and mines, the judge grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends.base import Backend, Pairs
from skillopt_sleep.backends.egress import PreviewedCall
from skillopt_sleep.types import EditRecord, TaskRecord

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Work

_LOCAL = ("rule", "exact")


class DualBackend(Backend):
    """`target` and `optimizer`, and `judger` for grades by a model (by default the optimizer).

    Rule and exact tasks are scored by the target, which does it without a call. Settings given to the pair, such as
    `preferences`, `evidence` and `cache`, reach every part.
    """

    def __init__(self, target: Backend, optimizer: Backend, judger: Backend | None = None) -> None:
        self.target = target
        self.optimizer = optimizer
        self.judger = judger if judger is not None else optimizer

    @property
    def parts(self) -> Iterator[Backend]:
        """Each backend once."""
        unique = {id(part): part for part in (self.target, self.optimizer, self.judger)}
        return iter(unique.values())

    @property
    def name(self) -> str:  # type: ignore[override]
        """`target=<name>/optimizer=<name>`, and `/judge=<name>` for a judge of its own."""
        own = f"/judge={self.judger.name}" if self.judger is not self.optimizer else ""
        return f"target={self.target.name}/optimizer={self.optimizer.name}{own}"

    @property
    def model_key(self) -> str:
        """The keys of all roles."""
        own = f";judge={self.judger.model_key}" if self.judger is not self.optimizer else ""
        return f"optimizer={self.optimizer.model_key};target={self.target.model_key}{own}"

    @property
    def model(self) -> str:  # type: ignore[override]
        """The models of target and optimizer."""
        return f"{self.target.model}/{self.optimizer.model}"

    @property
    def has_tools(self) -> bool:  # type: ignore[override]
        """Whether the target can prove tool calls."""
        return self.target.has_tools

    @property
    def works_in_files(self) -> bool:  # type: ignore[override]
        """Whether the target can do a task in a checkout."""
        return self.target.works_in_files

    @property
    def last_call_error(self) -> str:  # type: ignore[override]
        """What went wrong with the latest call of any role, each with its role's name."""
        roles = (("target", self.target), ("optimizer", self.optimizer), ("judge", self.judger))
        own = roles if self.judger is not self.optimizer else roles[:2]
        return "; ".join(f"{role}: {part.last_call_error}" for role, part in own if part.last_call_error)

    @property
    def last_reflect_raw(self) -> str:  # type: ignore[override]
        """The optimizer's latest reply to a reflection."""
        return self.optimizer.last_reflect_raw

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        """By the target."""
        return self.target.attempt(task, skill, memory, sample_id, fresh=fresh)

    def attempt_with_tools(
        self,
        task: TaskRecord,
        skill: str,
        memory: str,
        tools: Sequence[str],
        sample_id: int = 0,
        *,
        fresh: bool = False,
    ) -> tuple[str, list[str]]:
        """By the target."""
        return self.target.attempt_with_tools(task, skill, memory, tools, sample_id, fresh=fresh)

    def attempt_in_checkout(
        self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False
    ) -> tuple[str, Work]:
        """By the target."""
        return self.target.attempt_in_checkout(task, skill, memory, sample_id, fresh=fresh)

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        """By the judge; rule and exact tasks by the target."""
        part = self.target if task.reference_kind in _LOCAL else self.judger
        return part.judge(task, response, fresh=fresh)

    def reflect(self, failures: Pairs, successes: Pairs, skill: str, memory: str, **options: Any) -> list[EditRecord]:
        """By the optimizer."""
        return self.optimizer.reflect(failures, successes, skill, memory, **options)

    def call(self, prompt: str, *, kind: str = "call", max_tokens: int = 1024, fresh: bool = False) -> str:
        """By the optimizer."""
        return self.optimizer.call(prompt, kind=kind, max_tokens=max_tokens, fresh=fresh)

    def tokens_used(self) -> int:
        """Tokens of all parts."""
        return sum(part.tokens_used() for part in self.parts)

    def tokens_here(self) -> int:
        """Tokens of the calls that the running thread has made."""
        return sum(part.tokens_here() for part in self.parts)

    @property
    def tokens_estimated(self) -> bool:
        """Whether a part of the tokens of any role is an estimate."""
        return any(part.tokens_estimated for part in self.parts)

    def check(self) -> None:
        """Check every part."""
        for part in self.parts:
            part.check()

    def start_preview(self) -> list[PreviewedCall]:
        """One list for all parts."""
        shared: list[PreviewedCall] = []
        for part in self.parts:
            part.share_preview(shared)
        return shared


def _forwarded(name: str) -> property:
    """An attribute that is set on every part and read from the target."""

    def read(pair: DualBackend) -> Any:
        return getattr(pair.target, name)

    def write(pair: DualBackend, value: Any) -> None:
        for part in pair.parts:
            setattr(part, name, value)

    return property(read, write)


_SHARED = (
    *("meter", "cache", "workshop", "say", "replayed"),
    *("preferences", "rejected_edits", "evidence", "evidence_phase"),
)
for _name in _SHARED:
    setattr(DualBackend, _name, _forwarded(_name))
