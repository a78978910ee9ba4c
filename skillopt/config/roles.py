"""Which backend and model each role uses, and the backend's settings for it: resolved once, with provenance."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt.config.casting import ValueProblem, check_value
from skillopt.config.key import Key
from skillopt.config.older_fields import settle_older
from skillopt.config.provider_row import Provider, ProviderField
from skillopt.config.providers import (
    PROVIDERS,
    ROLES,
    SHIPPED_EFFORT,
    SHIPPED_MODELS,
    get_provider,
    label_roles,
    normalize_backend_name,
    normalize_role_backend,
    trap_of,
)
from skillopt.config.settings import Collected
from skillopt.errors import ConfigError
from skillopt.types import RoleConfig


@dataclass(frozen=True, slots=True)
class ResolvedRoles:
    """The label, both roles, and where each of their values came from (`<role>.<field>`).

    `notices` are sentences about names that mean something else than they seem to.
    """

    label: str
    roles: Mapping[str, RoleConfig]
    sources: Mapping[str, str]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Context:
    """What the resolution reads: the checked section `model`, what was given, the environment."""

    model: Any
    given: Collected
    environ: Mapping[str, str]


def resolve_roles(model: Any, given: Collected, environ: Mapping[str, str]) -> ResolvedRoles:
    """Resolve both roles. Raises ConfigError for unknown backends and for bad environment variables.

    Order for a setting: the role's own key, the shared key, the role's environment variable, the shared one, the
    row's default. Flags and `--cfg-options` have already replaced what files say.
    """
    context = _Context(model, given, environ)
    label, label_source, chosen = _label(context)
    sources: dict[str, str] = {"label": label_source}
    roles: dict[str, RoleConfig] = {}
    notices: dict[str, None] = {}
    for role, by_label in zip(ROLES, chosen, strict=True):
        name, source = _own_backend(context, role, label_source)
        backend = _named(role, name, source) if name else by_label
        trap = trap_of(name, role) if name else trap_of(model.backend)
        if not name and "_base_" in Path(label_source).parts:
            notices.update(dict.fromkeys(_unheard(context, role, backend, label_source)))
        source = source if name else label_source
        if trap:
            notices[f"{source}: {trap}"] = None
        sources[f"model.{role}_backend"] = source
        sources[f"{role}.backend"] = source if name or source == "default" else f"label {label} ({source})"
        roles[role] = _role_config(context, PROVIDERS[backend], role, sources)
    return ResolvedRoles(label, roles, sources, tuple(notices))


def role_on_backend(
    backend: str, role: str, model: Any, given: Collected, environ: Mapping[str, str]
) -> tuple[RoleConfig, Mapping[str, str]]:
    """A role as these settings make it on a certain backend, whichever they choose, and where its values came from."""
    sources: dict[str, str] = {}
    return _role_config(_Context(model, given, environ), get_provider(backend), role, sources), sources


def _label(context: _Context) -> tuple[str, str, tuple[str, str]]:
    """The label, where it came from, and the backends that it chooses for the optimizer and the target."""
    source = context.given.source("model.backend")
    try:
        return normalize_backend_name(context.model.backend), source, label_roles(context.model.backend)
    except ConfigError as error:
        raise ConfigError(f"{source}: model.backend: {error}") from None


def _own_backend(context: _Context, role: str, label_source: str) -> tuple[str, str]:
    """What is said about this role alone, or "" when the label decides, and where it was said.

    A file's `openai_chat` says nothing; one given by flag or option does.
    """
    dotted = f"model.{role}_backend"
    value = getattr(context.model, f"{role}_backend")
    source = context.given.source(dotted)
    if value and (context.given.explicit([dotted]) or normalize_backend_name(value) != "openai_chat"):
        return value, source
    name = f"{role.upper()}_BACKEND"
    if label_source == "default" and context.environ.get(name, "").strip():
        return context.environ[name], f"env {name}"
    return "", source


def _unheard(context: _Context, role: str, backend: str, label_source: str) -> Iterator[str]:
    """What to say of a role's variable that a base file, which few have read, keeps from being used."""
    variable = f"{role.upper()}_BACKEND"
    wanted = context.environ.get(variable, "").strip()
    if wanted and normalize_backend_name(wanted) not in (backend, normalize_backend_name(context.model.backend)):
        yield (
            f"env {variable}: {wanted} is not used, because {label_source} says {context.model.backend} for both "
            f"roles; say it in your own file or as a flag, with model.{role}_backend"
        )


