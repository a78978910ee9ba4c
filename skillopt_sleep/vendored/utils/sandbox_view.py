# A copy of skillopt/utils/sandbox_view.py, made by scripts/vendor.py: change the original, then run that.
"""What of the file system a program in a sandbox can see: system libraries, this Python and its packages."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32"),
    *("/usr/lib64", "/usr/libexec", "/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/usr/share/zoneinfo"),
    *("/usr/share/locale", "/usr/share/fonts", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf"),
    *(
        "/etc/ld.so.conf.d",
        "/etc/localtime",
        "/etc/timezone",
        "/etc/mime.types",
        "/etc/fonts",
        "/nix/store",
        "/gnu/store",
    ),
)
_OF_PREFIX = ("bin", "lib", "lib32", "lib64", "pyvenv.cfg", "ssl")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class View:
    """What is shown, each at its own place: `paths` without links in them; `links`, with where they lead from there."""

    paths: tuple[Path, ...]
    links: Mapping[Path, str]


def package_folders() -> tuple[Path, ...]:
    """The folders of installed packages that this interpreter imports from."""
    return tuple(dict.fromkeys(Path(entry) for entry in sys.path if Path(entry).name in _PACKAGE_FOLDERS))


def view_of(*further: Path, folder: Path) -> View:
    """What a program sees when `further` is to be readable too; its own `folder` has all its names, but is not shown.

    Raises FileNotFoundError for a path that is not there.
    """
    always = _always()
    links = dict(always.links)
    _real_path(folder, links)
    return View(_covering([*always.paths, *(_real_path(path, links) for path in further)]), links)


@functools.cache
def _always() -> View:
    """The system's libraries, and the parts of this Python's folders that hold programs, libraries and packages."""
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    prefixes.append(str(Path(sys.executable).resolve().parent.parent))
    wanted = [Path(name) for name in _SYSTEM]
    wanted += [Path(prefix) / part for prefix in prefixes for part in _OF_PREFIX]
    wanted += [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    wanted += [*package_folders(), Path(sys.executable)]
    links: dict[Path, str] = {}
    return View(_covering(_real_path(path, links) for path in wanted if path.exists()), links)


def _real_path(path: Path, links: dict[Path, str]) -> Path:
    """The path without links; those that are on the way are added to `links`."""
    path.resolve(strict=True)
    here, ahead = Path("/"), list(path.absolute().parts[1:])
    while ahead:
        part = ahead.pop(0)
        if part == os.pardir:
            here = here.parent
        elif not (here / part).is_symlink():
            here /= part
        else:
            leads = (here / part).readlink()
            links[here / part] = os.path.relpath(leads, here) if leads.is_absolute() else str(leads)
            ahead = [*leads.parts[leads.is_absolute() :], *ahead]
            here = Path("/") if leads.is_absolute() else here
    return here


def _covering(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths without those that lie in another, parents first."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not any(path.is_relative_to(above) for above in kept):
            kept.append(path)
    return tuple(kept)
