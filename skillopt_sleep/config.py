"""The settings of a night: defaults, then one file, then the environment, then explicit overrides; later wins.

Everything is checked before anything else happens: unknown names are refused with the nearest known one, wrong types
with the file and the key. `skillopt_sleep.config_keys` holds the table of settings.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.config_check import canonical_backend as canonical_backend
from skillopt_sleep.config_check import check
from skillopt_sleep.config_files import find_config, read_config
from skillopt_sleep.config_keys import BY_NAME, KEYS
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.nearest import suggestion

WORKERS_VARIABLE = "SKILLOPT_SLEEP_WORKERS"
CONFIG_VARIABLE = "SKILLOPT_SLEEP_CONFIG"
USER_KEYS = "_user_config_keys"
DEFAULT = "default"
OVERRIDE = "override"
_GATE_OFF = frozenset({"off", "none", "false", "greedy"})

DEFAULTS: dict[str, Any] = {key.name: key.default for key in KEYS}


class SleepConfig:
    """Checked settings with attribute access (`config.backend`), `get`, `to_dict` and the paths that follow from them.

    They do not change; `replace` makes a changed copy. `provenance` says for each key where its value came from
    ("default", a file, a variable, "override"); `notices` are lines worth showing; `home` is the person's folder with
    configuration and prompts.
    """

    __slots__ = ("_data", "home", "notices", "provenance")

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        provenance: Mapping[str, str] | None = None,
        notices: tuple[str, ...] = (),
        home: Path | None = None,
    ) -> None:
        given = {key: value for key, value in (data or {}).items() if key != USER_KEYS}
        origin = dict(provenance) if provenance is not None else dict.fromkeys(given, OVERRIDE)
        checked = {key: check(key, value, origin.get(key, OVERRIDE)) for key, value in given.items()}
        self._data = {**copy.deepcopy(DEFAULTS), **checked}
        self.provenance = {key: origin.get(key, DEFAULT) for key in DEFAULTS}
        self._data[USER_KEYS] = sorted(key for key, where in self.provenance.items() if where != DEFAULT)
        self.notices = notices
        self.home = home if home is not None else paths.sleep_home()
        _check_together(self)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._data:
            return self._data[name]
        raise AttributeError(f"no setting {name!r}{suggestion(name, BY_NAME)}")

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Value of a setting, or `default` when there is none of that name."""
        return self._data.get(name, default)

    def to_dict(self) -> dict[str, Any]:
        """A copy of all settings, with the names that were set by the person under `_user_config_keys`."""
        return copy.deepcopy(self._data)

    def chosen(self) -> dict[str, Any]:
        """Only what a file, a variable or an override has set: enough to make the same configuration again."""
        return {key: copy.deepcopy(self._data[key]) for key in self._data[USER_KEYS]}

    def replace(self, **changes: Any) -> SleepConfig:
        """The same configuration with some settings changed; None means no change."""
        wanted = {key: value for key, value in changes.items() if value is not None}
        data = {**self.chosen(), **wanted}
        provenance = {**self.provenance, **dict.fromkeys(wanted, OVERRIDE)}
        kept = {key: where for key, where in provenance.items() if key in data}
        return SleepConfig(data, provenance=kept, notices=self.notices, home=self.home)

    @property
    def project(self) -> Path:
        """The project of this night, absolute."""
        return paths.expand(self._data["invoked_project"] or Path.cwd())

    @property
    def state_dir(self) -> Path:
        """Folder of state, journals, locks and evidence of dry runs.

        The setting; else SKILLOPT_SLEEP_HOME; else beside a `claude_home` that is not the usual one; else the home.
        """
        if self._data["state_dir"]:
            return paths.expand(self._data["state_dir"])
        if os.environ.get(paths.HOME_VARIABLE, "").strip():
            return self.home
        return _beside(self._data["claude_home"]) or self.home

    @property
    def state_path(self) -> Path:
        """The file of `SleepState`."""
        return self.state_dir / "state.json"

    @property
    def prompts_path(self) -> Path:
        """The file of prompt overrides."""
        return self.home / "prompts.json"

    @property
    def transcripts_dir(self) -> Path:
        """Claude Code's transcripts."""
        return paths.expand(self._data["claude_home"]) / "projects"

    @property
    def skills_dir(self) -> Path:
        """Claude Code's personal skills."""
        return paths.expand(self._data["claude_home"]) / "skills"

    @property
    def managed_skill_path(self) -> Path:
        """The managed SKILL.md: `target_skill_path` (relative: under the project), else in `skills_dir`."""
        target = self._data["target_skill_path"]
        if target:
            return paths.expand(self.project / Path(target).expanduser())
        return self.skills_dir / str(self._data["managed_skill_name"]) / "SKILL.md"

    @property
    def memory_path(self) -> Path:
        """The project's CLAUDE.md."""
        return self.project / "CLAUDE.md"

    @property
    def staging_root(self) -> Path:
        """Where this project's proposals are staged."""
        return paths.staging_root(self.project)

    @property
    def night_folder(self) -> Path:
        """Journal and paid calls of this project's night in progress."""
        return paths.night_folder(self.state_dir, self.project)

    @property
    def session_limit(self) -> int:
        """Most sessions a night reads."""
        return int(self._data["max_sessions_per_night"] or 3 * self._data["max_tasks_per_night"])

    @property
    def gate_on(self) -> bool:
        """False when changes are taken without held-out evidence."""
        return self._data["gate_mode"] not in _GATE_OFF

    @property
    def fanout(self) -> bool:
        """True when named skills get proposals of their own."""
        chosen = self._data["multi_skill_fanout"]
        return bool(self._data["multi_skill_report"] if chosen is None else chosen)

    @property
    def fractions(self) -> tuple[float, float]:
        """(validation, test) shares; an own `val_fraction` counts before an own `holdout_fraction`."""
        chosen = self._data[USER_KEYS]
        name = "holdout_fraction" if "holdout_fraction" in chosen and "val_fraction" not in chosen else "val_fraction"
        return float(self._data[name]), float(self._data["test_fraction"])

    @property
    def backends(self) -> tuple[str, ...]:
        """Every backend that this configuration uses, each once: `backend` and those of the roles.

        Raises UsageProblem when a role is left without one.
        """
        roles = [self._data[f"{role}_backend"] or self._data["backend"] for role in ("optimizer", "target")]
        if not all(roles):
            raise UsageProblem(
                "No backend is chosen: pass --backend claude, codex, azure_openai or handoff (or set `backend` in "
                f"{self.home / 'config.json'}); --backend mock calls no model and learns from prepared tasks only."
            )
        return tuple(dict.fromkeys([*roles, *filter(None, [self._data["judge_backend"]])]))

    @property
    def calls_a_model(self) -> bool:
        """True when any backend in use sends text to something outside this program."""
        return any(backend != "mock" for backend in self.backends)


