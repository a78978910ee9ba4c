"""Which backend and model each role uses, and the backend's settings for it: resolved once, with provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.config.casting import ValueProblem, check_value
from skillopt.config.key import Key
from skillopt.config.provider_row import Provider, ProviderField
from skillopt.config.providers import (
    PROVIDERS,
    ROLES,
    SHIPPED_MODELS,
    label_roles,
    normalize_backend_name,
    normalize_role_backend,
)
from skillopt.config.settings import Collected
from skillopt.errors import ConfigError
from skillopt.types import RoleConfig


@dataclass(frozen=True, slots=True)
class ResolvedRoles:
    """The label, both roles, and where each of their values came from (`<role>.<field>`)."""

    label: str
    roles: Mapping[str, RoleConfig]
    sources: Mapping[str, str]


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
    for role, by_label in zip(ROLES, chosen, strict=True):
        backend, sources[f"{role}.backend"] = _role_backend(context, role, by_label, label_source)
        roles[role] = _role_config(context, PROVIDERS[backend], role, sources)
    return ResolvedRoles(label, roles, sources)


def _label(context: _Context) -> tuple[str, str, tuple[str, str]]:
    """The label, where it came from, and the backends that it chooses for the optimizer and the target."""
    source = context.given.source("model.backend")
    try:
        return normalize_backend_name(context.model.backend), source, label_roles(context.model.backend)
    except ConfigError as error:
        raise ConfigError(f"{source}: model.backend: {error}") from None


def _role_backend(context: _Context, role: str, by_label: str, label_source: str) -> tuple[str, str]:
    """The role's own value wins when it was given by flag or option, or says more than `openai_chat`."""
    dotted = f"model.{role}_backend"
    value = getattr(context.model, f"{role}_backend")
    source = context.given.source(dotted)
    if value and (context.given.explicit([dotted]) or _named(role, value, source) != "openai_chat"):
        return _named(role, value, source), source
    if label_source == "default":
        name = f"{role.upper()}_BACKEND"
        if context.environ.get(name, "").strip():
            return _named(role, context.environ[name], f"env {name}"), f"env {name}"
    return by_label, label_source if label_source != "default" else source


def _named(role: str, value: str, source: str) -> str:
    try:
        return normalize_role_backend(role, value)
    except ConfigError as error:
        raise ConfigError(f"{source}: model.{role}_backend: {error}") from None


def _role_config(context: _Context, row: Provider, role: str, sources: dict[str, str]) -> RoleConfig:
    settings: dict[str, Any] = {}
    for field in row.fields:
        settings[field.name], sources[f"{role}.{field.name}"] = _field_value(context, field, role)
    model, sources[f"{role}.model"] = _role_model(context, row, role)
    return RoleConfig(
        role=role,
        backend=row.name,
        model=model,
        effort=context.model.reasoning_effort,
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
        raise ConfigError(f"the environment variable {name} {error}") from None