def _named(role: str, value: str, source: str) -> str:
    try:
        return normalize_role_backend(role, value)
    except ConfigError as error:
        raise ConfigError(f"{source}: model.{role}_backend: {error}") from None


def _role_config(context: _Context, row: Provider, role: str, sources: dict[str, str]) -> RoleConfig:
    settings: dict[str, Any] = {}
    for field in row.fields:
        settings[field.name], sources[f"{role}.{field.name}"] = _field_value(context, field, role)
    settle_older(row, role, settings, sources)
    model, sources[f"{role}.model"] = _role_model(context, row, role)
    effort, effort_source = _role_effort(context, row)
    sources.setdefault(f"{role}.effort", effort_source)  # a backend may have a setting of this name
    return RoleConfig(
        role=role,
        backend=row.name,
        model=model,
        effort=effort,
        settings=settings,
        secrets=frozenset(field.name for field in row.fields if field.secret),
        result_settings=frozenset(field.name for field in row.fields if field.changes_result),
    )


def _role_model(context: _Context, row: Provider, role: str) -> tuple[str, str]:
    """The model named for the role, else the backend's own key or variable, else what the row says."""
    dotted = f"model.{role}"
    value, source = getattr(context.model, role), context.given.source(dotted)
    if value and (context.given.explicit([dotted]) or not _gives_way(row, value, source)):
        return value, source
    if row.model_field is not None:
        own, own_source = _field_value(context, row.model_field, role)
        if own:
            return str(own), own_source
    if value and row.shipped_model != "replace":
        return value, source
    return (row.default_model if row.run_model is None else row.run_model), f"default of {row.name}"


def _role_effort(context: _Context, row: Provider) -> tuple[str, str]:
    """The effort of both roles, unless it is the shipped one and the backend takes only what somebody chose."""
    dotted = "model.reasoning_effort"
    effort = str(context.model.reasoning_effort)
    if row.shipped_effort == "replace" and effort == SHIPPED_EFFORT and not context.given.explicit([dotted]):
        return "", f"default of {row.name}"
    return effort, context.given.source(dotted)


def _gives_way(row: Provider, model: str, source: str) -> bool:
    """True for a model that nobody chose: the built-in default, or a shipped one that is not this backend's."""
    return source == "default" or (model in SHIPPED_MODELS and row.shipped_model != "keep")


def _field_value(context: _Context, field: ProviderField, role: str) -> tuple[Any, str]:
    for name in field.keys_for(role):
        if f"model.{name}" in context.given.settings:
            value = getattr(context.model, name)
            fallback = None if field.omit_words else field.default
            return (fallback if value is None else value), context.given.source(f"model.{name}")
    for name in field.env_for(role):
        text = context.environ.get(name)
        if text is not None and (text.strip() or "" in field.omit_words):
            return _from_environment(field, name, text), f"env {name}"
    return field.default, "default"


def _from_environment(field: ProviderField, name: str, text: str) -> Any:
    key = Key(
        "model",
        field.name,
        field.type,
        field.default,
        field.doc,
        choices=field.choices,
        synonyms=field.synonyms,
        minimum=field.minimum,
        lenient=True,
        omit_words=field.omit_words,
        secret=field.secret,
    )
    try:
        return check_value(key, text)
    except ValueProblem as error:
        if not field.tolerant:
            raise ConfigError(f"the environment variable {name} {error}") from None
        warnings.warn(f"the environment variable {name} {error}; it is ignored", UserWarning, stacklevel=2)
        return field.default