def load_config(**overrides: Any) -> SleepConfig:
    """Settings from defaults, the configuration file, the environment and `overrides`; None values are skipped.

    The file is the first of config.json, config.yaml and config.yml in SKILLOPT_SLEEP_HOME; without that variable in
    `.skillopt-sleep` beside an overriding `claude_home`, else in ~/.skillopt-sleep. SKILLOPT_SLEEP_CONFIG names another
    file in its place. Raises UsageProblem.
    """
    wanted = {key: value for key, value in overrides.items() if value is not None and key != USER_KEYS}
    home = _home(wanted)
    named = os.environ.get(CONFIG_VARIABLE, "").strip()
    path, notices = (paths.expand(named), []) if named else find_config(home)
    data: dict[str, Any] = {}
    provenance: dict[str, str] = {}
    for where, values in ((str(path), read_config(path) if path else {}), *_environment(), (OVERRIDE, wanted)):
        for key, value in values.items():
            if key == USER_KEYS:
                continue
            data[key] = check(key, value, where)
            provenance[key] = where
    if data.get("projects", "invoked") == "invoked" and not data.get("invoked_project"):
        data["invoked_project"] = str(Path.cwd())
        provenance.pop("invoked_project", None)
    return SleepConfig(data, provenance=provenance, notices=tuple(notices), home=home)


def _check_together(config: SleepConfig) -> None:
    val, test = config.fractions
    if val + test >= 1:
        raise UsageProblem(f"val_fraction {val:g} and test_fraction {test:g} leave nothing to train on; lower one.")
    name = config.get("managed_skill_name").strip()
    if not name or name in (".", "..") or any(letter in '/\\\0:*?"<>|' or letter < " " for letter in name):
        raise UsageProblem(f"managed_skill_name is {name!r}; expected the plain name of a folder.")
    if config.get("auto_adopt") and not config.gate_on and not config.get("allow_ungated_auto_adopt"):
        raise UsageProblem(
            f"auto_adopt with gate_mode {config.get('gate_mode')!r} would put unchecked changes live; switch one off, "
            "or set allow_ungated_auto_adopt."
        )


def _home(overrides: Mapping[str, Any]) -> Path:
    if not os.environ.get(paths.HOME_VARIABLE, "").strip() and isinstance(overrides.get("claude_home"), (str, Path)):
        return _beside(str(overrides["claude_home"])) or paths.sleep_home()
    return paths.sleep_home()


def _beside(claude_home: str) -> Path | None:
    """`.skillopt-sleep` beside a Claude home that is not the usual one."""
    if not claude_home.strip() or paths.expand(claude_home) == paths.expand(DEFAULTS["claude_home"]):
        return None
    return paths.expand(claude_home).parent / paths.PROJECT_FOLDER


def _environment() -> list[tuple[str, dict[str, Any]]]:
    text = os.environ.get(WORKERS_VARIABLE, "").strip()
    if not text:
        return []
    value = int(text) if text.isdecimal() and len(text) < 10 else text
    return [(WORKERS_VARIABLE, {"workers": value})]
