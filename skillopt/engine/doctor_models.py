"""The checks of a configuration that concern models: backends, prices, credentials, programs, live calls."""

from __future__ import annotations

import ipaddress
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from skillopt.config.agent_rows import wants_sdk
from skillopt.config.provider_row import ProviderField
from skillopt.config.providers import PROVIDERS
from skillopt.config.run_config import RunConfig
from skillopt.engine.findings import Finding, Level, as_findings
from skillopt.errors import (
    AuthError,
    ConfigError,
    MissingExtraError,
    ModelError,
    ModelSetupError,
    RateLimitedUntilError,
    RateLimitError,
    SkillOptError,
    TransientError,
    UnsupportedCallError,
)
from skillopt.model.azure_auth import auth_mode
from skillopt.model.cost import Price
from skillopt.model.harness.sdk import bundled
from skillopt.model.prices import known_prices
from skillopt.model.registry import load_backend
from skillopt.model.session import Session, distinct_models
from skillopt.model.usage import UsageKey, price_of
from skillopt.model.values import ModelReply
from skillopt.types import RoleConfig
from skillopt.utils.azure_hosts import TOKEN_HOST_SUFFIXES, may_receive_token
from skillopt.utils.redact import hide_in_addresses

CALL_SECONDS = 60.0
"""A live call takes no longer than this."""

_SOON_SECONDS = 10.0


def check_backend(name: str, role: RoleConfig, source: str) -> Iterator[Finding]:
    """The backend of a role can be imported."""
    try:
        load_backend(role.backend)
    except SkillOptError as error:
        yield from as_findings("backends", error, "install what is missing, or choose another backend")
        return
    model = role.model or "its own default model"
    yield Finding("ok", "backends", f"{name}: {role.backend}, {model} ({source})")


def check_prices(config: RunConfig) -> Iterator[Finding]:
    """The price of each remote model; a failure where a budget of money needs one that is not known."""
    try:
        prices = known_prices(config.model)
    except ConfigError as error:
        yield from as_findings("prices", error, "correct the file, or remove model.price_file")
        return
    for role in distinct_models(_usable(config)):
        if _remote(role):
            price = price_of(UsageKey(role.role, role.backend, role.model, ""), prices)
            yield _price(role, price, needed=config.budget.max_cost_usd is not None)


def _price(role: RoleConfig, price: Price | None, *, needed: bool) -> Finding:
    model: str = role.model or role.backend
    level: Level = "fail" if needed else "warn"
    more = ", and budget.max_cost_usd needs it" if needed else ""
    if "usage" not in PROVIDERS[role.backend].capabilities:
        what = f"{role.role}: {role.backend} reports no tokens, so what it costs is unknown{more}"
        return Finding(level, "prices", what, "limit budget.max_calls instead")
    if price is None:
        fix = "give it in model.prices or model.price_file"
        return Finding(level, "prices", f"{role.role}: no price of {model} is known{more}", fix)
    amounts = f"${price.prompt:g} in, ${price.completion:g} out for a million tokens"
    return Finding("ok", "prices", f"{role.role}: {model} costs {amounts} ({price.source})")


def check_keys(config: RunConfig, name: str) -> Iterator[Finding]:
    """A role's credentials are there, or it can sign in; its program is installed."""
    role = config.roles[name]
    for field in PROVIDERS[role.backend].fields:
        if field.name == "path":
            yield _program(role, field)
        elif field.name == "endpoint" and not str(role.settings.get("endpoint") or "").strip():
            fix = f"set {_how(role, 'endpoint')}, or choose another backend with model.{name}_backend"
            yield Finding("fail", "keys", f"{name}: {role.backend} has no endpoint", fix)
    if "auth_mode" in role.settings:
        try:
            mode = auth_mode(str(role.settings["auth_mode"] or "azure_cli"))
        except ConfigError as error:
            yield from as_findings("keys", error, f"set {_how(role, 'auth_mode')}")
            return
        if mode in ("azure_cli", "managed_identity"):
            yield from _sign_in(role, mode)
            return
        if mode == "api_key" and not str(role.settings.get("api_key") or "").strip():
            yield Finding("fail", "keys", f"{name}: the auth mode api_key has no key", f"set {_how(role, 'api_key')}")
            return
    if role.secrets:
        yield _key(config, role)


def check_calls(config: RunConfig, *, offline: bool) -> Iterator[Finding]:
    """One tiny call to each distinct model. Those that leave this machine are left out when `offline`."""
    for role in distinct_models(_usable(config)):
        leaves = _remote(role) or any(f.name == "path" for f in PROVIDERS[role.backend].fields)
        if not leaves:
            yield from _local_call(role)
        elif offline:
            yield Finding("ok", "calls", f"{role.role}: not called", "leave out --offline to make one tiny call")
        elif PROVIDERS[role.backend].is_agent(role.role):
            yield Finding("ok", "calls", f"{role.role}: {role.backend} is an agent; it is not tried out here")
        elif any(finding.level == "fail" for finding in check_keys(config, role.role)):
            yield Finding("warn", "calls", f"{role.role}: not called", "mend first what is said of it above")
        else:
            yield from _live_call(role)


def _usable(config: RunConfig) -> list[RoleConfig]:
    return [role for role in config.roles.values() if PROVIDERS[role.backend].available]


def _remote(role: RoleConfig) -> bool:
    return "remote" in PROVIDERS[role.backend].capabilities


def _how(role: RoleConfig, name: str) -> str:
    """Where a setting of a role is set, in short: a variable for both roles, and a key."""
    field = next(field for field in PROVIDERS[role.backend].fields if field.name == name)
    variables = [name for name in field.env if "{ROLE}" not in name] or field.env_for(role.role)
    keys = [f"model.{key}" for key in (field.key, *field.keys_for(role.role)) if key]
    return " or ".join([*variables[-1:], *keys[:1]])


