"""How a role signs in to Azure OpenAI: by key, by a token of Microsoft Entra ID, or as at any other server.

A token is asked for only after the endpoint has been approved by `skillopt.utils.azure_hosts`, is kept in memory for
the life of a session, and shows in no message, event or `repr`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

from skillopt.config.providers import get_provider
from skillopt.errors import AuthError, ConfigError, MissingExtraError, SkillOptError
from skillopt.model.classify import clip
from skillopt.model.flights import Flights
from skillopt.model.registry import credentials_hint
from skillopt.model.values import CallContext
from skillopt.types import RoleConfig
from skillopt.utils.azure_hosts import require_token_host
from skillopt.utils.cancel import CancelToken

AuthMode = Literal["api_key", "azure_cli", "managed_identity", "openai_compatible"]

TOKEN_SECONDS = 60.0
"""A sign-in takes no longer than this."""

REFRESH_SECONDS = 300.0
"""A token is renewed so long before it ends."""

AGAIN_SECONDS = 30.0
"""After a renewal that failed, the next one is not tried before; each can take as long as a sign-in."""

_FIX = {
    "azure_cli": "install Azure's command line if it is not there and run `az login` (and `az account set` for the "
    "right subscription), or set an auth mode with a key",
    "managed_identity": "run where this identity exists, check the client id of the managed identity, "
    "or set another auth mode",
}


class AccessToken(Protocol):
    """What a credential gives: the token and when it ends, in seconds since 1970."""

    @property
    def token(self) -> str:
        """The token itself."""

    @property
    def expires_on(self) -> int:
        """When it ends."""


class Credential(Protocol):
    """The one method of the credentials in `azure.identity` that is used here."""

    def get_token(self, *scopes: str) -> AccessToken:
        """A new token."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """What one request needs: where to, in which form, and the secret with the header that carries it."""

    mode: AuthMode
    endpoint: str
    key: str = field(repr=False)
    key_header: str = "Authorization"

    @property
    def azure(self) -> bool:
        """True for the address forms of Azure, False for those of a plain OpenAI server."""
        return self.mode != "openai_compatible"

    @property
    def by_token(self) -> bool:
        """True when `key` is a token that was asked for, not a key that somebody configured."""
        return self.mode in _FIX


def auth_mode(name: str) -> AuthMode:
    """The canonical mode of one of its names. Raises ConfigError, with all names, for another."""
    field = next(field for field in get_provider("openai_chat").fields if field.name == "auth_mode")
    word = name.strip().lower().replace("-", "_")
    mode = field.synonyms.get(word, word)
    if mode not in field.choices:
        known = ", ".join((*field.choices, *field.synonyms))
        raise ConfigError(f"Unknown auth mode {name!r} for Azure OpenAI; expected one of {known}.")
    return cast("AuthMode", mode)


def sign_in(role: RoleConfig, ctx: CallContext) -> SignIn:
    """Sign in as the role's settings say.

    Raises ConfigError for a missing endpoint (first of all), an unknown mode, a missing key, or an endpoint that must
    not see a token; AuthError when Azure gives no token; DeadlineError or InterruptedRunError when `ctx` ends first.
    """
    endpoint = _setting(role, "endpoint").rstrip("/")
    if not endpoint:
        upper = role.role.upper()
        raise ConfigError(
            f"The {role.role} has no Azure OpenAI endpoint; set model.azure_openai_endpoint in the configuration, or "
            f"the environment variable AZURE_OPENAI_ENDPOINT (or {upper}_AZURE_OPENAI_ENDPOINT), or "
            f"choose another backend with model.backend or model.{role.role}_backend."
        )
    mode = auth_mode(_setting(role, "auth_mode") or "azure_cli")
    if mode == "openai_compatible":
        return SignIn(mode, endpoint, _setting(role, "api_key"))
    if mode == "api_key":
        return SignIn(mode, endpoint, _required_key(role), "api-key")
    require_token_host(endpoint, error=ConfigError)
    source = token_source(role, mode, ctx)
    return SignIn(mode, endpoint, source.token(ctx.timeout, ctx.cancel))


def token_source(role: RoleConfig, mode: AuthMode, ctx: CallContext) -> TokenSource:
    """The session's source of tokens for this mode, scope and client id."""
    scope = _setting(role, "ad_scope") or "https://cognitiveservices.azure.com/.default"
    client = _setting(role, "managed_identity_client_id") if mode == "managed_identity" else ""
    return ctx.resources.get(
        ("azure_token", mode, scope, client),
        lambda: TokenSource(lambda: _credential(mode, client), scope, fix=_FIX[mode], who=mode),
    )


