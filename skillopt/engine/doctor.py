"""What would stop a run, found before it is started: configuration, data, skill, folder, keys, and a live call.

    findings = diagnose("config.yaml")
    stops = [finding for finding in findings if finding.level == "fail"]

A check is a function from a `Case` to findings; `CHECKS` lists them in the order in which they are told.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.config.resolve import check_available, check_env_keys, resolve
from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import SPLIT_NAMES, SplitDataLoader
from skillopt.engine import doctor_install, doctor_models, setup
from skillopt.engine.extent import extent_of
from skillopt.engine.findings import Finding, as_findings
from skillopt.engine.plan import refuse_too_small
from skillopt.engine.run_dir import RunDir
from skillopt.engine.state import check_fingerprint
from skillopt.envs.registry import accepted_keys, available
from skillopt.errors import SkillOptError
from skillopt.utils.files import RunLock
from skillopt.utils.redact import redact

if TYPE_CHECKING:
    from skillopt.envs.base import EnvAdapter
    from skillopt.skill.document import Skill

__all__ = ["CHECKS", "Case", "Finding", "diagnose"]


@dataclass(slots=True)
class Case:
    """What is looked at. `adapter` and `skill` are filled in by the checks of data and skill, None until then."""

    config: RunConfig
    offline: bool = False
    adapter: EnvAdapter | None = None
    skill: Skill | None = None


Check = Callable[[Case], Iterator[Finding]]


def diagnose(
    source: str | Path | Mapping[str, Any] | RunConfig,
    *,
    cfg_options: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    offline: bool = False,
) -> list[Finding]:
    """Check everything that a training run with this configuration needs; one finding for each thing looked at.

    `offline`: make no live call. Nothing is written, and no finding holds a secret.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config = source if isinstance(source, RunConfig) else resolve(source, cfg_options=cfg_options, flags=flags)
        except SkillOptError as error:
            edit = f"correct {source}" if isinstance(source, str | Path) else "correct the configuration"
            return [_hidden(finding) for finding in as_findings("configuration", error, edit)]
    findings = [Finding("ok", "configuration", f"configuration: {config.config_path or 'given'} can be read")]
    told = [str(warning.message) for warning in caught]
    findings += [Finding("warn", "configuration", f"configuration: {text}", "change or remove it") for text in told]
    case = Case(config, offline=offline)
    for check in CHECKS:
        findings += _told(check, case)
    secrets = [str(role.settings.get(name) or "") for role in config.roles.values() for name in role.secrets]
    return [_hidden(finding, secrets) for finding in findings]


def check_backends(case: Case) -> Iterator[Finding]:
    """The backends of both roles are part of this version, and their packages are installed."""
    try:
        check_available(case.config)
    except SkillOptError as error:
        yield from as_findings("backends", error, "skillopt config show --config FILE  # shows what is chosen and why")
        return
    for name, role in case.config.roles.items():
        yield from doctor_models.check_backend(name, role, case.config.source(f"model.{name}_backend"))


def check_environment(case: Case) -> Iterator[Finding]:
    """The environment exists and takes the keys that are given; where it runs generated code, that is shut in."""
    name = case.config.env.name
    if not name:
        yield Finding("fail", "environment", "environment: none is chosen", f"set env.name to {', '.join(available())}")
        return
    try:
        check_env_keys(case.config, accepted_keys(name))
    except SkillOptError as error:
        yield from as_findings("environment", error, "change the section env of the configuration")
    else:
        yield Finding("ok", "environment", f"environment: {name}")
        if "code_sandbox" in accepted_keys(name):
            yield from doctor_install.check_sandbox(required=case.config.env.code_sandbox == "require")


def check_data(case: Case) -> Iterator[Finding]:
    """The splits exist and load, with sound ids; tells how many items they have."""
    if not case.config.env.name:
        return
    try:
        memory = case.config.env.model_copy(update={"out_root": "", "split_output_dir": ""})
        adapter = setup.prepare(replace(case.config, env=memory))
        extent = extent_of(case.config, adapter)
    except SkillOptError as error:
        yield from as_findings("data", error, "change the data, or the keys of the section env that name it")
        return
    case.adapter = adapter
    loader = adapter.get_dataloader()
    sizes = {s: len(loader.items(s)) for s in SPLIT_NAMES} if isinstance(loader, SplitDataLoader) else {}
    shown = ", ".join(f"{split} {number} items" for split, number in sizes.items()) or "drawn by the environment"
    yield Finding("ok", "data", f"data: {shown}; {extent.total_steps} steps")
    for notice in getattr(loader, "notices", ()):
        yield Finding("warn", "data", f"data: {notice}", "look at the data file")
    for split, use in (("train", "to learn from"), ("val", "to judge candidates by")):
        if sizes.get(split) == 0:
            yield Finding("fail", "data", f"data: the split {split} is empty: nothing {use}", f"add items to {split}")


