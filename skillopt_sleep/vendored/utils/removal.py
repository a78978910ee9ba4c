# A copy of skillopt/utils/removal.py, made by scripts/vendor.py: change the original, then run that.
"""Removing folders that a stranger's program has filled: nested as deep as it likes, closed, or linked elsewhere."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything in it; links are removed, and what they lead to is not touched.

    Each folder inside is first brought to the top, so that neither the depth of the nest nor the length of a path can
    be too much. Nothing else may be writing in it. Raises OSError for what cannot be removed, as `folder` missing.
    """
    folder.chmod(0o700)
    attic = Path(tempfile.mkdtemp(prefix=".removed-", dir=folder.parent))
    waiting, number = [folder], 0
    while waiting:
        place = waiting.pop()
        with os.scandir(place) as entries:
            for entry in list(entries):
                path = Path(entry.path)
                if not entry.is_dir(follow_symlinks=False):
                    path.unlink()
                    continue
                path.chmod(0o700)
                number += 1
                waiting.append(path.rename(attic / str(number)))
        place.rmdir()
    attic.rmdir()


@contextlib.contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """A new folder of the system's place for such things, removed at the end as well as it can be."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            remove_tree(folder)
