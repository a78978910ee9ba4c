"""The one path of a model call.

    store (a reply already paid for) → single flight → budget → limiter → one attempt with a deadline
        → class of the failure → retry or stop → usage → events

Backends make single attempts; everything that is common to all of them happens here and nowhere else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from skillopt.errors import (
    DeadlineError,
    ModelError,
    ModelSetupError,
    RateLimitError,
    TransientError,
)
from skillopt.model import retry
from skillopt.model.budget import Budget
from skillopt.model.classify import UnreachableError, UnsupportedParameterError
from skillopt.model.flights import Flights
from skillopt.model.limiter import EndpointLimiter, Limits, Slot
from skillopt.model.registry import Backend, load_backend
from skillopt.model.replies import check_reply, endpoint_of, reply_key
from skillopt.model.usage import Price, UsageKey, UsageTracker, cost_of
from skillopt.model.values import CallContext, ModelCall, ModelReply, Resources, text_of
from skillopt.tracking.events import Emit
from skillopt.types import JsonObject, RoleConfig, Usage
from skillopt.utils.cancel import CancelToken

DROPPABLE = frozenset({"temperature", "max_tokens", "max_completion_tokens", "reasoning_effort", "top_p", "seed"})


class ReplyStore(Protocol):
    """Where finished replies are kept."""

    def get_reply(self, key: str) -> JsonObject | None:
        """The reply kept under `key`, or None."""

    def put_reply(self, key: str, stage: str, payload: Mapping[str, Any]) -> None:
        """Keep a reply."""

    def retire_reply(self, key: str) -> None:
        """No longer answer under `key`."""


@dataclass(slots=True)
class _Known:
    """What a session has learned about its endpoints."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    limiters: dict[str, EndpointLimiter] = field(default_factory=dict)
    dropped: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    first_model: dict[tuple[str, str], str] = field(default_factory=dict)
    reported: set[tuple[str, str, str]] = field(default_factory=set)
    fatal: ModelError | None = None


class CallPath:
    """What the calls of one session share."""

    def __init__(
        self,
        *,
        limits: Limits,
        budget: Budget,
        prices: Mapping[str, Price],
        usage: UsageTracker,
        store: ReplyStore | None = None,
        emit: Emit | None = None,
    ) -> None:
        self.limits, self.budget, self.prices = limits, budget, prices
        self.usage, self.store = usage, store
        self.resources = Resources()
        self._emit = emit
        self._known = _Known()
        self._flights: Flights[ModelReply] = Flights()

    def run(
        self,
        role: RoleConfig,
        call: ModelCall,
        token: CancelToken,
        *,
        cached: bool = False,
        retries: int | None = None,
        preflight: bool = False,
    ) -> ModelReply:
        """The reply to `call`. `cached`: equal calls share one reply, kept in the store if there is one.

        `preflight`: an address where nothing answers is not tried again, and any reply is good: a thinking model
        has no text after a few tokens.
        """
        work = _Work(self, load_backend(role.backend), role, call, token, preflight=preflight)
        policy = self.limits.policy if retries is None else replace(self.limits.policy, retries=max(0, retries))
        if not cached:
            return work.perform(policy)
        reply, mine = self._flights.once(work.key, token, lambda: self._kept(work, policy))
        if not mine:
            self.usage.add_cached(work.usage_key)
        return reply

    def forget(self, role: RoleConfig, call: ModelCall) -> None:
        """Make an equal call again when it is asked for next, whatever the store holds."""
        if self.store is not None:
            self.store.retire_reply(reply_key(role, call))

    def emit(self, kind: str, **data: Any) -> None:
        """Say what happened, if anybody listens."""
        if self._emit is not None:
            self._emit(kind, **data)

    def raise_if_tripped(self) -> None:
        """Raise the error that ended the session, if one did: no other call can succeed either."""
        if self._known.fatal is not None:
            raise self._known.fatal

    def trip(self, error: ModelError) -> bool:
        """End the session: every later call fails with the first fatal error. True for the first."""
        with self._known.lock:
            first = self._known.fatal is None
            self._known.fatal = self._known.fatal or error
            limiters = list(self._known.limiters.values())
        for limiter in limiters:
            limiter.release()
        return first

    def limiter(self, role: RoleConfig) -> EndpointLimiter:
        """The limiter of a role's endpoint."""
        endpoint = endpoint_of(role)
        with self._known.lock:
            if endpoint not in self._known.limiters:
                self._known.limiters[endpoint] = EndpointLimiter(
                    self.limits.max_concurrency,
                    requests_per_minute=self.limits.requests_per_minute or None,
                    tokens_per_minute=self.limits.tokens_per_minute or None,
                )
            return self._known.limiters[endpoint]

    def dropped(self, role: RoleConfig, model: str) -> frozenset[str]:
        """Parameters that this endpoint refused for this model."""
        with self._known.lock:
            return self._known.dropped.get((endpoint_of(role), model), frozenset())

    def drop(self, role: RoleConfig, model: str, parameter: str) -> bool:
        """Remember a refused parameter; True when it is news."""
        key = (endpoint_of(role), model)
        with self._known.lock:
            before = self._known.dropped.get(key, frozenset())
            self._known.dropped[key] = before | {parameter}
            return parameter not in before

    def note_model(self, role: RoleConfig, asked: str, answered: str) -> None:
        """Say once when a provider answers with another model than it first did."""
        if not answered:
            return
        with self._known.lock:
            first = self._known.first_model.setdefault((endpoint_of(role), asked), answered)
            pair = (asked, first, answered)
            if first == answered or pair in self._known.reported:
                return
            self._known.reported.add(pair)
        self.emit("model_changed", role=role.role, model=asked, first=first, now=answered)

    def _kept(self, work: _Work, policy: retry.RetryPolicy) -> ModelReply:
        stored = self.store.get_reply(work.key) if self.store is not None else None
        if stored is not None:
            self.usage.add_cached(work.usage_key)
            return ModelReply.from_dict(stored)
        reply = work.perform(policy)
        if self.store is not None:
            self.store.put_reply(work.key, work.call.stage, reply.to_dict())
        return reply


