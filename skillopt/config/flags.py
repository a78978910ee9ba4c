"""The flags of the command lines, derived from the keys. Imports neither pydantic nor YAML nor argparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillopt.config.casting import cast_for, check_value
from skillopt.config.key import Key, KeyType
from skillopt.config.keys import KEYS
from skillopt.config.providers import LABELS, PROVIDERS, ROLES, available_backends
from skillopt.config.tables import RETIRED

Command = Literal["train", "eval"]

_ROLE_OF_FLAG = {"optimizer_backend": "optimizer", "target_backend": "target"}
_TRUE = ("true", "1", "yes")
_FALSE = ("false", "0", "no")


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """One flag: `--name`, the group in the help, and the key that it sets (None for a retired one)."""

    name: str
    group: str
    type: KeyType
    help: str
    key: Key | None = None

    @property
    def hidden(self) -> bool:
        """True for flags that are accepted and not shown."""
        return self.key is None

    @property
    def metavar(self) -> str:
        """What stands for the value in the help."""
        if self.key is not None and self.key.choices:
            return "{" + ",".join(choice or '""' for choice in self.key.choices) + "}"
        return {"int": "N", "float": "X", "bool": "true|false", "list": "A,B", "map": "JSON", "prices": "JSON"}.get(
            self.type, "TEXT"
        )

    def read(self, text: str) -> object:
        """The value of a text. Raises ValueError with what was expected."""
        if self.type == "bool":
            return _read_bool(text)
        if self.key is None:
            return text
        value = cast_for(self.key, text)
        checked = check_value(self.key, value)
        return checked if self.key.choices and checked is not None else value


def _read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in (*_TRUE, *_FALSE):
        return word in _TRUE
    raise ValueError(f"must be true, 1, yes, false, 0 or no, not {text!r}")


def flag_specs(command: Command) -> list[FlagSpec]:
    """The flags of `skillopt-train` or `skillopt-eval`, in the order of the sections."""
    specs = [_spec(key) for key in KEYS if command == "train" or key.in_eval]
    retired = [FlagSpec(item.flat, "retired", item.type, "", None) for item in RETIRED]
    return specs + (retired if command == "train" else [])


def _spec(key: Key) -> FlagSpec:
    default = "" if key.default in (None, "") or key.type in ("map", "prices") else f" Default: {_shown(key.default)}."
    secret = " Prefer the environment variable." if key.secret else ""
    text = f"{key.doc}{secret}{_ready(key)}{default}"
    return FlagSpec(key.flag_name, key.group or key.section, key.type, text, key)


def _ready(key: Key) -> str:
    """The backends or labels that this version can use, and those that it only knows, for the flags that name one."""
    if key.section != "model" or not key.name.endswith("backend"):
        return ""
    role = _ROLE_OF_FLAG.get(key.name)
    known = list(LABELS) if role is None else [row.name for row in PROVIDERS.values() if role in row.roles]
    ready = [name for name in known if (_label(name) if role is None else name in available_backends(role))]
    later = [name for name in known if name not in ready]
    return f" Ready in this version: {', '.join(ready)}." + (f" Not yet: {', '.join(later)}." if later else "")


def _label(name: str) -> bool:
    """True for a label whose two backends this version can use."""
    return name in LABELS and all(
        PROVIDERS[backend].serves(role) for role, backend in zip(ROLES, LABELS[name], strict=True)
    )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
