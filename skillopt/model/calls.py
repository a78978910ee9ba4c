"""The one path of a model call.

    store (a reply already paid for) → single flight → budget → limiter → one attempt with a deadline
        → class of the failure → retry or stop → usage → events

Backends make single attempts; everything that is common to all of them happens here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from skillopt.model import retry
from skillopt.model.budget import Budget
from skillopt.model.cost import Price
from skillopt.model.flights import Flights
from skillopt.model.known import Known
from skillopt.model.limiter import Limits
from skillopt.model.registry import load_backend
from skillopt.model.replies import reply_key
from skillopt.model.usage import UsageTracker
from skillopt.model.values import ModelCall, ModelReply, Resources
from skillopt.model.work import Work
from skillopt.tracking.events import Emit
from skillopt.types import JsonObject, RoleConfig
from skillopt.utils.cancel import CancelToken


class ReplyStore(Protocol):
    """Where finished replies are kept."""

    def get_reply(self, key: str) -> JsonObject | None:
        """The reply kept under `key`, or None."""

    def put_reply(self, key: str, stage: str, payload: Mapping[str, Any]) -> None:
        """Keep a reply."""

    def retire_reply(self, key: str) -> None:
        """No longer answer under `key`."""


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
        self.known = Known(limits)
        self._emit = emit
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

        `retries`: further attempts after a failure that usually passes, in place of the session's number.
        `preflight`: an address where nothing answers is not tried again, and any reply is good: a thinking model
        has no text after a few tokens.
        """
        work = Work(self, load_backend(role.backend), role, call, token, preflight=preflight)
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

    def _kept(self, work: Work, policy: retry.RetryPolicy) -> ModelReply:
        """The reply that the store holds, else a new one, which the store holds from now on."""
        stored = self.store.get_reply(work.key) if self.store is not None else None
        if stored is not None:
            self.usage.add_cached(work.usage_key)
            return ModelReply.from_dict(stored)
        reply = work.perform(policy)
        if self.store is not None:
            self.store.put_reply(work.key, work.call.stage, reply.to_dict())
        return reply
