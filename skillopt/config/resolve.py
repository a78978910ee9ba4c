"""From files, options, flags and environment to one checked RunConfig. Nothing is created or called here."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from skillopt.config.agent_rows import check_sdk
from skillopt.config.keys import KEYS, SECTIONS, section_keys
from skillopt.config.load import read_config, read_mapping
from skillopt.config.notices import idle_settings, warn_credentials, warn_notices, warn_retired
from skillopt.config.providers import PROVIDERS, available_backends, nearest
from skillopt.config.roles import ResolvedRoles, resolve_roles
from skillopt.config.run_config import RunConfig
from skillopt.config.schema import build_section
from skillopt.config.settings import Collected
from skillopt.config.shipped import find_skill
from skillopt.errors import ConfigError
from skillopt.utils.redact import hide_in_addresses, redact

__all__ = ["RunConfig", "check_available", "check_env_keys", "resolve"]

_SHOWN_PROBLEMS = 5
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f]')  # what some system refuses in the name of a folder


def resolve(
    source: str | Path | Mapping[str, Any] | None = None,
    *,
    cfg_options: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    command: str = "train",
) -> RunConfig:
    """Read, join, check and resolve everything.

    `source`: a YAML file, or the same settings as a mapping (structured or flat).
    Order, lowest first: built-in values, environment variables, base files, the file, `--cfg-options`, flags,
    derived values. `command` is `train` or `eval`. Raises ConfigError, one line a problem, with place, key, what
    was expected and the nearest name. Warns once about retired keys, credentials outside the
    environment, names that mislead, and settings that the chosen backends cannot apply.
    """
    given = Collected()
    path = None if source is None or isinstance(source, Mapping) else Path(source)
    if isinstance(source, Mapping):
        given.add_file(read_mapping(source))
    elif path is not None:
        given.add_file(read_config(path))
    given.add_options(cfg_options)
    given.add_flags(flags or {})
    warn_retired(given.retired)
    warn_credentials(given)
    sections = _checked_sections(given)
    roles = resolve_roles(sections["model"], given, os.environ if environ is None else environ)
    derived = _derive(sections, given, roles, command)
    _check_skill_init(sections["env"].skill_init, given, command)
    warn_notices([*roles.notices, *idle_settings(given, roles.roles, path)])
    return RunConfig(
        command=command,
        config_path=path,
        label=roles.label,
        roles=roles.roles,
        sources=_all_sources(given, roles, derived),
        **sections,
    )


def _checked_sections(given: Collected) -> dict[str, Any]:
    problems = list(given.problems)
    sections: dict[str, Any] = {}
    for section in SECTIONS:
        model, found = build_section(section, given.section(section))
        sections[section] = model
        problems += [f"{given.source(f'{section}.{name}')}: {what}" for name, what in found]
    if not problems:
        problems += _across_keys(sections, given)
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [f"... and {more} more"] if more > 0 else []
        raise ConfigError("\n".join([*problems[:_SHOWN_PROBLEMS], *rest]))
    return sections


def _across_keys(sections: Mapping[str, Any], given: Collected) -> list[str]:
    """Checks that need two keys."""
    low, high = sections["optimizer"].min_learning_rate, sections["optimizer"].learning_rate
    if low > high and given.source("optimizer.min_learning_rate") != "default":
        return [
            f"{given.source('optimizer.min_learning_rate')}: optimizer.min_learning_rate must be at most "
            f"optimizer.learning_rate ({high}), not {low}"
        ]
    return []


def _derive(sections: dict[str, Any], given: Collected, roles: ResolvedRoles, command: str) -> dict[str, str]:
    """Fill in what follows from other values; returns the source of each."""
    derived: dict[str, str] = {}
    optimizer = sections["optimizer"]
    if optimizer.min_learning_rate > optimizer.learning_rate:
        sections["optimizer"] = _with(optimizer, min_learning_rate=optimizer.learning_rate)
        derived["optimizer.min_learning_rate"] = "derived from optimizer.learning_rate"
    changes: dict[str, object] = {"backend": roles.label}
    for role, config in roles.roles.items():
        changes.update({role: config.model, f"{role}_backend": config.backend})
        derived[f"model.{role}"] = roles.sources[f"{role}.model"]
        derived[f"model.{role}_backend"] = roles.sources[f"model.{role}_backend"]
    sections["model"] = _with(sections["model"], **changes)
    skill = find_skill(sections["env"].skill_init) if command == "train" else sections["env"].skill_init
    sections["env"] = _with(sections["env"], out_root=_out_root(sections, command), skill_init=skill)
    if not given.section("env").get("out_root"):
        derived["env.out_root"] = "derived"
    return derived


def _with(model: BaseModel, **changes: object) -> BaseModel:
    return model.model_copy(update=changes)


def _out_root(sections: Mapping[str, Any], command: str) -> str:
    """The run folder as an absolute path; by default named after environment, model and time."""
    root = sections["env"].out_root
    if not root:
        model = sections["model"].optimizer if command == "train" else sections["model"].target
        prefix = "skillopt" if command == "train" else "eval"
        name = f"{prefix}_{sections['env'].name}_{model}_{time.strftime('%Y%m%d_%H%M%S')}"
        root = str(_unused(Path("outputs") / _NOT_IN_NAMES.sub("-", name)))
    return str(Path(root).expanduser().absolute())


def _unused(folder: Path) -> Path:
    """`folder`, or with a number behind it when a run that began in the same second has the name already."""
    names = (folder, *(folder.with_name(f"{folder.name}_{number}") for number in range(2, 1000)))
    return next(name for name in names if not name.exists())


def _check_skill_init(skill_init: str, given: Collected, command: str) -> None:
    """A start skill that is named must exist; blank means an empty skill."""
    if command != "train" or not skill_init or Path(skill_init).is_file():
        return
    path = Path(skill_init)
    wrong = "is a folder" if path.is_dir() else "does not exist"
    near = nearest(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
    hint = f"did you mean {path.parent / near}?" if near and not path.is_dir() else "name a Markdown file"
    raise ConfigError(
        f"{given.source('env.skill_init')}: env.skill_init: {skill_init} {wrong}; {hint} "
        '(a blank value "" starts with an empty skill)'
    )


def _all_sources(given: Collected, roles: ResolvedRoles, derived: Mapping[str, str]) -> dict[str, str]:
    sources = {dotted: setting.source for dotted, setting in given.settings.items()}
    return {**sources, **roles.sources, **derived}


def check_available(config: RunConfig) -> None:
    """Raise ConfigError when a role's backend is known but not part of this version, or its address is none.

    MissingExtraError when the package of an SDK that an agent is to run through is not installed.
    """
    for role, settings in config.roles.items():
        row = PROVIDERS[settings.backend]
        if not row.serves(role):
            source = config.source(f"model.{role}_backend")
            where = "no backend is chosen, and" if source == "default" else f"{source}:"
            raise ConfigError(
                f"{where} the backend {row.name} (for the {role}) is not part of this version; available: "
                f"{', '.join(available_backends(role))} (set model.backend or model.{role}_backend)"
            )
        if row.is_agent(role):
            check_sdk(row, settings.settings, config.source(f"{role}.use_sdk"))
        url = str(settings.settings.get("base_url") or "").strip()
        if url and not url.lower().startswith(("http://", "https://")):
            raise ConfigError(
                f"{config.source(f'{role}.base_url')}: the address of {settings.backend} (for the {role}) must be "
                f"like http://host:8000/v1, not {hide_in_addresses(redact(url))!r}"
            )


def check_env_keys(config: RunConfig, accepted: Collection[str]) -> None:
    """Raise ConfigError for keys in `env` that the environment, which accepts `accepted`, does not use."""
    known = {key.name: key for key in section_keys("env")}
    given = [name for name, key in known.items() if not key.common and getattr(config.env, name) is not None]
    candidates = {key.flat_name: key.dotted for key in KEYS if key.section != "env" or key.common}
    candidates.update({name: f"env.{name}" for name in accepted if name not in candidates})
    problems = []
    for name in (*config.env_extras, *given):
        if name in accepted:
            continue
        near = nearest(name, candidates)
        hint = f"; did you mean {candidates[near]}?" if near and near != name else ""
        problems.append(
            f"{config.source(f'env.{name}')}: the environment {config.env.name} has no key env.{name}{hint}"
        )
    if problems:
        raise ConfigError("\n".join(problems[:_SHOWN_PROBLEMS]))
