"""What goes out in one call and what comes back: the two values that every backend shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillopt_sleep.errors import CallFailed
from skillopt_sleep.redact import redact_secrets

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Work, Workspace

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One call as it leaves this program. `prompt` is redacted already.

    `kind`: what it is for (attempt, judge, reflect, mine, contrast, slow_update, ...). `max_tokens`: hint for the
    length of the reply. `tools`: names of stand-in tools that the model may call. `seconds`: time for one attempt.
    `key`: what the answer is kept under. `sample`: which of several answers to the same prompt this one is, blank for
    the first. `workspace`: where the model works in files, None for an answer in text.
    """

    kind: str
    prompt: str
    max_tokens: int
    tools: tuple[str, ...] = ()
    seconds: float = 180.0
    key: str = ""
    sample: str = ""
    workspace: Workspace | None = None

    @property
    def booked_as(self) -> str:
        """The kind that the budget books it under: work in files takes many times what a text takes."""
        return self.kind if self.workspace is None else f"{self.kind}_in_checkout"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered. Token counts are None where it tells none.

    `tools_called`: the stand-in tools whose call was recorded. `cut`: the reply ended at a token limit. `requests`: how
    many requests it took. `work`: what was changed in the call's workspace.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str = ""
    tools_called: tuple[str, ...] = ()
    cut: bool = False
    requests: int = 1
    work: Work | None = None

    @property
    def says_nothing(self) -> bool:
        """True without a text; changed files are an answer also without one."""
        return not self.text.strip() and not (self.work is not None and self.work.files)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one call. `estimated`: counted here from the length of the texts, because the provider told none."""

    prompt: int
    completion: int
    estimated: bool

    @property
    def total(self) -> int:
        """Prompt and reply together."""
        return self.prompt + self.completion


def spent(outgoing: Outgoing, reply: Reply) -> Spent:
    """What a call has used, from the provider's words where it says it."""
    if reply.prompt_tokens is not None and reply.completion_tokens is not None:
        return Spent(max(0, reply.prompt_tokens), max(0, reply.completion_tokens), estimated=False)
    return Spent(estimate(outgoing.prompt), estimate(reply.text), estimated=True)


def lost(outgoing: Outgoing, error: CallFailed) -> Spent:
    """What a failed attempt cost: what the provider says, or an estimate where it answered and says nothing.

    An answer without a text may have used its whole length, for thinking; a refusal has read the prompt. A workspace
    that could not be made has cost nothing.
    """
    told = getattr(error, "tokens", None if outgoing.workspace is None else 0)
    if told is not None:
        return Spent(told, 0, estimated=bool(getattr(error, "estimated", False)))
    if error.kind not in ("empty", "refused"):
        return Spent(0, 0, estimated=False)
    return Spent(estimate(outgoing.prompt), outgoing.max_tokens if error.kind == "empty" else 0, estimated=True)


def redacted(reply: Reply) -> Reply:
    """A reply without what looks like a secret, in its text and in what was changed."""
    work = reply.work
    if work is not None:
        checks = tuple(replace(check, note=str(redact_secrets(check.note))) for check in work.checks)
        work = replace(work, diff=str(redact_secrets(work.diff)), checks=checks)
    return replace(reply, text=str(redact_secrets(reply.text)), work=work)


def estimate(text: str) -> int:
    """About how many tokens a text has: a quarter of its UTF-8 bytes, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)