@dataclass(frozen=True, slots=True)
class _Held:
    token: str = field(repr=False)
    expires_on: float = 0.0


class TokenSource:
    """Tokens of one credential for one scope, each used until 300 s before its end. Safe to use from many threads.

    Of callers that need a new token at one time, one asks for it and the others wait. When renewing fails while the
    old token is still good, the old one is used on.
    """

    def __init__(
        self,
        make: Callable[[], Credential],
        scope: str,
        *,
        who: str = "azure",
        fix: str = "sign in again",
        clock: Callable[[], float] = time.time,
        limit: float = TOKEN_SECONDS,
    ) -> None:
        self._make, self._scope, self._who, self._fix = make, scope, who, fix
        self._clock, self._limit = clock, limit
        self._flights: Flights[_Held] = Flights()
        self._held = _Held("")
        self._again_at = 0.0

    def token(self, timeout: float, cancel: CancelToken | None = None) -> str:
        """A token that is good for some minutes. Raises as `sign_in` does."""
        held = self._held
        if not self._fresh(held):
            token = CancelToken(timeout=timeout, parent=cancel)
            held, _ = self._flights.once("token", token, lambda: self._renew(token))
        return held.token

    def _fresh(self, held: _Held) -> bool:
        now = self._clock()
        return held.expires_on - REFRESH_SECONDS > now or (held.expires_on > now and self._again_at > now)

    def _renew(self, cancel: CancelToken) -> _Held:
        if self._fresh(self._held):  # another caller was faster
            return self._held
        try:
            self._held = self._ask(cancel)
        except AuthError:
            now = self._clock()
            if self._held.expires_on <= now:
                raise
            self._again_at = now + AGAIN_SECONDS
        return self._held

    def _ask(self, cancel: CancelToken) -> _Held:
        """Ask in a thread of its own, because a credential can block for longer than we may wait."""
        asking = _Asking(self._make, self._scope)
        limit = CancelToken(timeout=self._limit, parent=cancel)
        asking.start()
        with limit.on_cancel(asking.done.set):
            asking.done.wait()
        if asking.held is None and asking.error is None:
            cancel.raise_if_cancelled()
            raise AuthError(f"Signing in to Azure ({self._who}) took longer than {self._limit:g} s; {self._fix}.")
        if asking.held is not None:
            return asking.held
        if isinstance(asking.error, SkillOptError):
            raise asking.error
        said = (clip(str(asking.error), (), 500) or type(asking.error).__name__).rstrip(".")
        raise AuthError(f"Signing in to Azure ({self._who}) failed: {said}. To mend it, {self._fix}.") from None


class _Asking(threading.Thread):
    """One request for a token. `done` is set when `held` or `error` is there."""

    def __init__(self, make: Callable[[], Credential], scope: str) -> None:
        super().__init__(name="skillopt-azure-sign-in", daemon=True)
        self._make, self._scope = make, scope
        self.done = threading.Event()
        self.held: _Held | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            answer = self._make().get_token(self._scope)
            self.held = _Held(answer.token, float(answer.expires_on))
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits, as one of ours
            self.error = error
        finally:
            self.done.set()


def _credential(mode: AuthMode, client_id: str) -> Credential:
    try:
        from azure.identity import AzureCliCredential, ManagedIdentityCredential
    except ImportError as error:
        raise MissingExtraError(
            f"The auth mode {mode} needs a package that is not installed: pip install azure-identity"
        ) from error
    log = logging.getLogger("azure.identity")
    if not log.handlers:  # what it would log for want of a handler is said by the error that follows
        log.addHandler(logging.NullHandler())
    if mode == "azure_cli":
        return AzureCliCredential(process_timeout=int(TOKEN_SECONDS))
    return ManagedIdentityCredential(client_id=client_id) if client_id else ManagedIdentityCredential()


def _required_key(role: RoleConfig) -> str:
    key = _setting(role, "api_key")
    if not key:
        raise ConfigError(f"The {role.role} has no key for Azure OpenAI; set {credentials_hint(role)}.")
    return key


def _setting(role: RoleConfig, name: str) -> str:
    return str(role.settings.get(name) or "").strip()
