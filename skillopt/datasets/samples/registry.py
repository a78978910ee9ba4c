"""Which sample data there are: every module of this package that has a function `write`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from skillopt.datasets import samples
from skillopt.errors import ConfigError, DataError

Write = Callable[[Path], None]


def sample_names() -> dict[str, str]:
    """Name and first line of the description of each kind of sample data, by name."""
    return {name: _about(name) for name in _modules() if _writer(name) is not None}


def write_samples(name: str, folder: Path) -> None:
    """Write the sample data `name` into `folder`; the same bytes every time.

    Raises ConfigError for an unknown name, MissingExtraError where a package is needed to make them, DataError when the
    folder cannot be written.
    """
    write = _writer(name) if name in _modules() else None
    if write is None:
        known = sample_names()
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ConfigError(f"there are no sample data {name!r}{hint} Known: {', '.join(known)}.")
    try:
        write(folder)
    except OSError as error:
        raise DataError(f"{error.filename or folder}: cannot be written ({error.strerror}).") from error


def _modules() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(samples.__path__) if module.name != "registry")


def _writer(name: str) -> Write | None:
    found = getattr(importlib.import_module(f"{samples.__name__}.{name}"), "write", None)
    return cast(Write, found) if callable(found) else None


def _about(name: str) -> str:
    text = importlib.import_module(f"{samples.__name__}.{name}").__doc__ or ""
    return text.strip().splitlines()[0] if text.strip() else ""
