"""Scorers by name, with typed options that are checked before any answer is scored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from skillopt.errors import ConfigError
from skillopt.scoring.amount import Amount
from skillopt.scoring.anls import Anls
from skillopt.scoring.base import Scorer
from skillopt.scoring.choice import Choice
from skillopt.scoring.json_field import JsonField
from skillopt.scoring.numeric import Numeric
from skillopt.scoring.squad import Squad
from skillopt.scoring.text import F1, Contains, Exact, Regex
from skillopt.types import content_hash

SCORERS: Mapping[str, type[Scorer]] = MappingProxyType(
    {
        "exact": Exact,
        "f1": F1,
        "contains": Contains,
        "regex": Regex,
        "numeric": Numeric,
        "choice": Choice,
        "squad": Squad,
        "anls": Anls,
        "amount": Amount,
        "json_field": JsonField,
    }
)

# Part of every fingerprint: raise it whenever an answer could be scored differently than before.
_RULES_VERSION = 3


def get_scorer(name: str, **options: Any) -> Scorer:
    """The scorer `name`, called as `scorer(answer, references) -> Score`.

    Raises ConfigError, with the nearest name, for an unknown scorer or option and for a value of the wrong type.
    """
    kind = SCORERS.get(name)
    if kind is None:
        raise ConfigError(f"scorer: unknown name {name!r}{_nearest(name, SCORERS)}; expected {', '.join(SCORERS)}.")
    known = {f.name for f in fields(kind) if f.init}
    hints = get_type_hints(kind)
    for key, value in options.items():
        if key not in known:
            allowed = f"expected {', '.join(sorted(known))}" if known else "it takes none"
            raise ConfigError(f"scorer {name!r}: unknown option {key!r}{_nearest(key, known)}; {allowed}.")
        _check_type(name, key, value, hints[key])
    return kind(**options)


def scorer_fingerprint(name: str, options: Mapping[str, Any] | None = None) -> str:
    """Hash of everything that decides a score: name, all options with their defaults, version of the rules."""
    scorer = get_scorer(name, **(options or {}))
    values = {f.name: getattr(scorer, f.name) for f in fields(scorer) if f.init}
    if isinstance(scorer, JsonField):
        values["options"] = scorer_fingerprint(scorer.scorer, scorer.options)
    plain = {key: float(value) if type(value) is int else value for key, value in values.items()}
    return content_hash("scorer", _RULES_VERSION, name, plain)


def _nearest(word: object, known: Any) -> str:
    near = get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _check_type(scorer: str, key: str, value: object, hint: Any) -> None:
    origin = get_origin(hint)
    if origin is Literal:
        choices = get_args(hint)
        good, expected = isinstance(value, str) and value in choices, "one of " + ", ".join(map(repr, choices))
    elif hint is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        good, expected = number and math.isfinite(value), "a finite number"  # type: ignore[arg-type]
    elif origin is not None:
        good, expected = isinstance(value, Mapping), "a mapping of options"
    else:
        good, expected = isinstance(value, hint), {bool: "true or false", str: "a text"}[hint]
    if not good:
        raise ConfigError(f"scorer {scorer!r}: option {key!r} is {value!r}; expected {expected}.")
