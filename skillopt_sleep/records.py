"""How the data classes of a night read and write themselves.

`to_dict` gives JSON values in field order. `from_dict` ignores unknown keys, so that files of a later version can be
read, and refuses what is missing or of the wrong type with one sentence that names class and field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, ClassVar, TypeVar

_R = TypeVar("_R", bound="Record")
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list, tuple),
    "dict": (Mapping,),
}


class Record:
    """Base of the data classes that are stored as JSON."""

    __slots__ = ()
    NESTED: ClassVar[Mapping[str, type[Record]]] = {}

    def to_dict(self) -> dict[str, Any]:
        """JSON values of all fields, in field order."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_dict(cls: type[_R], data: Mapping[str, Any]) -> _R:
        """The record that `to_dict` wrote. Raises ValueError naming the field that is missing or of a wrong type."""
        if not isinstance(data, Mapping):
            raise ValueError(f"{cls.__name__}: an object is expected, not {type(data).__name__}.")
        values = {}
        for field in fields(cls):  # type: ignore[arg-type]
            if field.name in data:
                values[field.name] = _value(cls, field.name, str(field.type), data[field.name])
            elif field.default is MISSING and field.default_factory is MISSING:
                raise ValueError(f"{cls.__name__}: the field {field.name!r} is missing.")
        return cls(**values)


def _value(cls: type[Record], name: str, annotation: str, value: Any) -> Any:
    nested = cls.NESTED.get(name)
    if nested is not None:
        return _nested(cls, name, annotation, nested, value)
    base = annotation.partition("[")[0].partition(" | ")[0]
    if value is None and annotation.endswith("| None"):
        return None
    allowed = _TYPES.get(base)
    wrong = allowed is not None and not isinstance(value, allowed)
    if wrong or (isinstance(value, bool) and base in ("int", "float")):
        raise ValueError(f"{cls.__name__}: {name!r} must be of type {base}, not {type(value).__name__}.")
    if base == "list":
        return list(value)
    return dict(value) if base == "dict" else value


def _nested(cls: type[Record], name: str, annotation: str, nested: type[Record], value: Any) -> Any:
    def one(row: Any) -> Any:
        return row if isinstance(row, nested) else nested.from_dict(row)

    if not annotation.startswith("list"):
        return None if value is None else one(value)
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{cls.__name__}: {name!r} must be of type list, not {type(value).__name__}.")
    return [one(row) for row in value]
