"""The target model as one item sees it: a function from messages to a reply that counts what it used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from skillopt.types import RoleConfig, Usage

if TYPE_CHECKING:
    from skillopt.model.values import AgentWork, ModelCall, ModelReply
    from skillopt.utils.cancel import CancelToken


class CallSession(Protocol):
    """What running items needs of a model session."""

    @property
    def roles(self) -> Mapping[str, RoleConfig]:
        """Settings of each role, by its name."""
        ...

    def call(self, role: str, call: ModelCall, *, cancel: CancelToken | None = None) -> ModelReply:
        """Make one model call; `cancel` ends it early."""
        ...


class Chat:
    """Calls to the models on behalf of one item. They end when the item's time is over.

    `usage` adds up everything that was used so far; `finish_reason` is that of the latest reply and `work` what an
    agent did for it. `rollout_options`: what this kind of rollout is told (see `TaskEnv.train_options`).
    """

    def __init__(
        self,
        session: CallSession,
        cancel: CancelToken,
        options: Mapping[str, Any] | None = None,
        rollout_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._session = session
        self.rollout_options: Mapping[str, Any] = rollout_options or {}
        self._options = dict(options or {})
        self.cancel = cancel
        self.usage = Usage()
        self.finish_reason = ""
        self.model = ""
        self.work: AgentWork | None = None

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], *, role: str = "target", stage: str = "rollout", **options: Any
    ) -> ModelReply:
        """Reply of `role` to `messages`. `options` are further fields of ModelCall, such as `tools`."""
        from skillopt.model.values import ModelCall

        self.cancel.raise_if_cancelled()
        call = ModelCall(messages=tuple(messages), stage=stage, **{**self._options, **options})
        reply = self._session.call(role, call, cancel=self.cancel)
        self.usage += reply.usage
        self.finish_reason = reply.finish_reason
        self.model = reply.model
        self.work = reply.work
        return reply

    @property
    def roles(self) -> Mapping[str, RoleConfig]:
        """Settings of each role, by its name."""
        return self._session.roles
