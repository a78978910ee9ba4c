"""What was given, by canonical name, each with where it came from and how firmly it was said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skillopt.config.casting import cast_for
from skillopt.config.key import Key
from skillopt.config.keys import RETIRED_NAMES, SECTIONS, SHORT_FLAGS, find_key
from skillopt.config.load import Loaded, is_structured, split_option
from skillopt.config.providers import nearest
from skillopt.config.schema import unknown_key


@dataclass(frozen=True, slots=True)
class Setting:
    """A value with its source; `explicit` when it came from a flag or `--cfg-options`."""

    value: object
    source: str
    explicit: bool = False


@dataclass(slots=True)
class Collected:
    """Settings by `section.key`, later ones over earlier ones; problems and retired keys met on the way."""

    settings: dict[str, Setting] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    retired: dict[str, list[str]] = field(default_factory=dict)
    structured: bool = True

    def add_file(self, loaded: Loaded) -> None:
        """Take the values of a file. null means "not given", as does a blank for a backend's setting."""
        self.structured = is_structured(loaded.data) or not loaded.data
        for name, value in loaded.data.items():
            where = loaded.where.get(name, "the configuration")
            if name in SECTIONS and isinstance(value, Mapping):
                for inner, inner_value in value.items():
                    place = loaded.where.get(f"{name}.{inner}", where)
                    self._add_from_file(f"{name}.{inner}", inner_value, place)
            elif name in SECTIONS and name != "env":
                self._complain_unless_null(name, value, where)
            else:
                self._add_from_file(name, value, where)

    def _complain_unless_null(self, section: str, value: object, where: str) -> None:
        if value is not None:
            self.problems.append(f"{where}: {section} must be a mapping of keys, not of type {type(value).__name__}")

    def _add_from_file(self, name: str, value: object, where: str) -> None:
        key = find_key(name)
        if value is None or (key is not None and key.lenient and value == ""):
            if key is None and name not in RETIRED_NAMES:
                self._put(None, name, Setting(None, where))
            return
        self._put(key, name, Setting(value, where))

    def add_options(self, words: Sequence[str]) -> None:
        """Take `key=value` words of `--cfg-options`."""
        for word in words:
            name, text = split_option(word)
            key = find_key(name)
            self._put(key, name, Setting(cast_for(key, text), f"--cfg-options {name}", explicit=True))

    def add_flags(self, flags: Mapping[str, object]) -> None:
        """Take flags by flat, flag or short name; None means "not given"."""
        for name, value in flags.items():
            if value is None:
                continue
            key = find_key(SHORT_FLAGS.get(name, name)) or find_key(f"env.{name}")
            written = key.flag_name if key and name not in SHORT_FLAGS else name
            cast = cast_for(key, value) if isinstance(value, str) else value
            setting = Setting(cast, f"flag --{written}", explicit=True)
            known = key is not None or name in RETIRED_NAMES or "." in name
            self._put(key, name if known else f"env.{name}", setting)

    def _put(self, key: Key | None, name: str, setting: Setting) -> None:
        if name in RETIRED_NAMES:
            self.retired.setdefault(RETIRED_NAMES[name].dotted, []).append(setting.source)
            return
        if key is not None:
            self.settings[key.dotted] = setting
            return
        section, dot, rest = name.partition(".")
        if not dot and not self.structured and not self._looks_like_a_section(name, setting.value):
            section, dot, rest = "env", ".", name
        if not dot or section not in SECTIONS or not self._fits(section, rest):
            self.problems.append(f"{setting.source}: {unknown_key(name)}")
            return
        if setting.value is not None:
            self.settings[f"{section}.{rest}"] = setting

    def _looks_like_a_section(self, name: str, value: object) -> bool:
        """In a flat file: a mapping whose name is nearly a section's, or that holds the keys of one."""
        if not isinstance(value, Mapping):
            return False
        holds_keys = any(find_key(f"{section}.{inner}") for section in SECTIONS for inner in value)
        return holds_keys or bool(nearest(name, SECTIONS))

    def _fits(self, section: str, name: str) -> bool:
        """An unknown key may only stand in `env`, and not under the name of another section's key."""
        return section == "env" and find_key(name) is None

    def section(self, section: str) -> dict[str, object]:
        """The values of one section."""
        prefix = f"{section}."
        return {name.removeprefix(prefix): s.value for name, s in self.settings.items() if name.startswith(prefix)}

    def source(self, dotted: str) -> str:
        """Where a value came from, or `default`."""
        setting = self.settings.get(dotted)
        return setting.source if setting else "default"

    def explicit(self, names: Iterable[str]) -> list[str]:
        """Those among `names` that a flag or `--cfg-options` gave."""
        return [name for name in names if name in self.settings and self.settings[name].explicit]