def check_skill(case: Case) -> Iterator[Finding]:
    """The skill to start from can be read."""
    path = case.config.env.skill_init
    try:
        case.skill = setup.initial_skill(case.config)
    except SkillOptError as error:
        yield from as_findings("skill", error, f"correct {path}, or name another file in env.skill_init")
        return
    shown = f"{path} ({len(case.skill.text):,} characters)" if path else "starts empty"
    yield Finding("ok", "skill", f"skill: {shown}")


def check_folder(case: Case) -> Iterator[Finding]:
    """The run's folder can be written, no other process holds it, and what it holds can be gone on with."""
    root = Path(case.config.env.out_root)
    place = next(path for path in (root, *root.parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "is no folder" if not place.is_dir() else "cannot be written"
        yield Finding("fail", "folder", f"folder: {place} {why}", "--out_root another folder")
        return
    try:
        if (root / ".lock").exists():
            with RunLock(root):
                pass
        going_on = _goes_on(case, RunDir(root))
    except (SkillOptError, OSError) as error:
        yield from as_findings("folder", error, "--out_root another folder")
        return
    yield Finding("ok", "folder", f"folder: {root} {'holds a run that goes on' if going_on else 'can be written'}")


def _goes_on(case: Case, folder: RunDir) -> bool:
    """True when the folder holds a run with these settings. Raises ResumeMismatchError for another."""
    if case.adapter is None or case.skill is None or not folder.state.exists():
        return False
    try:
        state = json.loads(folder.state.read_text(encoding="utf-8"))
    except ValueError:
        return False  # a run puts it aside and goes on from the store
    old = state.get("fingerprint") if isinstance(state, dict) else None
    check_fingerprint(folder, old or {}, setup.fingerprint_of(case.config, case.adapter, case.skill))
    return True


def check_budget(case: Case) -> Iterator[Finding]:
    """A budget that is set allows at least one complete proposal."""
    limits = {name: value for name, value in case.config.budget.model_dump().items() if value is not None}
    if not limits or case.adapter is None or case.skill is None:
        return
    try:
        refuse_too_small(case.config, case.adapter, case.skill)
    except SkillOptError as error:
        yield from as_findings("budget", error, f"raise {' or '.join(f'budget.{name}' for name in limits)}")
        return
    yield Finding("ok", "budget", f"budget: {', '.join(f'{name} {value:g}' for name, value in limits.items())}")


def check_prices(case: Case) -> Iterator[Finding]:
    """What each remote model costs, and where that is from."""
    yield from doctor_models.check_prices(case.config)


def check_keys(case: Case) -> Iterator[Finding]:
    """Each role has its credentials and its program."""
    for name in case.config.roles:
        yield from doctor_models.check_keys(case.config, name)


def check_calls(case: Case) -> Iterator[Finding]:
    """One tiny call to each distinct model; those on this machine are tried even offline."""
    yield from doctor_models.check_calls(case.config, offline=case.offline)


CHECKS: tuple[Check, ...] = (
    check_backends,
    check_environment,
    check_data,
    check_skill,
    check_folder,
    check_budget,
    check_prices,
    check_keys,
    check_calls,
)


def _told(check: Check, case: Case) -> list[Finding]:
    """What a check finds; what it warns of, and what a person's own environment raises in it, are findings too."""
    name = check.__name__.removeprefix("check_")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            findings = list(check(case))
        except Exception as error:  # noqa: BLE001 - told as a finding
            said = f"{type(error).__name__}: {error}"
            findings = [Finding("fail", name, f"{name}: {said}", "correct the environment's own code")]
    told = dict.fromkeys(str(warning.message) for warning in caught)
    return [*findings, *(Finding("warn", name, f"{name}: {text}", "change it, or leave it") for text in told)]


def _hidden(finding: Finding, secrets: Sequence[str] = ()) -> Finding:
    """The finding without whatever looks like, or is, a secret."""
    return replace(finding, what=redact(finding.what, secrets), fix=redact(finding.fix, secrets))
