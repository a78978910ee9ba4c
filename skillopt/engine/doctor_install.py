"""The checks of an installation: Python, packages, extras, tokens, write access, sandbox, environment variables."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import skillopt
from skillopt.config.envfile import variables
from skillopt.config.provider_row import ROLES
from skillopt.config.providers import PROVIDERS
from skillopt.engine.findings import Finding
from skillopt.prompts.tables import ESTIMATE, token_counter
from skillopt.utils.sandbox import REMEDY, strength

OLDEST_PYTHON = (3, 10)
_NOT_FOR_USERS = ("dev", "docs")
_ALIKE = 0.86  # how near a name must be: OPENAI_API_KEY, of other programs, is not a slip for AZURE_OPENAI_API_KEY


def diagnose_installation(environ: Mapping[str, str] | None = None, folder: Path | None = None) -> list[Finding]:
    """Check what every run needs, whatever its configuration; one finding for each thing looked at.

    `environ`, `folder`: in place of this process's environment and current folder. No value of a variable is told.
    """
    return [
        *check_python(),
        *check_packages(),
        *check_token_table(),
        *check_write_access(folder or Path.cwd()),
        *check_sandbox(),
        *check_variables(os.environ if environ is None else environ),
    ]


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Finding]:
    """The Python is one that is supported."""
    shown = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield Finding("fail", "python", f"Python {shown} is too old", f"install Python {oldest} or later")
    else:
        yield Finding("ok", "python", f"Python {shown}")


def check_packages() -> Iterator[Finding]:
    """The packages that are always needed, and those of each extra."""
    try:
        wanted = importlib.metadata.requires("skillopt") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("warn", "packages", "skillopt is not installed as a package", "pip install -e .")
        return
    extras: dict[str, list[str]] = {"": []}
    for line in wanted:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra *== *[\"']([\w-]+)[\"']", line)
        extras.setdefault(extra[1] if extra else "", []).append(name[0] if name else line)
    missing = [package for package in extras.pop("") if not _installed(package)]
    for package in missing:
        yield Finding("fail", "packages", f"the package {package} is not installed", f"pip install {package}")
    if not missing:
        yield Finding("ok", "packages", "all packages that are always needed are installed")
    used = _used(extras)
    yield from _extras({extra: packages for extra, packages in extras.items() if extra in used})


def _extras(extras: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    for extra, packages in extras.items():
        lacking = [package for package in packages if not _installed(package)]
        if extra in _NOT_FOR_USERS or set(packages) == {"skillopt"}:  # a bundle of extras that have lines of their own
            continue
        if lacking:
            fix = f'pip install "skillopt[{extra}]"'
            yield Finding("ok", "extras", f"extra {extra}: without {', '.join(lacking)} (optional)", fix)
        else:
            yield Finding("ok", "extras", f"extra {extra}: installed")


def _used(extras: Mapping[str, Sequence[str]]) -> set[str]:
    """The extras that our code asks for: by name in a message, as the SDK of an agent, or by the same packages."""
    sources = (path.read_text(encoding="utf-8") for path in Path(skillopt.__file__).parent.rglob("*.py"))
    named = {extra for text in sources for extra in re.findall(r"skillopt\[([\w-]+)\]", text)}
    named |= {row.sdk.extra for row in PROVIDERS.values() if row.sdk is not None}
    packages = {package for extra in named for package in extras.get(extra, ())}
    return {extra for extra, needed in extras.items() if packages.issuperset(needed)}


def check_token_table() -> Iterator[Finding]:
    """Tokens can be counted exactly; an estimate does otherwise, and nothing stops."""
    if token_counter() is not ESTIMATE:
        yield Finding("ok", "tokens", "tiktoken has its table: tokens of plans are counted exactly")
        return
    fix = "python -c \"import tiktoken; tiktoken.get_encoding('o200k_base')\"  # downloads it"
    yield Finding("ok", "tokens", "tiktoken has no table here: tokens are estimated", fix)


def check_write_access(folder: Path) -> Iterator[Finding]:
    """Runs can be written below `folder`."""
    if os.access(folder, os.W_OK | os.X_OK):
        yield Finding("ok", "folder", f"{folder} can be written")
    else:
        yield Finding("warn", "folder", f"{folder} cannot be written", "change to another folder, or give --out_root")


def check_sandbox(*, required: bool = False) -> Iterator[Finding]:
    """How well code that a model wrote is shut in; really tried. `required`: open files or network are a failure."""
    found = strength()
    if found.isolates_files and found.isolates_network:
        shut_out = "shuts out files and network"
        yield Finding("ok", "sandbox", f"sandbox: {found.name} {shut_out} for code that a model wrote")
    else:
        open_to = "can read this user's files and reach the network"
        what = f"sandbox: {found.name} only: code that a model wrote {open_to}"
        yield Finding("fail" if required else "warn", "sandbox", what, REMEDY)


def check_variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Environment variables that are read, and those that seem to be meant for us and are not."""
    fields = [field for row in PROVIDERS.values() for field in row.all_fields]
    known = {name for field in fields for name in variables(field)} | {f"{role.upper()}_BACKEND" for role in ROLES}
    found = sorted(name for name in environ if name in known and environ[name].strip())
    if found:
        yield Finding("ok", "variables", f"set and read: {', '.join(found)}")
    for name in sorted(set(environ) - known):
        near = get_close_matches(name.upper(), known, 1, _ALIKE)
        if near:
            yield Finding("warn", "variables", f"{name} is not read by us", f"did you mean {near[0]}?")


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
