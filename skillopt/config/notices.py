"""Warnings about what was given: retired keys, credentials outside the environment, settings without effect."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skillopt.config.key import Key
from skillopt.config.keys import RETIRED_NAMES, find_key, is_secret
from skillopt.config.provider_row import ROLES, Provider
from skillopt.config.provider_rows import ROWS
from skillopt.config.providers import LABELS, PROVIDERS, label_roles
from skillopt.config.settings import Collected, Setting
from skillopt.types import RoleConfig


def warn_retired(retired: Mapping[str, Sequence[str]]) -> None:
    """One FutureWarning that names each retired key and every place that gave it."""
    if not retired:
        return
    parts = [
        f"{name} has no effect any more ({RETIRED_NAMES[name].note}); it was given by {' and '.join(places)}"
        for name, places in retired.items()
    ]
    warnings.warn("; ".join(parts) + ". Remove it.", FutureWarning, stacklevel=3)


def warn_credentials(given: Collected) -> None:
    """A DeprecationWarning for each credential outside the environment, with the variable to use instead."""
    for dotted, setting in given.settings.items():
        if not is_secret(dotted) or not setting.value:
            continue
        key = find_key(dotted)
        advice = _advice(key) if key else "keep it in an environment variable"
        name = key.name if key else dotted
        warnings.warn(f"{setting.source}: {name} is a credential; {advice}", DeprecationWarning, stacklevel=3)


def _advice(key: Key) -> str:
    for row in ROWS:
        for field in row.fields:
            names = (field.key, field.legacy_key)
            if field.secret and key.name in names:
                return _use(field.env[-1], row)
            for role in ROLES if field.secret and field.role_key else ():
                if key.name == field.role_key.format(role=role):
                    return _use(field.env_for(role)[0], row)
    return "keep it in an environment variable"


def _use(variable: str, row: Provider) -> str:
    mode = next((field for field in row.fields if "managed_identity" in field.choices), None)
    other = f" or sign in with {mode.key} managed_identity" if mode else ""
    return f"set the environment variable {variable} instead{other}"


def warn_notices(notices: Sequence[str]) -> None:
    """A UserWarning for each sentence."""
    for notice in notices:
        warnings.warn(notice, UserWarning, stacklevel=3)


def idle_settings(given: Collected, roles: Mapping[str, RoleConfig], path: Path | None) -> list[str]:
    """A sentence for each setting that somebody gave for this run and that the chosen backends cannot apply.

    What a base file says is for many runs and is left alone. The keys of a backend that no role uses are named when
    they came by flag or option; those of the file itself (`path`) only when nobody chose a backend at all, because a
    file may well keep several backends ready.
    """
    own = {name: item for name, item in given.settings.items() if item.explicit or _stands_in(item.source, path)}
    return [
        *_overruled_label(given, roles),
        *_unused_backends(given, own, roles),
        *_without_effort(own, roles),
        *_without_trace(own, roles),
        *_without_time(own, roles),
    ]


def _stands_in(source: str, path: Path | None) -> bool:
    """True when a value stands in the file itself, not in one meant as a base, or in a mapping from Python."""
    if path is not None and path.absolute().parent.name == "_base_":
        return False
    return source.startswith("the configuration" if path is None else f"{os.path.normpath(path)}:")


def _overruled_label(given: Collected, roles: Mapping[str, RoleConfig]) -> Iterator[str]:
    """A label that came by flag or option and that a role's own backend in a file overrules.

    The `openai_chat` that a label for the target has for the optimizer is a stopgap, and gives way silently.
    """
    setting = given.settings.get("model.backend")
    if setting is None or not setting.explicit or not setting.value:
        return
    chosen = label_roles(str(setting.value))
    for role, backend in zip(ROLES, chosen, strict=True):
        used, own = roles[role].backend, f"model.{role}_backend"
        stopgap = backend == "openai_chat" and len(set(chosen)) > 1
        if used != backend and not stopgap and not given.explicit([own]):
            yield (
                f"{setting.source}: {setting.value} leaves the {role} on {used}, as {given.source(own)} says; choose "
                f"{backend} with {own}"
            )


def _unused_backends(given: Collected, own: Mapping[str, Setting], roles: Mapping[str, RoleConfig]) -> Iterator[str]:
    chosen = any(given.source(f"model.{name}") != "default" for name in _BACKEND_KEYS) or any(
        role.backend != "openai_chat" for role in roles.values()
    )
    used = {
        name
        for role in roles.values()
        for field in PROVIDERS[role.backend].all_fields
        for name in field.keys_for(role.role)
    }
    for row in ROWS:
        names = {name for field in row.all_fields for role in ROLES for name in field.keys_for(role)} - used
        idle = {
            name: own[f"model.{name}"]
            for name in sorted(names)
            if f"model.{name}" in own and own[f"model.{name}"].value not in (None, "")
        }
        idle = {name: setting for name, setting in idle.items() if setting.explicit or not chosen}
        if idle:
            yield _unused(row.name, list(idle), next(iter(idle.values())).source, roles)


_BACKEND_KEYS = ("backend", *(f"{role}_backend" for role in ROLES))


def _unused(backend: str, names: Sequence[str], source: str, roles: Mapping[str, RoleConfig]) -> str:
    allowed = PROVIDERS[backend].roles
    users = [f"{name}: {role.backend}" for name, role in roles.items()]
    how = " or ".join([f"model.{role}_backend" for role in allowed] + (["model.backend"] if backend in LABELS else []))
    return (
        f"{source}: {', '.join(names)} {'has' if len(names) == 1 else 'have'} no effect, because no role that "
        f"could read it uses {backend} ({', '.join(users)}); choose it with {how}"
    )


def _without_effort(own: Mapping[str, Setting], roles: Mapping[str, RoleConfig]) -> Iterator[str]:
    for key, names in (("reasoning_effort", ROLES), ("rewrite_reasoning_effort", ("optimizer",))):
        setting = own.get(f"model.{key}")
        deaf = [role for role in roles.values() if role.role in names and not _takes_effort(role)]
        if setting is not None and setting.value and deaf:
            who = " and ".join(f"the {role.role} ({role.backend})" for role in deaf)
            yield f"{setting.source}: {key} has no effect on {who}: this backend takes no reasoning effort"


def _takes_effort(role: RoleConfig) -> bool:
    return "effort" in PROVIDERS[role.backend].capabilities


def _without_trace(own: Mapping[str, Setting], roles: Mapping[str, RoleConfig]) -> Iterator[str]:
    setting = own.get("model.codex_trace_to_optimizer")
    target = roles["target"].backend
    if setting is not None and setting.value is True and setting.explicit and target != "codex_exec":
        yield f"{setting.source}: codex_trace_to_optimizer has no effect: the target is {target}, not codex_exec"


def _without_time(own: Mapping[str, Setting], roles: Mapping[str, RoleConfig]) -> Iterator[str]:
    """A time for a whole call that is shorter than two attempts may take, and therefore bounds nothing."""
    setting = own.get("model.timeout_seconds")
    for role in roles.values():
        attempt = 0.0 if _works_in_a_folder(role) else float(role.settings.get("timeout_seconds") or 0)
        if setting is not None and float(str(setting.value)) < 2 * attempt:
            field = next(field for field in PROVIDERS[role.backend].all_fields if field.name == "timeout_seconds")
            yield (
                f"{setting.source}: timeout_seconds = {setting.value} does not shorten calls of the {role.role}: one "
                f"attempt may take {attempt:g} s, and a call twice that; set model.{field.keys_for(role.role)[0]} too"
            )


def _works_in_a_folder(role: RoleConfig) -> bool:
    return role.role == "target" and PROVIDERS[role.backend].kind != "chat"
