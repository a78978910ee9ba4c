"""The base of every backend that asks a real model: prompts in plain text, replies read strictly, one way out.

A backend of one's own subclasses `CliBackend` and writes `send`: one attempt, a `Reply` or `CallFailed`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends import attempting, judging, reflecting
from skillopt_sleep.backends.base import Backend, Pairs, target_of
from skillopt_sleep.backends.egress import Egress, PreviewedCall, content_key
from skillopt_sleep.backends.wire import Outgoing, Reply
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.judges.exact import score_exact
from skillopt_sleep.judges.rule import score_rule_judge
from skillopt_sleep.types import EditRecord, TaskRecord

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Work

MOST_TOOLS = 32
_TOOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}")


class CliBackend(Backend):
    """A model that answers prompts. `tries`: attempts at one call; `timeout`: seconds for each."""

    tries = 3
    longest_backoff = 6.0
    timeout = 180.0

    def __init__(self, model: str = "", **options: Any) -> None:
        super().__init__(model, **options)
        self.egress = Egress(self)

    @property
    def identity(self) -> str:
        """What of the settings decides about answers, for keys of the cache."""
        return f"{self.name}|{self.model}"

    def key_of(self, outgoing: Outgoing) -> str:
        """What the answer to this call is kept under: backend, model, purpose, prompt, tools, sample and workspace."""
        tools = "\n".join(outgoing.tools)
        place = [outgoing.workspace.identity] if outgoing.workspace is not None else []
        return content_key(
            self.identity, outgoing.kind, str(outgoing.max_tokens), outgoing.prompt, tools, outgoing.sample, *place
        )

    def send(self, outgoing: Outgoing) -> Reply:
        """One attempt at a call, within `outgoing.seconds`. Raises CallFailed."""
        raise NotImplementedError

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        """One answer to `task`, without its surrounding blanks."""
        prompt = attempting.attempt_prompt(task, skill, memory)
        reply = self._ask("attempt", prompt, max_tokens=attempting.MAX_TOKENS, sample=sample_id, fresh=fresh)
        return reply.text.strip()

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
        """One answer to `task` with stand-ins for `tools` at hand, and which of them were called."""
        if not self.has_tools:
            return super().attempt_with_tools(task, skill, memory, tools, sample_id, fresh=fresh)
        reply = self._ask(
            "attempt",
            attempting.attempt_prompt(task, skill, memory),
            max_tokens=attempting.MAX_TOKENS,
            sample=sample_id,
            fresh=fresh,
            tools=checked_tools(tools, task),
        )
        return reply.text.strip(), [tool for tool in tools if tool in reply.tools_called]

    def attempt_in_checkout(
        self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False
    ) -> tuple[str, Work]:
        """One attempt at a task with a `workspace`, in a fresh checkout: the last message, and what was changed."""
        if not self.works_in_files:
            return super().attempt_in_checkout(task, skill, memory, sample_id, fresh=fresh)
        if self.workshop is None:
            raise CallFailed(
                f"Task {task.id} is done in a checkout, and this night makes none; set replay_mode to worktree.",
                kind="refused",
            )
        reply = self._ask(
            "attempt",
            attempting.checkout_prompt(task, skill, memory),
            max_tokens=attempting.WORK_TOKENS,
            sample=sample_id,
            fresh=fresh,
            workspace=self.workshop.workspace(task, memory),
        )
        if reply.work is None:
            raise CallFailed(f"{self.name} answered task {task.id} without working in its checkout.", kind="refused")
        return reply.text.strip(), reply.work

    def judge(self, task: TaskRecord, response: str, *, fresh: bool = False) -> tuple[float, float, str]:
        """Score an answer: exact and rule tasks here, all others by the model, which is asked twice at most."""
        if task.reference_kind == "exact":
            return score_exact(task, response)
        if task.reference_kind == "rule":
            return score_rule_judge(task.judge, response)
        prompt = judging.judge_prompt(task, response)
        reply = self._ask("judge", prompt, max_tokens=judging.MAX_TOKENS, fresh=fresh)
        try:
            return judging.read_grade(reply.text, cut=reply.cut)
        except CallFailed as error:
            firmer = judging.firmer(prompt, str(error))
        reply = self._ask("judge", firmer, max_tokens=judging.MAX_TOKENS, fresh=fresh)
        try:
            return judging.read_grade(reply.text, cut=reply.cut)
        except CallFailed as error:
            self.last_call_error = str(error)
            raise

    def reflect(
        self,
        failures: Pairs,
        successes: Pairs,  # noqa: ARG002 - part of the protocol
        skill: str,
        memory: str,
        *,
        edit_budget: int,
        evolve_skill: bool,
        evolve_memory: bool,
    ) -> list[EditRecord]:
        """At most `edit_budget` edits; [] without a failure, and when two replies hold no edit."""
        scored = [pair for pair in failures if pair[1].scored]
        if not scored or not (evolve_skill or evolve_memory) or edit_budget < 1:
            return []
        target = target_of(evolve_skill=evolve_skill)
        prompt = reflecting.reflect_prompt(
            scored,
            skill if target == "skill" else memory,
            target=target,
            edit_budget=edit_budget,
            preferences=self.preferences,
            rejected=self.rejected_edits,
        )
        edits: list[EditRecord] = []
        for number, text in enumerate((prompt, reflecting.firmer(prompt)), start=1):
            reply = self._ask("reflect", text, max_tokens=reflecting.MAX_TOKENS)
            self.last_reflect_raw = reply.text
            self._log("exchange", target=target, attempt=number, n_failures=len(scored), raw_reply=reply.text)
            edits = reflecting.read_edits(reply.text, target=target, edit_budget=edit_budget, cut=reply.cut)
            if edits:
                break
        else:
            self.last_call_error = f"Two replies of {self.name} to a reflection held no usable edit."
        self._log("edits_returned", target=target, n_edits=len(edits), edits=[edit.to_dict() for edit in edits])
        return edits

    def call(self, prompt: str, *, kind: str = "call", max_tokens: int = 1024, fresh: bool = False) -> str:
        """The answer to a prompt of one's own, as it came."""
        return self._ask(kind, prompt, max_tokens=max_tokens, fresh=fresh).text

    def tokens_used(self) -> int:
        """Tokens of all calls so far."""
        return self.egress.tokens

    def tokens_here(self) -> int:
        """Tokens of the calls that the running thread has made."""
        return self.egress.tokens_here

    @property
    def tokens_estimated(self) -> bool:
        """Whether a part of the tokens is an estimate."""
        return self.egress.estimated

    def share_preview(self, calls: list[PreviewedCall]) -> None:
        """From now on send nothing: calls are recorded in the list, and raise NotSent."""
        self.egress.preview = calls

    def _ask(self, kind: str, prompt: str, **options: Any) -> Reply:
        try:
            return self.egress.ask(kind, prompt, **options)
        finally:
            self.last_call_error = self.egress.last_error

    def _log(self, event: str, **data: Any) -> None:
        if self.evidence is not None:
            self.evidence.log("reflect", event, backend=self.name, model=self.model, **data)


def checked_tools(tools: Sequence[str], task: TaskRecord) -> tuple[str, ...]:
    """The names of stand-in tools, each once whatever its case. Raises CallFailed (refused) for what is no name."""
    wrong = next((tool for tool in tools if not _TOOL_NAME.fullmatch(tool) or ".." in tool), None)
    if wrong is not None or not 1 <= len(tools) <= MOST_TOOLS:
        raise CallFailed(
            f"Task {task.id} asks for the tool {wrong!a}, which is no plain name."
            if wrong is not None
            else f"Task {task.id} asks for {len(tools)} tools; expected 1 to {MOST_TOOLS}.",
            kind="refused",
        )
    by_case = {tool.lower(): tool for tool in reversed(tools)}
    return tuple(tool for tool in dict.fromkeys(tools) if by_case[tool.lower()] == tool)
