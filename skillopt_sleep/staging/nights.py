"""The night folders of a project: where they lie, how one is reserved, which was published last.

A night is `<project>/.skillopt-sleep/staging/<YYYYmmdd-HHMMSS>[-N]` in UTC. Nothing on the way below the project may
be a link, so that a project cannot lead writing elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import disk, manifest
from skillopt_sleep.staging.problems import InvalidStaging

LATEST = ".latest"
_NIGHT = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?\Z")


def root_of(project: str | Path) -> Path:
    """The staging root of a project, the project's own path resolved. Raises StagingError when a link is on the way."""
    base = disk.real(paths.expand(project))
    root = paths.staging_root(base)
    for folder in (root.parent, root):
        if disk.is_link(folder):
            raise StagingError(f"{folder} is a link; staging writes only inside the project. Remove the link.")
    return root


def reserve(project: str | Path, *, clock: Callable[[], float] = time.time) -> Path:
    """Make and return a new night folder. Two callers never get the same one.

    Raises StagingError when the place is a link, OSError when it cannot be written.
    """
    root = root_of(project)
    paths.private_folder(root)
    ignore = root.parent / ".gitignore"
    if not os.path.lexists(ignore):
        paths.write_private(ignore, "*\n")
    name = time.strftime("%Y%m%d-%H%M%S", time.gmtime(clock()))
    number = 1
    while True:
        night = root / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            night.mkdir(mode=0o700)
            if os.name == "posix":
                night.chmod(0o700)
            return night
        number += 1


def folders(project: str | Path) -> Iterator[Path]:
    """All night folders of a project, oldest first; links and other names are passed over."""
    root = root_of(project)
    if not root.is_dir():
        return
    named = [entry for entry in root.iterdir() if _NIGHT.match(entry.name)]
    yield from (entry for entry in sorted(named, key=_age) if not disk.is_link(entry) and entry.is_dir())


def published(project: str | Path) -> list[Path]:
    """The nights that have a manifest, the newest first: by the time the manifest was written, then by name."""
    found = []
    for night in folders(project):
        with contextlib.suppress(OSError):
            file = night / manifest.FILE
            if not disk.is_link(file) and file.is_file():
                found.append((file.stat().st_mtime_ns, _age(night), night))
    ordered = [night for *_, night in sorted(found, reverse=True)]
    last = _pointed(root_of(project))
    if last in ordered:
        ordered.remove(last)
        ordered.insert(0, last)
    return ordered


def point_to(night: Path) -> None:
    """Make `night` the one that was published last."""
    paths.write_private(night.parent / LATEST, night.name + "\n")


def check_night(night: str | Path) -> Path:
    """The canonical path of an existing night folder of some project. Raises InvalidStaging with what is wrong."""
    given = paths.expand(night)
    if disk.is_link(given):
        raise InvalidStaging(f"{given} is a link; name the night's own folder.")
    folder = disk.real(given.parent) / given.name
    if not folder.is_dir():
        raise InvalidStaging(f"{given} is not a folder; `skillopt-sleep status` lists the nights.")
    if (
        not _NIGHT.match(folder.name)
        or folder.parent.name != "staging"
        or folder.parent.parent.name != paths.PROJECT_FOLDER
    ):
        raise InvalidStaging(f"{given} is not a night of a project ({paths.PROJECT_FOLDER}/staging/<night>).")
    root_of(project_of(folder))
    return folder


def project_of(night: Path) -> Path:
    """The project of a night folder."""
    return night.parents[2]


def _pointed(root: Path) -> Path | None:
    """The night that `.latest` names; None when the pointer is not a private file of ours with the name of a night."""
    try:
        seen = disk.look(root / LATEST)
    except StagingError:
        return None
    if seen is None or seen.links != 1 or (os.name == "posix" and seen.mode & 0o077):
        return None
    name = seen.data.decode("utf-8", "replace").strip()
    return root / name if _NIGHT.match(name) else None


def _age(night: Path) -> tuple[str, int]:
    found = _NIGHT.match(night.name)
    return (found[1], int(found[2] or 1)) if found else (night.name, 0)


def staging_root(project: str | Path) -> str:
    """`<project>/.skillopt-sleep/staging`, with the project's own links resolved."""
    return str(root_of(project))


def new_staging_dir(project: str | Path) -> str:
    """Reserve a night folder (0700) and return its path."""
    return str(reserve(project))


def latest_staging(project: str | Path) -> str | None:
    """The night that was published last; None when there is none."""
    return next((str(night) for night in published(project)), None)
