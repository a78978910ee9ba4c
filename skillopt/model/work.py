"""One call on its way: attempts, what becomes of their replies and errors, and counting.

What is common to all calls of a session (`calls.CallPath`) is given; what one call has used and tried is kept here.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillopt.errors import (
    ContextTooLongError,
    DeadlineError,
    EmptyReplyError,
    ModelError,
    ModelSetupError,
    RateLimitError,
    SilentAgentError,
    TransientError,
    TruncatedError,
)
from skillopt.model import retry
from skillopt.model.classify import UnreachableError, UnsupportedParameterError
from skillopt.model.known import OUTAGE_CALLS
from skillopt.model.registry import Backend, setting_hint
from skillopt.model.replies import check_answer, refuse_unsupported, reply_key, settle, token_cap, with_sizes
from skillopt.model.usage import UsageKey, cost_of
from skillopt.model.values import CallContext, ModelCall, ModelReply, text_of
from skillopt.types import RoleConfig, Usage
from skillopt.utils.cancel import CancelToken

if TYPE_CHECKING:
    from skillopt.model.calls import CallPath

DROPPABLE = frozenset(
    {
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "reasoning_effort",
        "top_p",
        "seed",
    }
)
"""Parameters without which a request still asks for the same thing."""
ATTEMPTS = 2
"""So many attempts that hang for as long as one may take have time within one call."""
_LEAST_SHARE = 0.01  # of a call's time; with less left another attempt would be paid for in vain


class Work:
    """One call of one role."""

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
        self._spent = Usage()
        self._place = 0  # in the line for the endpoint; kept over all attempts
        self._cap_factor = 1
        self._silent = 0  # attempts that ended without an answer
        own = float(role.settings.get("timeout_seconds") or 0)
        self._attempt_seconds: float | None = own or path.limits.timeout_seconds / ATTEMPTS
        self._seconds = max(path.limits.timeout_seconds, ATTEMPTS * self._attempt_seconds)
        left = token.remaining()
        if call.workspace is not None and left is not None:
            self._attempt_seconds, self._seconds = None, left  # an agent's work takes the time that its task has
        self._seconds_left = self._seconds

    @property
    def who(self) -> str:
        """Whom a message is about."""
        return f"{self.role.role} model {self.model or 'default'!r}"

    def perform(self, policy: retry.RetryPolicy) -> ModelReply:
        """Make the call and count it."""
        self.path.known.raise_if_tripped()
        self.token.raise_if_cancelled()
        started = time.monotonic()
        try:
            refuse_unsupported(self.call, self.backend.row)
            self.path.budget.start_call()
            reply = self._answer(policy)
        except ModelError as error:
            self._failed(error, time.monotonic() - started)
            if isinstance(error, DeadlineError) and self.who not in str(error):
                raise DeadlineError(f"{self.who}: {error}") from error
            raise
        except BaseException:  # interrupted, or the money ran out: what its attempts used is used
            self.path.usage.keep(self.usage_key)
            raise
        self.path.usage.add_success(self.usage_key, time.monotonic() - started)
        self.path.known.got_through(self.role)
        self._note(reply)
        return replace(reply, usage=replace(self._spent, calls=1))

    def _answer(self, policy: retry.RetryPolicy) -> ModelReply:
        reply = retry.run(self._attempt, policy, self.token, self._on_retry)
        if self.preflight:
            return reply
        if reply.finish_reason == "length" and policy.retries and self._may_be_longer():
            reply = self._with_larger_cap(reply, policy)
        return settle(reply, self.role.role, self.who, remote=self.backend.remote)

    def _may_be_longer(self) -> bool:
        """Whether a reply that was cut off can be asked for once more, with a larger limit."""
        limits_replies = self.backend.remote and "token_cap" in self.backend.row.capabilities
        wider = token_cap(self.call, self.role, 2) > token_cap(self.call, self.role)
        return limits_replies and wider and self.path.budget.allows_attempt()

    def _with_larger_cap(self, first: ModelReply, policy: retry.RetryPolicy) -> ModelReply:
        """The reply with more room for it; the one that was cut off if that cannot be had."""
        said = f"{self.who}: the reply was cut off at the token limit; once more with a larger one."
        self._cap_factor = 2
        self._on_retry(TruncatedError(said), 1, 0.0)
        try:
            return retry.run(self._attempt, policy, self.token, self._on_retry)
        except ModelError as error:
            if error.fatal:
                raise
            self._say("model_error", error=_name(error), message=str(error), fatal=False)
            return first

    def _attempt(self, number: int) -> ModelReply:
        known = self.path.known
        known.raise_if_tripped()
        limiter = known.limiter(self.role)
        self._place = self._place or limiter.place()
        with limiter.slot(self.token, self._estimate(), place=self._place) as slot:
            known.raise_if_tripped()
            try:
                reply = self._send()
            except RateLimitError as error:
                crowded = limiter.throttled(slot, error.retry_after)
                waits = {"attempt": number, "retry_after_s": error.retry_after}
                self._say("rate_limited", **waits, limit=limiter.concurrency, lowered=crowded and slot.news)
                if crowded:
                    raise retry.CrowdedError(str(error), error.retry_after) from error
                raise
            except UnreachableError as error:
                if self.preflight:
                    raise ModelSetupError(f"{error}. Start the server, or set {self._address_hint()}.") from error
                raise
            slot.used(reply.usage.total_tokens)
            self._count(reply.usage)
        if self.backend.remote and not self.preflight:
            self._check(reply)
        return reply

    def _address_hint(self) -> str:
        names = [name for name in ("base_url", "endpoint") if name in self.role.settings]
        return f"its address: {setting_hint(self.role, names[0])}" if names else "its address"

    def _check(self, reply: ModelReply) -> None:
        """Refuse a reply without an answer; one of an agent is asked for again as often as its own setting says."""
        try:
            check_answer(reply, self.who)
        except EmptyReplyError as error:
            self._silent += 1
            most = self.role.settings.get("empty_response_retries")
            if self.call.workspace is None or most is None or self._silent <= int(most):
                raise
            raise SilentAgentError(f"{error} {self._silent} attempts gave none.") from error

    def _send(self) -> ModelReply:
        """One attempt, repeated at once without a parameter that the endpoint refuses."""
        while True:
            dropped = self.path.known.dropped(self.role, self.model)
            context = CallContext(
                self._timeout(),
                self.token,
                self.key,
                dropped,
                self.path.resources,
                cap_factor=self._cap_factor,
                silent_before=self._silent,
                spent=self._count,
            )
            started = time.monotonic()
            try:
                return self.backend.complete(self.call, self.role, context)
            except UnsupportedParameterError as error:
                if error.parameter in dropped or error.parameter not in DROPPABLE:
                    raise
                if self.path.known.drop(self.role, self.model, error.parameter):
                    self._say("parameter_dropped", parameter=error.parameter, message=str(error))
            except ContextTooLongError as error:
                raise with_sizes(error, self._estimate()) from error
            except DeadlineError as error:
                self.token.raise_if_cancelled()
                seconds = max(0.1, round(context.timeout, 1))
                raise TransientError(f"{self.who} did not answer within {seconds:g} s.") from error
            finally:
                self._seconds_left -= time.monotonic() - started

    def _timeout(self) -> float:
        """Seconds for the next attempt. Raises DeadlineError when the call has used up its time."""
        if self._seconds_left <= _LEAST_SHARE * self._seconds:
            own = self._seconds > self.path.limits.timeout_seconds
            name = f"{ATTEMPTS} times the backend's timeout_seconds" if own else "model.timeout_seconds"
            raise DeadlineError(f"{self.who} gave no answer within {name} = {self._seconds:g}.")
        bounds = (self._seconds_left, self._attempt_seconds, self.token.remaining())
        return min(bound for bound in bounds if bound is not None)

    def _estimate(self) -> int:
        """Roughly the tokens of the prompt: a quarter of its characters."""
        return sum(len(text_of(message)) for message in self.call.messages) // 4

    def _count(self, usage: Usage) -> None:
        self._spent = self._spent + replace(usage, calls=0)
        self.path.usage.add_tokens(self.usage_key, usage)
        self.path.budget.add(usage, cost_of(self.usage_key, usage, self.path.prices))

    def _note(self, reply: ModelReply) -> None:
        """Say once what is odd about a model."""
        first = self.path.known.changed_model(self.role, self.model, reply.model)
        if first:
            self.path.emit("model_changed", role=self.role.role, model=self.model, first=first, now=reply.model)
        text = f"{self.role.backend}/{self.model}: {reply.notice}"
        if reply.notice and self.path.known.note(text):
            self._say("notice", text=text)

    def _on_retry(self, error: ModelError, attempt: int, wait: float) -> None:
        self.path.usage.add_retry(self.usage_key)
        self._say("model_retry", attempt=attempt, wait_s=round(wait, 3), error=_name(error), message=str(error))

    def _failed(self, error: ModelError, seconds: float) -> None:
        self.path.usage.add_failure(self.usage_key, seconds, f"{_name(error)}: {error}")
        if isinstance(error, TransientError) and self.path.known.count_lost(self.role):
            error = ModelSetupError(
                f"{OUTAGE_CALLS} calls in a row did not get through; the last one: {error} "
                "Run the same command again when the service is back; everything finished is kept."
            )
        if error.fatal and not self.path.known.trip(error):
            return  # said already, by the call that met it first
        self._say("model_error", error=_name(error), message=str(error), fatal=error.fatal)

    def _say(self, kind: str, **data: Any) -> None:
        self.path.emit(kind, role=self.role.role, model=self.model, stage=self.usage_key.stage, **data)


def _name(error: ModelError) -> str:
    """The name of an error's class as users know it, not that of a variant of ours."""
    known = (kind for kind in type(error).__mro__ if kind.__module__ == "skillopt.errors")
    return next(known, type(error)).__name__
