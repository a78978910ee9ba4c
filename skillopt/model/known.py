"""What a session has learned about its endpoints, and whether it has come to its end."""

from __future__ import annotations

import copy
import threading

from skillopt.errors import ModelError
from skillopt.model.limiter import EndpointLimiter, Limits
from skillopt.model.replies import endpoint_of
from skillopt.types import RoleConfig

OUTAGE_CALLS = 20
"""Calls in a row to one endpoint, each with all its attempts, that did not get through: it is down."""

_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class Known:
    """Limiters by endpoint; refused parameters and the answering model by endpoint and model. Safe with threads.

    `notes`: what a reader of the run's results should know about its models, a sentence each, in order of discovery.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._limiters: dict[str, EndpointLimiter] = {}
        self._dropped: dict[tuple[str, str], frozenset[str]] = {}
        self._first_model: dict[tuple[str, str], str] = {}
        self._lost: dict[str, int] = {}
        self._notes: dict[str, None] = {}
        self._fatal: ModelError | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the models, each once."""
        with self._lock:
            return tuple(self._notes)

    def note(self, text: str) -> bool:
        """Keep a sentence; True when it is news."""
        with self._lock:
            news = text not in self._notes
            self._notes[text] = None
            return news

    def raise_if_tripped(self) -> None:
        """Raise the error that ended the session, if one did: no other call can succeed either."""
        if self._fatal is not None:
            raise copy.copy(self._fatal)  # one object, raised often, would hold on to the frames of every caller

    def trip(self, error: ModelError) -> bool:
        """End the session: every later call fails with the first fatal error. True for the first."""
        with self._lock:
            first = self._fatal is None
            self._fatal = self._fatal or error
            limiters = list(self._limiters.values())
        for limiter in limiters:
            limiter.release()
        return first

    def got_through(self, role: RoleConfig) -> None:
        """A call to a role's endpoint was answered."""
        with self._lock:
            self._lost[endpoint_of(role)] = 0

    def count_lost(self, role: RoleConfig) -> bool:
        """Count a call that did not get through; True when so many did not, one after the other."""
        endpoint = endpoint_of(role)
        with self._lock:
            self._lost[endpoint] = self._lost.get(endpoint, 0) + 1
            return self._lost[endpoint] >= OUTAGE_CALLS

    def limiter(self, role: RoleConfig) -> EndpointLimiter:
        """The limiter of a role's endpoint."""
        endpoint = endpoint_of(role)
        with self._lock:
            if endpoint not in self._limiters:
                self._limiters[endpoint] = EndpointLimiter(
                    self._limits.max_concurrency,
                    requests_per_minute=self._limits.requests_per_minute or None,
                    tokens_per_minute=self._limits.tokens_per_minute or None,
                    policy=self._limits.policy,
                )
            return self._limiters[endpoint]

    def dropped(self, role: RoleConfig, model: str) -> frozenset[str]:
        """Parameters that this endpoint refused for this model."""
        with self._lock:
            return self._dropped.get((endpoint_of(role), model), frozenset())

    def drop(self, role: RoleConfig, model: str, parameter: str) -> bool:
        """Remember a refused parameter; True when it is news."""
        key = (endpoint_of(role), model)
        with self._lock:
            before = self._dropped.get(key, frozenset())
            self._dropped[key] = before | {parameter}
        news = parameter not in before
        if news:
            newer = _OTHER_NAME.get(parameter)
            then = f"{newer} is sent instead" if newer else "it was left out"
            self.note(f"{role.backend}/{model} does not take the parameter {parameter}; {then}.")
        return news

    def changed_model(self, role: RoleConfig, asked: str, answered: str) -> str:
        """The model that answered at first, when a provider answers with another one and that is news, else blank."""
        if not answered:
            return ""
        with self._lock:
            first = self._first_model.setdefault((endpoint_of(role), asked), answered)
        said = f"{role.backend}/{asked} was answered by {answered}, and before by {first}."
        return first if first != answered and self.note(said) else ""
