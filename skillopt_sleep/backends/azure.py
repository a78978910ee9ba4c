"""How the OpenAI-shaped backend signs in: a key, or a token of Microsoft Entra ID for Azure's own hosts only.

A token is asked for only after the endpoint was approved, before which azure-identity is not even imported; it is kept
in memory and shows in no message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from skillopt_sleep.backends.faults import ProviderFault, shown
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.nearest import suggestion
from skillopt_sleep.vendored.utils.azure_hosts import may_receive_token

AuthMode = Literal["api_key", "azure_cli", "managed_identity", "openai_compatible"]
MODES: Mapping[str, AuthMode] = {
    "api_key": "api_key",
    "key": "api_key",
    "azure_cli": "azure_cli",
    "managed_identity": "managed_identity",
    "aad": "managed_identity",
    "azure_ad": "managed_identity",
    "openai_compatible": "openai_compatible",
    "compat": "openai_compatible",
    "openai": "openai_compatible",
}
SCOPE = "https://cognitiveservices.azure.com/.default"
_REFRESH_SECONDS = 300.0
_SIGN_IN_SECONDS = 30
_FIX = {
    "azure_cli": "run `az login`",
    "managed_identity": "check AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID, or set AZURE_OPENAI_AUTH_MODE to api_key or "
    "azure_cli",
}


def auth_mode(environ: Mapping[str, str]) -> AuthMode:
    """The mode that AZURE_OPENAI_AUTH_MODE names; unset: `api_key` with AZURE_OPENAI_API_KEY, else `managed_identity`.

    Raises UsageProblem for a mode that does not exist.
    """
    named = environ.get("AZURE_OPENAI_AUTH_MODE", "").strip().lower()
    if not named:
        return "api_key" if environ.get("AZURE_OPENAI_API_KEY", "").strip() else "managed_identity"
    if named not in MODES:
        modes = ", ".join(sorted(set(MODES.values())))
        raise UsageProblem(f"AZURE_OPENAI_AUTH_MODE is {named!r}; expected one of {modes}{suggestion(named, MODES)}.")
    return MODES[named]


@dataclass
class Tokens:
    """The sign-in token of one backend, asked for when it is needed and renewed five minutes before its end."""

    mode: AuthMode
    client_id: str = ""
    scope: str = SCOPE
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _token: str = field(default="", repr=False)
    _until: float = field(default=0.0, repr=False)

    def bearer(self, endpoint: str) -> str:
        """A token for `endpoint`. Raises ProviderFault: setup for a foreign host, auth when signing in fails."""
        check_host(endpoint)
        with self._lock:
            if not self._token or time.time() > self._until - _REFRESH_SECONDS:
                self._token, self._until = self._ask()
            return self._token

    def _ask(self) -> tuple[str, float]:
        try:
            answer = self._credential().get_token(self.scope)
        except ProviderFault:
            raise
        except Exception as error:
            said = shown(str(error)) or type(error).__name__
            raise ProviderFault(
                f"Signing in to Azure ({self.mode}) failed: {said} To mend it, {_FIX[self.mode]}.", kind="auth"
            ) from error
        return str(answer.token), float(answer.expires_on)

    def _credential(self) -> Any:
        try:
            from azure.identity import AzureCliCredential, ManagedIdentityCredential
        except ImportError:
            raise ProviderFault(
                f"The auth mode {self.mode} needs a package that is not installed: pip install azure-identity",
                kind="setup",
            ) from None
        if self.mode == "azure_cli":
            return AzureCliCredential(process_timeout=_SIGN_IN_SECONDS)
        return ManagedIdentityCredential(client_id=self.client_id) if self.client_id else ManagedIdentityCredential()


def check_host(endpoint: str) -> None:
    """Refuse to send a sign-in token anywhere but to Azure OpenAI; the message does not repeat the address."""
    if not may_receive_token(endpoint):
        raise ProviderFault(
            "A sign-in token goes only to https hosts below .openai.azure.com and .cognitiveservices.azure.com, and "
            "the endpoint is another address. For a server of your own set AZURE_OPENAI_AUTH_MODE=openai_compatible "
            "(with AZURE_OPENAI_API_KEY), or api_key.",
            kind="setup",
        )
