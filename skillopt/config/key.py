"""What one configuration key is: pure data, without YAML, pydantic or argparse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

KeyType = Literal["str", "int", "float", "bool", "list", "map", "prices"]
_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one section; schema, flags, documentation and checks are all derived from it.

    `default` is what holds when nobody gives the key; None means "unset" (the provider's or the environment's own
    default holds). `flat` is the name at top level and of the flag. `synonyms` maps other spellings of a choice to
    the canonical one. `aliases` are other names of the key. `lenient` keys accept numbers and booleans written as
    text, and a blank in a file means "not given". `affects_results` is False for keys that only decide how fast,
    how long or where a run works. `common` environment keys are used by every environment.
    """

    section: str
    name: str
    type: KeyType
    default: object
    doc: str
    flat: str = ""
    flag: str = ""
    choices: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    aliases: tuple[str, ...] = ()
    nullable: bool = False
    lenient: bool = False
    omit_words: tuple[str, ...] = ()
    secret: bool = False
    affects_results: bool = True
    common: bool = False
    in_eval: bool = False
    group: str = ""

    @property
    def dotted(self) -> str:
        """`section.name`, the canonical spelling."""
        return f"{self.section}.{self.name}"

    @property
    def flat_name(self) -> str:
        """The name at top level of a flat file."""
        return self.flat or self.name

    @property
    def flag_name(self) -> str:
        """The name of the flag, without dashes."""
        return self.flag or self.flat_name

    @property
    def expected(self) -> str:
        """What a value must be, in words that complete "must be ..."."""
        if self.choices:
            shown = [choice or '""' for choice in self.choices]
            return "one of " + ", ".join(shown)
        return _TYPE_WORDS[self.type] + self._range_words()

    def _range_words(self) -> str:
        if self.above is not None:
            return f" above {self.above:g}"
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum:g} to {self.maximum:g}"
        if self.minimum is not None:
            return f" of at least {self.minimum:g}"
        return ""


_TYPE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "str": "text",
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "list": "a list of texts (or one text with commas)",
        "map": "a mapping",
        "prices": "a mapping from model names to {input, output, cached} prices in USD per million tokens",
    }
)


@dataclass(frozen=True, slots=True)
class Retired:
    """A key that is still accepted everywhere, has no effect, and is reported once."""

    section: str
    name: str
    flat: str
    type: KeyType
    note: str

    @property
    def dotted(self) -> str:
        """`section.name`."""
        return f"{self.section}.{self.name}"
