"""The settings of a role, resolved once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skillopt.types.canonical import content_hash


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """Everything that one role (`optimizer` or `target`) needs to make calls, resolved once.

    `settings` holds the provider's own fields by their names in the provider's row. `secrets` names those among
    them that must never be shown; `repr` leaves the whole mapping out. `result_settings` names the fields that can
    change a reply (address and temperature, not time-outs), which make up the fingerprint.
    """

    role: str
    backend: str
    model: str
    effort: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = frozenset()
    result_settings: frozenset[str] = frozenset()

    @property
    def fingerprint(self) -> str:
        """Hash of what can change a reply: backend, model, effort and the result settings, never a secret."""
        shown = {k: v for k, v in self.settings.items() if k in self.result_settings - self.secrets}
        return content_hash(self.backend, self.model, self.effort, shown)

    def with_settings(self, **changes: Any) -> RoleConfig:
        return replace(self, settings={**self.settings, **changes})