class _Work:
    """One call on its way."""

    def __init__(
        self,
        path: CallPath,
        backend: Backend,
        role: RoleConfig,
        call: ModelCall,
        token: CancelToken,
        *,
        preflight: bool,
    ) -> None:
        self.preflight = preflight
        self.path, self.backend, self.role, self.call, self.token = path, backend, role, call, token
        self.model = call.model or role.model
        self.key = reply_key(role, call)
        self.usage_key = UsageKey(role.role, role.backend, self.model, call.stage or role.role, not backend.remote)
        self.spent = Usage()
        self.seconds_left = path.limits.timeout_seconds

    @property
    def who(self) -> str:
        """Whom a message is about."""
        return f"{self.role.role} model {self.model!r}"

    def perform(self, policy: retry.RetryPolicy) -> ModelReply:
        """Make the call and count it."""
        self.path.raise_if_tripped()
        self.token.raise_if_cancelled()
        self.path.budget.start_call()
        started = time.monotonic()
        try:
            reply = retry.run(self._attempt, policy, self.token, self._on_retry)
        except ModelError as error:
            self._failed(error, time.monotonic() - started)
            if isinstance(error, DeadlineError) and self.who not in str(error):
                raise DeadlineError(f"{self.who}: {error}") from error
            raise
        self.path.usage.add_success(self.usage_key, time.monotonic() - started)
        self.path.note_model(self.role, self.model, reply.model)
        return replace(reply, usage=replace(self.spent, calls=1))

    def _attempt(self, number: int) -> ModelReply:
        self.path.raise_if_tripped()
        limiter = self.path.limiter(self.role)
        with limiter.slot(self.token, self._estimate()) as slot:
            self.path.raise_if_tripped()
            try:
                reply = self._send()
            except RateLimitError as error:
                crowded = limiter.throttled(slot, error.retry_after)
                waits = {"attempt": number, "retry_after_s": error.retry_after}
                self._say("rate_limited", **waits, limit=limiter.concurrency, lowered=crowded)
                if crowded:
                    raise retry.CrowdedError(str(error), error.retry_after) from error
                raise
            except UnreachableError as error:
                if self.preflight:
                    raise ModelSetupError(f"{error}. Start the server, or set its address.") from error
                raise
            self._count(reply.usage, slot)
        if self.backend.remote and not self.preflight:
            check_reply(reply, self.who)
        return reply

    def _send(self) -> ModelReply:
        """One attempt, repeated at once without a parameter that the endpoint refuses."""
        while True:
            dropped = self.path.dropped(self.role, self.model)
            context = CallContext(self._timeout(), self.token, self.key, dropped, self.path.resources)
            started = time.monotonic()
            try:
                return self.backend.complete(self.call, self.role, context)
            except UnsupportedParameterError as error:
                if error.parameter in dropped or error.parameter not in DROPPABLE:
                    raise
                if self.path.drop(self.role, self.model, error.parameter):
                    self._say("parameter_dropped", parameter=error.parameter, message=str(error))
            except DeadlineError as error:
                self.token.raise_if_cancelled()
                seconds = max(0.1, round(context.timeout, 1))
                raise TransientError(f"{self.who} did not answer within {seconds:g} s.") from error
            finally:
                self.seconds_left -= time.monotonic() - started

    def _timeout(self) -> float:
        """Seconds for the next attempt. Raises DeadlineError when the call has used up its time."""
        if self.seconds_left <= 0:
            raise DeadlineError(
                f"{self.who} gave no answer within model.timeout_seconds = {self.path.limits.timeout_seconds:g}."
            )
        own = self.role.settings.get("timeout_seconds")
        bounds = (self.seconds_left, float(own) if own else None, self.token.remaining())
        return min(bound for bound in bounds if bound is not None)

    def _estimate(self) -> int:
        """Roughly the tokens of the prompt: a quarter of its characters."""
        return sum(len(text_of(message)) for message in self.call.messages) // 4

    def _count(self, usage: Usage, slot: Slot) -> None:
        slot.used(usage.total_tokens)
        self.spent = self.spent + replace(usage, calls=0)
        self.path.usage.add_tokens(self.usage_key, usage)
        self.path.budget.add(usage, cost_of(self.usage_key, usage, self.path.prices))

    def _on_retry(self, error: ModelError, attempt: int, wait: float) -> None:
        self.path.usage.add_retry(self.usage_key)
        self._say("model_retry", attempt=attempt, wait_s=round(wait, 3), error=_name(error), message=str(error))

    def _failed(self, error: ModelError, seconds: float) -> None:
        self.path.usage.add_failure(self.usage_key, seconds, f"{_name(error)}: {error}")
        if error.fatal and not self.path.trip(error):
            return  # said already, by the call that met it first
        self._say("model_error", error=_name(error), message=str(error), fatal=error.fatal)

    def _say(self, kind: str, **data: Any) -> None:
        self.path.emit(kind, role=self.role.role, model=self.model, stage=self.usage_key.stage, **data)


def _name(error: ModelError) -> str:
    """The name of an error's class as users know it, not that of a variant of ours."""
    known = (kind for kind in type(error).__mro__ if kind.__module__ == "skillopt.errors")
    return next(known, type(error)).__name__
