"""The texts that are sent to models: four named templates, a person's own versions of them, and how they are filled.

A template is filled in one pass, so a value that contains a placeholder stays as it is. Values that come from
transcripts, models or documents are put between DATA lines whose mark depends on the value, so that no value can end
its own block.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.nearest import suggestion

PROMPTS_VARIABLE = "SKILLOPT_SLEEP_PROMPTS_PATH"
NONE = "(none)"
_FOLDER = Path(__file__).parent
_PLACEHOLDER = re.compile(r"__[A-Z][A-Z_]*?__")


@dataclass(frozen=True, slots=True)
class Template:
    """One named prompt. `data` are the placeholders whose values are fenced."""

    name: str
    stage: str
    role: str
    description: str
    placeholders: tuple[str, ...]
    data: tuple[str, ...]

    @property
    def default(self) -> str:
        """The text that comes with the package."""
        return (_FOLDER / f"{self.name}.md").read_text(encoding="utf-8")


TEMPLATES: dict[str, Template] = {
    template.name: template
    for template in (
        Template(
            "miner",
            "mine",
            "optimizer",
            "Finds recurring requests in one session.",
            ("__PROJECT__", "__PROMPTS__", "__FINAL__", "__FEEDBACK__"),
            ("__PROMPTS__", "__FINAL__", "__FEEDBACK__"),
        ),
        Template(
            "attempt",
            "replay",
            "target",
            "Does one task with the skill and the memory.",
            ("__SKILL__", "__MEMORY__", "__INTENT__", "__CONTEXT__"),
            ("__CONTEXT__",),
        ),
        Template(
            "judge",
            "replay",
            "optimizer",
            "Grades one answer against a rubric.",
            ("__RUBRIC__", "__RESPONSE__", "__TASK__"),
            ("__RUBRIC__", "__RESPONSE__", "__TASK__"),
        ),
        Template(
            "reflect",
            "reflect",
            "optimizer",
            "Proposes rules from failures.",
            (
                "__EDIT_BUDGET__",
                "__TARGET__",
                "__CUR_DOC__",
                "__GUARD__",
                "__CRITERIA__",
                "__PREFS__",
                "__FAILURES__",
            ),
            ("__CUR_DOC__", "__GUARD__", "__CRITERIA__", "__FAILURES__"),
        ),
    )
}


def render(name: str, values: Mapping[str, object], *, path: Path | None = None) -> str:
    """The prompt `name` with `values` by placeholder (`"__SKILL__": text`), filled in one pass.

    `path` is the override file (default: `overrides_path()`). An empty value reads `(none)`. Raises UsageProblem for
    an unknown template and ValueError for a placeholder without a value or one that the template does not know.
    """
    template = _template(name)
    unknown = sorted(set(values) - set(template.placeholders))
    missing = [placeholder for placeholder in template.placeholders if placeholder not in values]
    if unknown or missing:
        raise ValueError(f"prompt {name!r}: no value for {missing}, nothing known of {unknown}.")
    return fill(get_prompt(name, path=path), values, data=template.data)


def fill(text: str, values: Mapping[str, object], *, data: tuple[str, ...] = ()) -> str:
    """`text` with each placeholder replaced once by its value; the values of `data` are fenced."""

    def value_of(match: re.Match[str]) -> str:
        placeholder = match.group()
        if placeholder not in values:
            return placeholder
        value = str(values[placeholder]) if values[placeholder] is not None else ""
        if not value.strip():
            return NONE
        return fence(value, placeholder.strip("_").lower()) if placeholder in data else value

    return _PLACEHOLDER.sub(value_of, text)


def fence(content: str, label: str) -> str:
    """`content` between two DATA lines that it cannot forge: their mark is a hash of the content itself."""
    mark = hashlib.sha256(f"{label}\0{content}".encode("utf-8", "replace")).hexdigest()[:16]
    ending = "" if content.endswith("\n") else "\n"
    return f"----- DATA {label} {mark} -----\n{content}{ending}----- END DATA {label} {mark} -----"


def get_prompt(name: str, *, path: Path | None = None) -> str:
    """The text in effect of a template: the person's own if there is one, else the package's."""
    template = _template(name)
    return load_overrides(path).get(name) or template.default


def overrides_path() -> Path:
    """SKILLOPT_SLEEP_PROMPTS_PATH, else prompts.json in the home of the person's nights."""
    named = os.environ.get(PROMPTS_VARIABLE, "").strip()
    return paths.expand(named) if named else paths.sleep_home() / "prompts.json"


