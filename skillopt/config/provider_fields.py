"""Makers of fields for the rows of the backends: how keys and environment variables are named."""

from __future__ import annotations

from skillopt.config.key import KeyType
from skillopt.config.provider_row import ProviderField


def field_row(name: str, kind: KeyType, default: object, doc: str, **more: object) -> ProviderField:
    """A field as it is given."""
    return ProviderField(name, kind, default, doc, **more)  # type: ignore[arg-type]


def family(prefix: str, name: str, kind: KeyType, default: object, doc: str, **more: object) -> ProviderField:
    """A field `<prefix>_<name>` that each role can have for itself, in keys and in the environment."""
    key, env = f"{prefix}_{name}", f"{prefix}_{name}".upper()
    return field_row(name, kind, default, doc, key=key, role_key="{role}_" + key, env=("{ROLE}_" + env, env), **more)


def shared(prefix: str, name: str, kind: KeyType, default: object, doc: str, **more: object) -> ProviderField:
    """A field `<prefix>_<name>` with one value for both roles."""
    options: dict[str, object] = {"key": f"{prefix}_{name}", "env": (f"{prefix}_{name}".upper(),), **more}
    return field_row(name, kind, default, doc, **options)


def model_field(*env: str, key: str = "", role_key: str = "") -> ProviderField:
    """The field that names the model; `env` lists its variables, first wins."""
    doc = "Model, when model.optimizer or model.target does not name one."
    return field_row("model", "str", None, doc, env=env, key=key, role_key=role_key)


def azure(name: str, default: object, doc: str, **more: object) -> ProviderField:
    """A field of the Azure family, whose variables have two forms for a role."""
    upper = name.upper()
    env = ("{ROLE}_AZURE_OPENAI_" + upper, "AZURE_OPENAI_{ROLE}_" + upper, "AZURE_OPENAI_" + upper)
    key = f"azure_openai_{name}"
    return field_row(name, "str", default, doc, key=key, role_key="{role}_" + key, env=env, **more)


COPILOT_PATH = shared("copilot_exec", "path", "str", "copilot", "Copilot command line.", changes_result=False)
COPILOT_HOME = shared("copilot_exec", "home", "str", "", "Folder given to it as COPILOT_HOME.", changes_result=False)
