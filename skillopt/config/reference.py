"""The text of `docs/reference/configuration.md`: every key, generated from the tables that the program reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillopt.config.key import Key
from skillopt.config.keys import SECTIONS, section_keys

_HEAD = """\
# Every setting

Generated from the tables that the program reads; `make docs` writes it again.

A setting can be given in a file (`section: {key: value}`), on the command line as a flag or as `--cfg-options
section.key=value`, and some as environment variables (`.env.example`). The order, lowest first: built-in, environment,
`_base_` file, file, `--cfg-options`, flags. A blank value of a backend leaves the environment in charge. Unknown keys,
wrong types and values out of range are errors.
"""

_TITLES = {"": "", "env": "Only some environments use these"}


def configuration_page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for section in SECTIONS:
        parts.append(f"## {section}\n")
        keys = section_keys(section)
        for group in dict.fromkeys(key.group for key in keys):
            title = _TITLES.get(group, group)
            chosen = [key for key in keys if key.group == group]
            parts.append("\n".join([*([f"### {title}\n"] if title else []), *_table(chosen)]) + "\n")
    return "\n".join(parts)


def _table(keys: Sequence[Key]) -> Iterator[str]:
    yield "| key | flag | value | default | meaning |"
    yield "|---|---|---|---|---|"
    for key in keys:
        cells = (f"`{key.name}`", f"`--{key.flag_name}`", key.expected, _default(key), key.doc)
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _default(key: Key) -> str:
    if key.default is None:
        return "unset"
    if isinstance(key.default, bool):
        return f"`{str(key.default).lower()}`"
    return f"`{key.default}`" if key.default != "" else "blank"
