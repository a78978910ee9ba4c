"""From text to values, and the check of one value against its key.

Text comes from flags, `--cfg-options` and environment variables; values come from YAML or Python.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from skillopt.config.key import Key
from skillopt.config.providers import nearest

TRUE_WORDS = ("true", "yes", "on")
FALSE_WORDS = ("false", "no", "off")


class ValueProblem(ValueError):
    """A value does not fit its key; the text completes "<key> ..."."""


def cast_text(text: str) -> Any:
    """Read a text whose type is not known: true/yes, false/no, a whole number, a number, else the text itself."""
    lowered = text.strip().lower()
    if lowered in ("true", "yes"):
        return True
    if lowered in ("false", "no"):
        return False
    whole = _number(int, text)
    return _number(float, text, otherwise=text) if whole is None else whole


def cast_for(key: Key | None, text: str) -> object:
    """Read a text that was given for `key`; what does not fit stays text and is refused by the check."""
    if key is None:
        return cast_text(text)
    if key.type == "str" or key.lenient:
        return text
    return _READERS[key.type](text)


def _read_number(text: str) -> object:
    value = cast_text(text)
    return text if isinstance(value, bool) else value


def _number(kind: type[int] | type[float], text: str, otherwise: Any = None) -> Any:
    try:
        return kind(text)
    except ValueError:
        return otherwise


def _read_map(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_bool(text: str) -> object:
    return {"1": True, "0": False}.get(text.strip(), text)


_READERS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "int": _read_number,
        "float": _read_number,
        "bool": _read_bool,
        "list": lambda text: text,
        "map": _read_map,
        "prices": _read_map,
    }
)


def check_value(key: Key, value: object) -> object:
    """The value in its own type. Raises ValueProblem with what was expected."""
    if value is None or _says_null(key, value):
        return None
    if key.lenient and isinstance(value, str):
        value = _from_lenient_text(key, value)
        if value is None:
            return None
    if isinstance(value, bool) and str(value).lower() in key.synonyms:
        value = str(value)
    checked = _CHECKS[key.type](key, value)
    if key.choices:
        return _check_choice(key, checked)
    if isinstance(checked, int | float) and not isinstance(checked, bool):
        _check_range(key, checked)
    return checked


def _says_null(key: Key, value: object) -> bool:
    """True for `none` and `null` as text, the only way to say "unlimited" on a command line."""
    return key.nullable and key.type != "str" and isinstance(value, str) and value.strip().lower() in ("none", "null")


def _refuse(key: Key, value: object, advice: str = "") -> ValueProblem:
    shown = "this value" if key.secret else repr(value)
    return ValueProblem(f"must be {key.expected}, not {shown}{advice}")


def _from_lenient_text(key: Key, text: str) -> object:
    word = text.strip().lower()
    if key.omit_words and word in key.omit_words:
        return None
    if not word and (key.choices or key.type != "str"):
        return None
    if key.type == "bool":
        return {"1": True, "0": False}.get(word, text)
    if key.type in ("int", "float"):
        return _read_number(text)
    return text


def _check_str(key: Key, value: object) -> str:
    if isinstance(value, str):
        return value
    quoted = str(value).lower() if isinstance(value, bool) else str(value)
    plain = isinstance(value, bool | int | float)
    raise _refuse(key, value, f'; put it in quotes: "{quoted}"' if plain and not key.secret else "")


def _check_int(key: Key, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _refuse(key, value)


def _check_float(key: Key, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise _refuse(key, value)


def _check_bool(key: Key, value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise _refuse(key, value)


def _check_list(key: Key, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        return tuple(part.replace("\\n", "\n") for part in parts if part)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise _refuse(key, value)


def _check_map(key: Key, value: object) -> dict[str, object]:
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return dict(value)
    raise _refuse(key, value, "; as text, write it as JSON" if isinstance(value, str) else "")


def _check_prices(key: Key, value: object) -> dict[str, object]:
    return {model: _check_price(model, price) for model, price in _check_map(key, value).items()}


def _check_price(model: str, price: object) -> dict[str, float]:
    names = ("input", "output", "cached")
    if not isinstance(price, Mapping) or not {"input", "output"} <= set(price) <= set(names):
        raise ValueProblem(f"must give {model!r} the prices input and output (and may give cached), not {price!r}")
    for amount in price.values():
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not number or not math.isfinite(amount) or amount < 0:
            raise ValueProblem(f"must give {model!r} prices of at least 0, not {amount!r}")
    return {name: float(price[name]) for name in names if name in price}


_CHECKS: Mapping[str, Callable[[Key, object], object]] = MappingProxyType(
    {
        "str": _check_str,
        "int": _check_int,
        "float": _check_float,
        "bool": _check_bool,
        "list": _check_list,
        "map": _check_map,
        "prices": _check_prices,
    }
)


def _check_choice(key: Key, value: object) -> str:
    word = str(value).strip().lower()
    for candidate in (word, word.replace("-", "_"), word.replace("_", "-")):
        canonical = key.synonyms.get(candidate, candidate)
        if canonical in key.choices:
            return canonical
    near = nearest(word, (*key.choices, *key.synonyms))
    raise _refuse(key, value, f"; did you mean {near}?" if near else "")


def _check_range(key: Key, value: float) -> None:
    low = key.minimum is not None and value < key.minimum
    high = key.maximum is not None and value > key.maximum
    if low or high or (key.above is not None and value <= key.above):
        raise _refuse(key, value)
