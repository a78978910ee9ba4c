"""A session: the roles of one run and everything that their calls share. No globals; two sessions share nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType, TracebackType

from skillopt.errors import ConfigError, ModelError, ModelSetupError
from skillopt.model.budget import Budget
from skillopt.model.calls import CallPath, ReplyStore
from skillopt.model.cost import Price, read_prices
from skillopt.model.limiter import Limits
from skillopt.model.registry import load_backend
from skillopt.model.replies import endpoint_of
from skillopt.model.usage import UsageKey, UsageTracker, price_of
from skillopt.model.values import DEFAULT_MAX_COMPLETION_TOKENS, Material, ModelCall, ModelReply
from skillopt.tracking.events import Emit
from skillopt.types import RoleConfig
from skillopt.utils.cancel import CancelToken

PREFLIGHT_STAGE = "preflight"
_PREFLIGHT_TOKENS = 16


class Session:
    """Makes the model calls of a run.

    `roles`: settings of `optimizer` and `target`, fixed for the life of the session. `prices`: by model or
    `backend/model`, as `Price` or `{input, output, cached}` in dollars for a million tokens. `store`: where replies
    asked for with `cached=True` are kept. `emit`: hears of retries, errors, rate limits. `usage`: counters to go on
    with. `stop`: ends every call that is given no token of its own. After a fatal error (credentials, unknown model,
    server not there) every further call fails at once with the same error.

        session = Session({"target": role})
        reply = session.ask("target", "Answer briefly.", "2 + 2?", stage="rollout")
        reply.text, session.usage.summary()

    Raises ConfigError when `budget.max_cost_usd` is set and a remote model has no price.
    """

    def __init__(  # noqa: PLR0913 - what the calls of a run share
        self,
        roles: Mapping[str, RoleConfig],
        *,
        limits: Limits | None = None,
        budget: Budget | None = None,
        prices: Mapping[str, Price | Mapping[str, float]] | None = None,
        store: ReplyStore | None = None,
        emit: Emit | None = None,
        usage: UsageTracker | None = None,
        stop: CancelToken | None = None,
    ) -> None:
        self.roles: Mapping[str, RoleConfig] = MappingProxyType(dict(roles))
        self.limits = limits or Limits()
        self.budget = budget or Budget()
        self.prices: Mapping[str, Price] = MappingProxyType(read_prices(prices or {}))
        self.usage = usage or UsageTracker(self.prices)
        self._store, self._emit, self._stop = store, emit, stop
        self._path = CallPath(
            limits=self.limits, budget=self.budget, prices=self.prices, usage=self.usage, store=store, emit=emit
        )
        if self.budget.max_cost_usd is not None:
            _require_prices(self.roles.values(), self.prices)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know about the models, a sentence each: parameters that were left out,
        another model that answered, what backends noticed."""
        return self._path.known.notes

    def with_roles(self, roles: Mapping[str, RoleConfig]) -> Session:
        """A session with other roles that goes on counting where this one is: same usage, budget, store and limits.

        Both use the same connections and loaded models; closing one closes them for both.
        """
        session = Session(
            roles,
            limits=self.limits,
            budget=self.budget,
            prices=self.prices,
            store=self._store,
            emit=self._emit,
            usage=self.usage,
            stop=self._stop,
        )
        session._path.resources = self._path.resources
        return session

    def role(self, name: str) -> RoleConfig:
        """The settings of a role. Raises ConfigError for one that this session does not have."""
        if name not in self.roles:
            raise ConfigError(
                f"No model is configured for the role {name!r}; this session has: {', '.join(self.roles)}."
            )
        return self.roles[name]

    def call(
        self,
        role: str,
        call: ModelCall,
        *,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        cached: bool = False,
        retries: int | None = None,
    ) -> ModelReply:
        """The reply of a role's model to `call`, with as many attempts as the limits (or `retries`) allow.

        `timeout`: seconds for everything, waits included. `cached`: an equal call made before is not made again. The
        reply's usage covers all attempts; that of a reply made before says what it took then, and is not counted again.

        Raises ModelError (its class says what to do), BudgetExceededError before a call that the budget does not
        allow, InterruptedRunError when `cancel` was cancelled.
        """
        token = CancelToken(timeout=timeout, parent=cancel or self._stop)
        return self._path.run(self.role(role), call, token, cached=cached, retries=retries)

    def ask(  # noqa: PLR0913 - the two texts and what may be said about them
        self,
        role: str,
        system: str,
        user: str,
        *,
        stage: str,
        max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
        material: Material | None = None,
        effort: str = "",
        cancel: CancelToken | None = None,
        timeout: float | None = None,
    ) -> ModelReply:
        """`call` with one system and one user message. Replies to the optimizer are kept and not paid for twice.

        `effort`: the reasoning effort of this call; blank for that of the role.
        """
        call = replace(_call_of(system, user, max_completion_tokens, effort), stage=stage, material=material)
        return self.call(role, call, cancel=cancel, timeout=timeout, cached=role == "optimizer")

    def forget(
        self,
        role: str,
        system: str,
        user: str,
        *,
        max_completion_tokens: int = DEFAULT_MAX_COMPLETION_TOKENS,
        effort: str = "",
    ) -> None:
        """Drop the kept reply to such an `ask`, because it was of no use: the next one is sent to the model again."""
        self._path.forget(self.role(role), _call_of(system, user, max_completion_tokens, effort))

    def preflight(self, *roles: str, cancel: CancelToken | None = None) -> None:
        """One tiny call to each distinct remote model: a wrong key, name or address shows before the first item.

        `roles`: those that will be called; all when none is named.

        Raises AuthError, ModelSetupError or RateLimitedUntilError; nothing when all answer.
        """
        for role in distinct_models(self.role(name) for name in roles or self.roles):
            if load_backend(role.backend).remote:
                try:
                    self.try_out(role.role, cancel=cancel)
                except ModelError as error:
                    if error.fatal:
                        raise
                    raise ModelSetupError(f"Before the first item: {error}") from error

    def try_out(
        self, role: str, *, cancel: CancelToken | None = None, timeout: float | None = None, retries: int | None = None
    ) -> ModelReply:
        """The reply of a role's model to one tiny call; any reply is good. Raises as `call` does."""
        from skillopt.model.harness.workspace import Workspace

        call = ModelCall(
            messages=({"role": "user", "content": "Reply with: ok"},),
            max_completion_tokens=_PREFLIGHT_TOKENS,
            stage=PREFLIGHT_STAGE,
            workspace=Workspace() if load_backend(self.role(role).backend).row.is_agent(role) else None,
        )
        token = CancelToken(timeout=timeout, parent=cancel or self._stop)
        return self._path.run(self.role(role), call, token, retries=retries, preflight=True)

    def close(self) -> None:
        """Release connections and other things that backends kept."""
        self._path.resources.close()


