# A copy of skillopt/utils/azure_hosts.py, made by scripts/vendor.py: change the original, then run that.
"""The one rule about where a sign-in token of Azure may go.

Standard library only, and nothing of ours: a package that must not depend on this one can carry a copy.
"""

from __future__ import annotations

import re

TOKEN_HOST_SUFFIXES = (".openai.azure.com", ".cognitiveservices.azure.com")

# Only what every reader of addresses reads alike: no user name, backslash, blank, percent sign or letter beyond ASCII
# in front of the path, no empty label, no dot at the end.
_PLAIN_HTTPS = re.compile(
    r"https://(?P<host>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)(?::[0-9]{1,5})?"
    r"(?:/[!-\[\]-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_MAX_HOST_CHARS = 253


def may_receive_token(address: str) -> bool:
    """True when a bearer token may be sent to `address`.

    That is an https address whose host is a name below one of `TOKEN_HOST_SUFFIXES`, written plainly.
    """
    match = _PLAIN_HTTPS.fullmatch(address)
    host = match["host"].lower() if match else ""
    return len(host) <= _MAX_HOST_CHARS and host.endswith(TOKEN_HOST_SUFFIXES)


def require_token_host(address: str, *, error: type[Exception] = ValueError) -> None:
    """Refuse to send a sign-in token anywhere but to Azure OpenAI.

    Call it before a token is asked for. Raises `error` for an address that `may_receive_token` does not approve; the
    message does not repeat the address, which may hold a password.
    """
    if not may_receive_token(address):
        names = " or ".join(f"https://NAME{suffix}" for suffix in TOKEN_HOST_SUFFIXES)
        raise error(
            f"A sign-in token goes only to {names}, and the endpoint is another address; for a server of your own use "
            "the auth mode openai_compatible (with its key), or the auth mode api_key."
        )