def _how_to_sign_in(role: RoleConfig) -> str:
    """What gives a role its credentials."""
    secrets = [f"set {_how(role, name)}" for name in sorted(role.secrets)]
    path = str(role.settings.get("path") or "")
    return " or ".join(secrets) or (f"sign in with {path}" if path else "sign in")


def _program(role: RoleConfig, field: ProviderField) -> Finding:
    command = str(role.settings.get("path") or field.default)
    found = shutil.which(str(Path(command).expanduser()))
    if not found and command == field.default and wants_sdk(role.settings):
        found = bundled(role.backend, command)
    if found:
        return Finding("ok", "keys", f"{role.role}: the program {command} is {found}")
    fix = f"install {field.default}, or set {_how(role, 'path')}"
    return Finding("fail", "keys", f"{role.role}: {role.backend} needs the program {command}, which is not found", fix)


def _sign_in(role: RoleConfig, mode: str) -> Iterator[Finding]:
    endpoint = str(role.settings.get("endpoint") or "").strip()
    if endpoint and not may_receive_token(endpoint):
        names = " or ".join(f"https://NAME{suffix}" for suffix in TOKEN_HOST_SUFFIXES)
        what = f"{role.role}: signs in with a token, which goes only to {names}, not to its endpoint"
        fix = f"set {_how(role, 'endpoint')}, or {_how(role, 'auth_mode')} to api_key or openai_compatible"
        yield Finding("fail", "keys", what, fix)
    if mode == "managed_identity":
        yield Finding("ok", "keys", f"{role.role}: signs in with the managed identity of this machine")
    elif shutil.which("az"):
        yield Finding("ok", "keys", f"{role.role}: signs in with Azure's command line (az)")
    else:
        fix = f"install Azure's command line and run `az login`, or set {_how(role, 'auth_mode')} to api_key"
        yield Finding("fail", "keys", f"{role.role}: signs in with az, which is not found", fix)


def _key(config: RunConfig, role: RoleConfig) -> Finding:
    given = [name for name in sorted(role.secrets) if str(role.settings.get(name) or "").strip()]
    if given:
        return Finding("ok", "keys", f"{role.role}: key given by {config.source(f'{role.role}.{given[0]}')}")
    fix = _how_to_sign_in(role)
    address = str(role.settings.get("base_url") or role.settings.get("endpoint") or "")
    if _is_loopback(address):
        return Finding("ok", "keys", f"{role.role}: no key; {hide_in_addresses(address)} may need none")
    default = {field.name: field.default for field in PROVIDERS[role.backend].fields}.get("base_url")
    if not address or address == default:
        return Finding("fail", "keys", f"{role.role}: {role.backend} has no key", fix)
    return Finding("warn", "keys", f"{role.role}: no key for {hide_in_addresses(address)}", f"if it needs one: {fix}")


def _is_loopback(address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _local_call(role: RoleConfig) -> Iterator[Finding]:
    """A model on this machine: only what would stop a run is told; a script need not know our question."""
    with Session({role.role: role}) as session:
        try:
            session.try_out(role.role, timeout=CALL_SECONDS, retries=0)
        except (ConfigError, MissingExtraError, ModelSetupError) as error:
            yield from as_findings("calls", error, "see there")
            return
        except SkillOptError:
            pass
    yield Finding("ok", "calls", f"{role.role}: {role.backend} runs on this machine")


def _live_call(role: RoleConfig) -> Iterator[Finding]:
    with Session({role.role: role}) as session:
        started = time.monotonic()
        try:
            reply = _tried_out(session, role.role)
        except SkillOptError as error:
            yield _failed_call(role, error)
            return
        seconds = time.monotonic() - started
    model = role.model or role.backend
    yield Finding("ok", "calls", f"{role.role}: {model} answered in {seconds:.2f} s {_about(reply)}")


def _tried_out(session: Session, name: str) -> ModelReply:
    """The reply to the live call, after some more attempts when it fails soon and in a way that may pass."""
    started = time.monotonic()
    try:
        return session.try_out(name, timeout=CALL_SECONDS, retries=0)
    except TransientError:
        if time.monotonic() - started > _SOON_SECONDS:
            raise
    return session.try_out(name, timeout=_SOON_SECONDS, retries=1)


def _about(reply: ModelReply) -> str:
    used = reply.usage
    tokens = f"{used.prompt_tokens} tokens in, {used.completion_tokens} out" if used.known else "tokens unknown"
    named = f"model {reply.model}, " if reply.model else ""
    return f"({named}finish {reply.finish_reason}, {tokens})"


def _failed_call(role: RoleConfig, error: SkillOptError) -> Finding:
    what = f"{role.role}: {' '.join(str(error).split())}"
    if isinstance(error, AuthError):
        return Finding("fail", "calls", what, _how_to_sign_in(role))
    if isinstance(error, UnsupportedCallError):
        return Finding("fail", "calls", what, f"choose another backend with model.{role.role}_backend")
    if isinstance(error, RateLimitedUntilError):
        return Finding("fail", "calls", what, "wait, or use another account or model")
    if isinstance(error, RateLimitError):
        return Finding("warn", "calls", what, "try again; a run does so by itself")
    address = next((name for name in ("base_url", "endpoint", "path") if name in role.settings), "")
    if isinstance(error, ModelError) and error.retryable:
        where = f", or set {_how(role, address)}" if address else ""
        return Finding("fail", "calls", what, f"wait until it works again{where}")
    where = f", or {_how(role, address)}" if address else ""
    return Finding("fail", "calls", what, f"set model.{role.role}{where}")