def distinct_models(roles: Iterable[RoleConfig]) -> list[RoleConfig]:
    """The roles without those whose endpoint, model and credentials are those of an earlier one."""
    first: dict[tuple[str, ...], RoleConfig] = {}
    for role in roles:
        mark = (endpoint_of(role), role.model, *(str(role.settings.get(name)) for name in sorted(role.secrets)))
        first.setdefault(mark, role)
    return list(first.values())


def _call_of(system: str, user: str, max_completion_tokens: int, effort: str) -> ModelCall:
    messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
    return ModelCall(
        messages=messages if system else messages[1:], max_completion_tokens=max_completion_tokens, effort=effort
    )


def _require_prices(roles: Iterable[RoleConfig], prices: Mapping[str, Price]) -> None:
    for role in roles:
        backend = load_backend(role.backend)
        key = UsageKey(role.role, role.backend, role.model, "", not backend.remote)
        if backend.remote and "usage" not in backend.row.capabilities:
            raise ConfigError(
                f"budget.max_cost_usd is set, but {role.backend} ({role.role}) reports no tokens, so what it costs is "
                "unknown; limit budget.max_calls instead."
            )
        if price_of(key, prices) is None:
            raise ConfigError(
                f"budget.max_cost_usd is set, but no price is known for {role.model!r} ({role.role}); "
                "add it to model.prices or model.price_file, or limit budget.max_calls or budget.max_tokens instead."
            )