def load_overrides(path: Path | None = None) -> dict[str, str]:
    """The person's own templates by name, read anew at each call; {} when the file is missing or unreadable.

    Unknown names, values that are no text and blank texts count for nothing; `override_problem` tells of them.
    """
    data, _ = _read(_overrides_file(path))
    return {name: text for name, text in data.items() if name in TEMPLATES and isinstance(text, str) and text.strip()}


def override_problem(path: Path | None = None) -> str:
    """One sentence on what of the override file is not used, or an empty text."""
    place = _overrides_file(path)
    data, problem = _read(place)
    if problem:
        return f"{place}: {problem}; the package's own prompts are used."
    unknown = sorted(str(name) for name in data if name not in TEMPLATES)
    if unknown:
        return f"{place}: unknown prompt {unknown[0]!r}{suggestion(unknown[0], TEMPLATES)}; known: {_known()}."
    unusable = sorted(name for name, text in data.items() if not isinstance(text, str) or not text.strip())
    return f"{place}: {unusable[0]!r} is no text; the package's own is used." if unusable else ""


def save_overrides(changes: Mapping[str, str | None], path: Path | None = None) -> dict[str, str]:
    """Merge `changes` into the override file and return what is in it; None or a blank text removes one.

    Raises UsageProblem for an unknown name, and for a file that cannot be read (it is not overwritten).
    """
    place = _overrides_file(path)
    for name in changes:
        _template(name)
    data, problem = _read(place)
    if problem:
        raise UsageProblem(f"{place}: {problem}; mend or remove it first.")
    kept = {name: text for name, text in load_overrides(place).items() if name not in changes}
    kept.update({name: text for name, text in changes.items() if text is not None and text.strip()})
    paths.write_private_json(place, {**{name: data[name] for name in data if name not in TEMPLATES}, **kept})
    return kept


def is_overridden(name: str, *, path: Path | None = None) -> bool:
    """True when the person's own text is in effect."""
    _template(name)
    return name in load_overrides(path)


def describe(path: Path | None = None) -> list[dict[str, Any]]:
    """For each template: name, stage, role, description, placeholders, default, override and effective text."""
    overrides = load_overrides(path)
    return [
        {
            "name": template.name,
            "stage": template.stage,
            "role": template.role,
            "description": template.description,
            "placeholders": list(template.placeholders),
            "default": template.default,
            "override": overrides.get(template.name, ""),
            "effective": overrides.get(template.name) or template.default,
        }
        for template in TEMPLATES.values()
    ]


def _template(name: str) -> Template:
    template = TEMPLATES.get(name)
    if template is None:
        raise UsageProblem(f"Unknown prompt {name!r}{suggestion(name, TEMPLATES)}; known: {_known()}.")
    return template


def _known() -> str:
    return ", ".join(TEMPLATES)


def _overrides_file(path: Path | None) -> Path:
    named = os.environ.get(PROMPTS_VARIABLE, "").strip()
    return paths.expand(named) if named else path or overrides_path()


def _read(path: Path) -> tuple[dict[str, Any], str]:
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"cannot be read ({error.strerror})"
    except (ValueError, RecursionError):
        return {}, "is no valid JSON"
    return (data, "") if isinstance(data, dict) else ({}, "holds no object")
