"""The one way out: every text that leaves this program for a model goes through `Egress.ask`.

In this order: secrets are taken out; the answer is looked for among those already paid for; a preview records the call
and sends nothing; the meter admits the call or stops the night; the call is made, again after passing failures; the
answer, cleaned of secrets too, is kept on disk; the evidence tells of it.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from skillopt_sleep.backends.cache import CallCache
from skillopt_sleep.backends.faults import ProviderFault
from skillopt_sleep.backends.turns import FreshNumbers, Turns
from skillopt_sleep.backends.wire import Outgoing, Reply, Spent, estimate, lost, redacted, spent
from skillopt_sleep.budget import Meter
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.redact import redact_secrets

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Workspace

LONGEST_WAIT_SECONDS = 120.0
"""A provider that asks to wait longer is not waited for: the call fails as `rate`."""


class Sender(Protocol):
    """What a backend gives its way out: settings, and one attempt."""

    name: str
    model: str
    meter: Meter
    cache: CallCache | None
    evidence: Any
    evidence_phase: str
    tries: int
    longest_backoff: float
    timeout: float

    def key_of(self, outgoing: Outgoing) -> str:
        """What the answer to this call is kept under."""
        ...

    def send(self, outgoing: Outgoing) -> Reply:
        """One attempt; raises CallFailed."""
        ...


@dataclass(frozen=True, slots=True)
class PreviewedCall:
    """A call as it would have left the machine: the exact prompt, and about how many tokens it has.

    `note`: where the model would work in files; blank for an answer in text.
    """

    kind: str
    backend: str
    model: str
    prompt: str
    tokens: int
    max_tokens: int
    tools: tuple[str, ...] = ()
    note: str = ""


OUTAGE_CALLS = 5
"""Failed calls in a row, each with all its attempts, that mean that the provider is down."""


class NotSent(CallFailed):
    """A preview is on: the call was recorded and not made, so there is no answer."""

    def __init__(self, previewed: PreviewedCall) -> None:
        super().__init__(f"Preview: the {previewed.kind} call was recorded and nothing was sent.", kind="empty")
        self.previewed = previewed


class Egress:
    """The way out of one backend. `last_error` is what went wrong with the latest call, blank after a good one."""

    def __init__(self, sender: Sender, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sender = sender
        self._sleep = sleep
        self._lock = threading.Lock()
        self._numbers = FreshNumbers()
        self._turns = Turns()
        self._here = threading.local()
        self._tokens = 0
        self._estimated = False
        self._lost_in_a_row = 0
        self._memory = CallCache()
        self.last_error = ""
        self.preview: list[PreviewedCall] | None = None

    def ask(
        self,
        kind: str,
        prompt: str,
        *,
        max_tokens: int,
        sample: int = 0,
        fresh: bool = False,
        tools: tuple[str, ...] = (),
        workspace: Workspace | None = None,
    ) -> Reply:
        """The answer to `prompt`, and what was changed in `workspace`.

        `sample` numbers answers to one prompt that shall differ. `fresh` asks for an answer that no earlier call of
        this night was given: the n-th fresh call for a prompt is its n-th new sample, so that a resumed night finds it.
        Raises CallFailed, BudgetSpent, and what the sender raises to say that an answer is still awaited.
        """
        if any(redact_secrets(tool) != tool for tool in tools):
            raise CallFailed("The name of a tool looks like a secret, so nothing was sent.", kind="refused")
        asked = Outgoing(kind, str(redact_secrets(prompt)), max_tokens, tools, workspace=workspace)
        outgoing = self._outgoing(asked, sample, fresh=fresh)
        if self.preview is not None:
            raise NotSent(self._previewed(outgoing, self.preview))
        cache = self._sender.cache if self._sender.cache is not None else self._memory
        with self._turns.of(outgoing.key):
            kept = cache.get(outgoing.key)
            if kept is not None:
                self.last_error = ""
                self._log(outgoing, cache_hit=True)
                return kept
            reply = self._paid(outgoing)
            cache.put(outgoing.key, reply, kind=kind)
        return reply

    @property
    def tokens(self) -> int:
        """Tokens of all calls that were made; what the cache answered cost nothing."""
        return self._tokens

    @property
    def estimated(self) -> bool:
        """Whether some of the tokens were counted here, because the provider told none."""
        return self._estimated

    @property
    def tokens_here(self) -> int:
        """Tokens of the calls that this thread has made."""
        return int(getattr(self._here, "tokens", 0))

    def _outgoing(self, outgoing: Outgoing, sample: int, *, fresh: bool) -> Outgoing:
        tags = [f"s{sample}"] if sample else []
        workspace = outgoing.workspace
        seconds = self._sender.timeout if workspace is None else workspace.seconds
        outgoing = replace(outgoing, seconds=seconds, sample="-".join(tags))
        if fresh:
            base = self._sender.key_of(outgoing)
            number = self._numbers.take(base)
            outgoing = replace(outgoing, sample="-".join([*tags, f"fresh{number}"]))
            outgoing = replace(outgoing, key=self._sender.key_of(outgoing))
            self._numbers.given_to(outgoing.key, base, number)
            return outgoing
        return replace(outgoing, key=self._sender.key_of(outgoing))

    def _previewed(self, outgoing: Outgoing, preview: list[PreviewedCall]) -> PreviewedCall:
        sender = self._sender
        call = PreviewedCall(
            outgoing.kind,
            sender.name,
            sender.model,
            outgoing.prompt,
            estimate(outgoing.prompt),
            outgoing.max_tokens,
            outgoing.tools,
            outgoing.workspace.about if outgoing.workspace is not None else "",
        )
        preview.append(call)
        return call

    def _paid(self, outgoing: Outgoing) -> Reply:
        try:
            reply, used = self._attempts(outgoing)
        except CallFailed as error:
            self._numbers.give_back(outgoing.key)
            self.last_error = str(error)
            self._log(outgoing, error=str(error), failure=error.kind)
            self._raise_if_out(error)
            raise
        self.last_error = ""
        self._lost_in_a_row = 0
        usage = {"prompt": used.prompt, "completion": used.completion, "estimated": used.estimated}
        changed = {"files": list(reply.work.files)} if reply.work is not None else {}
        self._log(outgoing, cache_hit=False, response=reply.text, error="", usage=usage, **changed)
        return reply

    def _raise_if_out(self, error: CallFailed) -> None:
        """After so many calls in a row that did not get through, the night stops instead of trying each of the rest."""
        with self._lock:
            self._lost_in_a_row = self._lost_in_a_row + 1 if error.kind == "transient" else 0
            out = self._lost_in_a_row >= OUTAGE_CALLS
        if out:
            raise CallFailed(
                f"{OUTAGE_CALLS} calls to {self._sender.name} in a row did not get through; the last one: {error} "
                "Run the same command when it is back; what is paid for is kept.",
                kind="setup",
            ) from error

    def _attempts(self, outgoing: Outgoing) -> tuple[Reply, Spent]:
        """Make the call, again after a passing failure, each attempt admitted and counted on its own."""
        for attempt in range(1, self._sender.tries + 1):
            try:
                return self._once(outgoing)
            except CallFailed as error:
                wait = self._wait_after(error, attempt)
                if wait is None:
                    raise
            self._sleep(wait)
        raise AssertionError("the last attempt raises or returns")

    def _once(self, outgoing: Outgoing) -> tuple[Reply, Spent]:
        with self._sender.meter.call(outgoing.booked_as, estimate(outgoing.prompt) + outgoing.max_tokens) as charge:
            try:
                reply = self._sender.send(outgoing)
            except CallFailed as error:
                charge.tokens = self._count(lost(outgoing, error))
                raise
            used = spent(outgoing, reply)
            charge.tokens, charge.calls = self._count(used), reply.requests
            if reply.says_nothing:
                raise ProviderFault(f"{self._sender.name} gave an empty answer.", kind="empty")
        return redacted(reply), used

    def _count(self, used: Spent) -> int:
        with self._lock:
            self._tokens += used.total
            self._estimated |= used.estimated
        self._here.tokens = self.tokens_here + used.total
        return used.total

    def _wait_after(self, error: CallFailed, attempt: int) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        if attempt >= self._sender.tries or not isinstance(error, ProviderFault) or not error.passing:
            return None
        if error.wait is not None:
            return error.wait if error.wait <= LONGEST_WAIT_SECONDS else None
        backoff: float = min(self._sender.longest_backoff, 0.5 * 2 ** (attempt - 1))
        return backoff + random.uniform(0, 0.25 * backoff)

    def _log(self, outgoing: Outgoing, **data: Any) -> None:
        log = self._sender.evidence
        if log is None:
            return
        head = {
            "kind": outgoing.kind,
            "cache_hit": data.pop("cache_hit", False),
            "key": outgoing.key,
            "phase": self._sender.evidence_phase,
            "backend": self._sender.name,
            "model": self._sender.model,
            **({"workspace": outgoing.workspace.about} if outgoing.workspace is not None else {}),
        }
        sent = {} if head["cache_hit"] else {"prompt": outgoing.prompt, "response": "", **data}
        log.log("replay", "model_call", **head, **sent)


def content_key(*parts: str) -> str:
    """64 hex digits over parts, each of which counts with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()
