"""The fingerprint of an environment that does not say itself what changes its results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt.types import content_hash

NEUTRAL_SETTINGS = frozenset(
    {
        "workers",
        "max_api_workers",
        "max_error_rate",
        "item_retries",
        "analyst_workers",
        "failure_only",
        "minibatch_size",
        "edit_budget",
        "seed",
        "limit",
        "exec_timeout",
        "out_root",
        "data_path",
        "split_mode",
        "split_ratio",
        "split_seed",
        "split_dir",
        "split_output_dir",
        "split_reset",
        "strict_splits",
        "skill_init",
    }
)
"""Settings that choose items, places or speed. The result of one item does not depend on them."""


def default_fingerprint(cls: type, settings: Mapping[str, Any]) -> str:
    """Hash of a class, of the source files beside it, and of the settings that can change a result.

    The source is part of it because an edited scorer or prompt must not be answered with results of the old one.
    """
    shown = {key: value for key, value in settings.items() if key not in NEUTRAL_SETTINGS}
    return content_hash(f"{cls.__module__}:{cls.__qualname__}", _sources(cls), shown)


def package_folder(cls: type) -> Path | None:
    """Folder of the package that holds the class, or None when its module is not in a package or has no file."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is None or not getattr(module, "__package__", ""):
        return None
    return Path(file).parent


def _sources(cls: type) -> list[tuple[str, str]]:
    folder = package_folder(cls)
    if folder is None:
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        files = [Path(file)] if file is not None else []
    else:
        files = sorted([*folder.glob("*.py"), *folder.glob("prompts/*.md")])
    return [(path.name, content_hash(path.read_bytes().hex())) for path in files if path.is_file()]
