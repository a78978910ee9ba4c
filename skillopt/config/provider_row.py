"""What one row of the table of backends is: pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from skillopt.config.key import KeyType

Role = Literal["optimizer", "target"]
ROLES: tuple[Role, Role] = ("optimizer", "target")


@dataclass(frozen=True, slots=True)
class ProviderField:
    """One setting of a backend.

    `env` lists environment variables, first wins; `{ROLE}` stands for OPTIMIZER or TARGET. `key` is the name in the
    section `model` for both roles, `role_key` the pattern of the name for one role (`{role}_...`); a field without
    both can be set by the environment only. A variable that does not fit is an error, or, when `tolerant`, a warning
    and counts as not set. `omit_words` are texts that mean "send nothing". `legacy_key` is an older name that fills the
    field when `key` is not given. `older_field` names a field of the same row that this one has replaced, and
    `older_values` says what its values mean; `title` is what both are about, for the message when they contradict each
    other.
    """

    name: str
    type: KeyType
    default: object
    doc: str
    env: tuple[str, ...] = ()
    key: str = ""
    role_key: str = ""
    legacy_key: str = ""
    key_aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = field(default_factory=dict)
    minimum: float | None = None
    omit_words: tuple[str, ...] = ()
    secret: bool = False
    changes_result: bool = True
    older_field: str = ""
    older_values: Mapping[object, str] = field(default_factory=dict)
    title: str = ""
    tolerant: bool = False

    def keys_for(self, role: str) -> tuple[str, ...]:
        """Names in the section `model`, most specific first."""
        names = (self.role_key.format(role=role), self.key, self.legacy_key)
        return tuple(name for name in names if name)

    def env_for(self, role: str) -> tuple[str, ...]:
        """Environment variables for `role`, first wins."""
        return tuple(name.format(ROLE=role.upper()) for name in self.env)


@dataclass(frozen=True, slots=True)
class Sdk:
    """The Python package through which its vendor lets an agent be run, and the extra of ours that installs it."""

    package: str
    extra: str


@dataclass(frozen=True, slots=True)
class Provider:
    """One backend.

    `module` holds `complete(call, role, ctx)`; None: known by name, not in this version. `label_roles` are the
    (optimizer, target) backends that the label of this name chooses; None: not a label. `run_model` is the model that
    a run uses when none is named (`default_model` unless it differs). `shipped_model` says what becomes of a model that
    the shipped base configuration names: `keep` it as any other, take it `last` (after the backend's own key and
    variable), or `replace` it, because the backend cannot know it. `shipped_effort` says the same of the reasoning
    effort that the shipped base configuration names: a backend that cannot know what its server takes gets only an
    effort that somebody chose. `capabilities`: `remote` (worth a preflight call), `tools`, `images`, `effort`,
    `token_cap`, `usage`, `system`, `structured`, `web_search` (the service searches by itself when told to).
    `sdk`: what runs an agent in place of its command line when its `use_sdk` says so.
    """

    name: str
    roles: tuple[Role, ...]
    kind: Literal["chat", "exec", "both"]
    default_model: str
    doc: str
    aliases: tuple[str, ...] = ()
    module: str | None = None
    capabilities: frozenset[str] = frozenset()
    label_roles: tuple[str, str] | None = None
    run_model: str | None = None
    shipped_model: Literal["keep", "last", "replace"] = "replace"
    shipped_effort: Literal["keep", "replace"] = "keep"
    model_field: ProviderField | None = None
    fields: tuple[ProviderField, ...] = ()
    sdk: Sdk | None = None

    @property
    def all_fields(self) -> tuple[ProviderField, ...]:
        """The settings and, first, the field that names the model."""
        return (*((self.model_field,) if self.model_field else ()), *self.fields)

    @property
    def available(self) -> bool:
        """True when this version can use it in some role."""
        return self.module is not None

    def serves(self, role: str) -> bool:
        """True when this version can use it as `role`."""
        return self.available and role in self.roles

    def is_agent(self, role: str) -> bool:
        """True when it is, as `role`, a coding agent, which works in a folder and answers no chat calls."""
        return self.kind == "exec" or (self.kind == "both" and role == "target")
