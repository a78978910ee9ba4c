"""Look-ups over the table of backends: names, aliases, labels, roles, environment variables.

Pure data: importing this module imports neither pydantic nor a backend.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from skillopt.config.provider_row import ROLES, Provider, ProviderField, Role
from skillopt.config.provider_rows import ROWS
from skillopt.errors import ConfigError

__all__ = [
    "AZURE_LABEL",
    "LABELS",
    "PROVIDERS",
    "ROLES",
    "Provider",
    "ProviderField",
    "Role",
    "available_backends",
    "backend_names",
    "default_model_for_backend",
    "get_provider",
    "label_roles",
    "nearest",
    "normalize_backend_name",
    "normalize_role_backend",
    "trap_of",
]

AZURE_LABEL = "azure_openai"
"""The label that holds when none is given."""

SHIPPED_MODELS = ("gpt-5.4", "gpt-5.5")
"""Models that base configurations name; they give way when the backend cannot know them."""

SHIPPED_EFFORT = "medium"
"""The reasoning effort that the base configuration names; it gives way where many servers would refuse it."""

PROVIDERS: Mapping[str, Provider] = MappingProxyType({row.name: row for row in ROWS})
"""Every backend by its canonical name."""

LABELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        AZURE_LABEL: ("openai_chat", "openai_chat"),
        "openai_chat": ("openai_chat", "openai_chat"),
        "codex": ("codex_exec", "codex_exec"),
        **{row.name: row.label_roles for row in ROWS if row.label_roles},
    }
)
"""Label to the (optimizer, target) backends that it chooses."""

_ALIASES: Mapping[str, str] = MappingProxyType(
    {"azure": AZURE_LABEL, "openai": "codex", **{alias: row.name for row in ROWS for alias in row.aliases}}
)


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The candidate that `name` most likely meant, or "" when none is near."""
    found = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return found[0] if found else ""


def normalize_backend_name(name: str | None) -> str:
    """Canonical spelling of a label or backend; blank gives `azure_openai`, unknown names pass lower-cased.

    Case does not matter, nor does `-` for `_`.
    """
    text = str(name or "").strip().lower()
    if not text:
        return AZURE_LABEL
    plain = text.replace("-", "_")
    known = _ALIASES.get(plain, plain)
    return known if known in PROVIDERS or known in LABELS else text


def backend_names() -> tuple[str, ...]:
    """Every canonical backend and label."""
    return tuple(dict.fromkeys((*LABELS, *PROVIDERS)))


def available_backends(role: str | None = None) -> tuple[str, ...]:
    """Backends that this version can use, for `role` or for any."""
    return tuple(row.name for row in ROWS if (row.available if role is None else row.serves(role)))


def default_model_for_backend(name: str | None) -> str:
    """The default model of a backend or label; the one of `openai_chat` when there is no such backend."""
    row = PROVIDERS.get(normalize_backend_name(name), PROVIDERS["openai_chat"])
    return row.default_model


def get_provider(name: str) -> Provider:
    """The row of a backend, by any of its names. Raises ConfigError, with the nearest name."""
    row = PROVIDERS.get(normalize_backend_name(name))
    if row is None:
        raise ConfigError(f"unknown backend {name!r}{_hint(name, PROVIDERS)}; known: {', '.join(PROVIDERS)}")
    return row


def label_roles(label: str | None) -> tuple[str, str]:
    """The (optimizer, target) backends of a label. Raises ConfigError for one that is not a label."""
    name = normalize_backend_name(label)
    if name in LABELS:
        return LABELS[name]
    if name in PROVIDERS:
        role = PROVIDERS[name].roles[0]
        raise ConfigError(f"{name} serves only the {role}; give it as model.{role}_backend instead of model.backend")
    raise ConfigError(f"unknown backend {label!r}{_hint(name, _spellings())}; known: {', '.join(LABELS)}")


def normalize_role_backend(role: str, name: str | None) -> str:
    """The canonical backend of one role; labels such as `azure` or `codex` give the backend behind them.

    Blank gives `openai_chat`. Raises ConfigError for an unknown backend or one that cannot serve the role.
    """
    text = normalize_backend_name(name)
    if text not in PROVIDERS and text in LABELS:
        text = LABELS[text][ROLES.index("optimizer" if role == "optimizer" else "target")]
    row = PROVIDERS.get(text)
    allowed = [known.name for known in ROWS if role in known.roles]
    if row is None or role not in row.roles:
        hint = _hint(text, allowed) if row is None else f", which can only be the {' or '.join(row.roles)}"
        raise ConfigError(f"Unsupported {role} backend {str(name)!r}{hint}; expected one of {', '.join(allowed)}")
    return row.name


_SEEMS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "openai": ("OpenAI's API", "openai_chat or openai_compatible", "Codex's command line, with its own sign-in"),
        "anthropic": ("Anthropic's API", "openai_compatible with its address", "Claude's command line"),
    }
)


def trap_of(name: str | None, role: str | None = None) -> str:
    """What to say about a name that means something else than it seems to, as label or for one role; else ""."""
    text = str(name or "").strip().lower()
    plain = text.replace("-", "_")
    chosen = normalize_backend_name(text)
    better = normalize_role_backend(role, chosen) if role else chosen
    if plain in _SEEMS:
        seems, instead, real = _SEEMS[plain]
        return f"{text} chooses {better} ({real}), not {seems}; say {better} to mean that, or {instead} for the API"
    if role and text and chosen not in PROVIDERS:
        return f"{text} is a label for both roles; for the {role} it chooses {better}; say {better} to mean that"
    return ""


def _spellings() -> tuple[str, ...]:
    return (*backend_names(), *_ALIASES)


def _hint(name: str, candidates: Iterable[str]) -> str:
    near = nearest(str(name).lower(), candidates)
    return f", did you mean {near}?" if near and near != name else ""
