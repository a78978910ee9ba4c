"""A new environment of a person's own, written from the templates of this package."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
from pathlib import Path

from skillopt.envs.registry import available
from skillopt.errors import ConfigError, DataError
from skillopt.utils.files import atomic_write_text

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 30
_SUFFIX = ".in"
_TEMPLATES = Path(__file__).parents[1] / "templates" / "env"


def write_env(name: str, folder: Path) -> list[Path]:
    """Write the environment `name` into `folder`, which is made; the files, in order.

    Raises ConfigError for a name that is no free package name, DataError when the folder holds anything or cannot be
    written. Nothing is overwritten, and nothing is left behind when a file cannot be written.
    """
    check_name(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: exists already and is not an empty folder; choose another --dir.")
    made = not folder.exists()
    values = {"__NAME__": name, "__CLASS__": class_name(name), "__DIST__": name.replace("_", "-")}
    try:
        return [_write(folder, path, text, values) for path, text in _templates()]
    except OSError as error:
        for path in folder.iterdir() if folder.is_dir() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if made and folder.is_dir():
            folder.rmdir()
        raise DataError(f"{error.filename or folder}: cannot be written ({error.strerror}).") from error


def check_name(name: str) -> None:
    """Raise ConfigError for a name that cannot be that of a new environment and its package."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ConfigError(f"{name!r} is no name of a package; expected letters a to z, digits and _, as in my_task.")
    if keyword.iskeyword(name) or name in sys.builtin_module_names:
        raise ConfigError(f"{name!r} is a word of Python; choose another name.")
    if name in available():
        raise ConfigError(f"{name!r} is the name of an environment that is there already; choose another one.")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise ConfigError(f"{name!r} is the name of a package that is installed; choose another one.")


def class_name(name: str) -> str:
    """Class of an environment: `my_task` gives `MyTaskEnv`."""
    return "".join(part.capitalize() for part in name.split("_")) + "Env"


def _write(folder: Path, path: str, text: str, values: dict[str, str]) -> Path:
    for mark, value in values.items():
        path, text = path.replace(mark, value), text.replace(mark, value)
    target = folder / path
    atomic_write_text(target, text)
    return target


def _templates() -> list[tuple[str, str]]:
    """Path and text of every template, by path."""
    found = sorted(_TEMPLATES.rglob(f"*{_SUFFIX}"))
    return [(p.relative_to(_TEMPLATES).as_posix().removesuffix(_SUFFIX), p.read_text(encoding="utf-8")) for p in found]
