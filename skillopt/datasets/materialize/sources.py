"""Where the rows of a benchmark come from: a file or folder of this machine, or a data set of the Hugging Face hub.

Both end as files of this machine, so that everything is read one way and every file has a checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from skillopt.datasets.materialize.tables import TABLE_SUFFIXES, Row, table_rows
from skillopt.errors import DataError, MissingExtraError
from skillopt.types import JsonObject

HUB = "https://huggingface.co/datasets"
ARCHIVES = (".tar.gz", ".tgz")
_REPO = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")
_NOTES_OF_DATASETS = frozenset({"dataset_info.json", "dataset_dict.json", "state.json"})
_UNPACKED_BYTES = 8 * 1024**3
_UNPACKED_FILES = 200_000


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row, the file that it stands in, and its number in it from 1. `name`: the file's path inside the source."""

    data: Row
    path: Path
    name: str
    number: int

    @property
    def where(self) -> str:
        """The place in words."""
        return f"{self.name}: row {self.number}"


@dataclass(frozen=True, slots=True)
class Source:
    """Files of a source. `given`: its name or path; `revision`: the exact one on the hub, else blank."""

    given: str
    revision: str
    root: Path
    files: tuple[Path, ...]

    def rows(self) -> Iterator[SourceRow]:
        """Rows of all files, in the order of their names."""
        for path in self.files:
            for number, row in enumerate(table_rows(path), 1):
                yield SourceRow(row, path, self.name_of(path), number)

    def name_of(self, path: Path) -> str:
        """Path of a file inside the source, with forward slashes."""
        return path.relative_to(self.root).as_posix()

    def checksums(self) -> list[JsonObject]:
        """Name, size and SHA-256 of each file that rows are read from."""
        return [
            {"name": self.name_of(path), "bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in self.files
        ]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files of a source matter. `hub`: patterns of files to fetch; `local`: patterns tried one after another."""

    hub: tuple[str, ...]
    local: tuple[str, ...] = ()


@contextlib.contextmanager
def open_source(given: str, revision: str, wanted: Wanted) -> Iterator[Source]:
    """The source named `given`: a path of this machine when there is one, else `owner/name` on the hub.

    Raises DataError when there is no such thing, or nothing in it to read, and MissingExtraError when the hub is meant
    and the package for it is missing. An archive is unpacked into a folder that is gone at the end.
    """
    with contextlib.ExitStack() as stack:
        path, exact = Path(given).expanduser(), ""
        if not path.exists():
            path, exact = _fetched(given, revision, wanted.hub)
        elif revision:
            raise DataError(f"{given}: is on this machine and has no revisions; leave --revision out.")
        if path.is_dir() and not _matching(path, wanted.local):
            archives = [file for file in sorted(path.rglob("*")) if file.name.lower().endswith(ARCHIVES)]
            path = archives[0] if len(archives) == 1 else path
        if path.name.lower().endswith(ARCHIVES):
            room = stack.enter_context(tempfile.TemporaryDirectory(prefix="skillopt-"))
            unpack(path, Path(room))
            path = Path(room)
        root, files = (path, _files(path, wanted.local)) if path.is_dir() else (path.parent, (path,))
        if not files:
            raise DataError(f"{given}: holds no data; expected files that end in {', '.join(TABLE_SUFFIXES)}.")
        yield Source(given, exact, root, files)


def unpack(archive: Path, folder: Path) -> None:
    """The plain files of a tar archive. Raises DataError for links, paths that lead out, and what is far too large."""
    left, files = _UNPACKED_BYTES, 0
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isdir():
                    continue
                name = PurePosixPath(member.name)
                if not member.isfile() or name.is_absolute() or ".." in name.parts or "\\" in member.name:
                    raise DataError(f"{archive}: {member.name!r} is a link or leads out of the archive; not unpacked.")
                left, files = left - member.size, files + 1
                if left < 0 or files > _UNPACKED_FILES:
                    raise DataError(f"{archive}: unpacks to more than {_UNPACKED_BYTES:,} bytes; not unpacked.")
                stream = tar.extractfile(member)
                if stream is not None:
                    _copy(stream, folder.joinpath(*name.parts))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{archive}: cannot be unpacked ({error}).") from error


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _copy(stream: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        while block := stream.read(1 << 20):
            target.write(block)


def _matching(root: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Files of the first pattern that matches any."""
    for pattern in patterns:
        found = tuple(path for path in sorted(root.glob(pattern)) if _is_data(path, root))
        if found:
            return found
    return ()


def _files(root: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Files of the first pattern that matches, else all of one kind: the first of `TABLE_SUFFIXES` that is there."""
    return _matching(root, (*patterns, *(f"**/*{suffix}" for suffix in TABLE_SUFFIXES)))


def _is_data(path: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
    note = path.name in _NOTES_OF_DATASETS or path.match("cache-*.arrow")
    return path.is_file() and not hidden and not note


def _fetched(repo: str, revision: str, patterns: Sequence[str]) -> tuple[Path, str]:
    """Folder with the files of a data set on the hub, and the exact revision (commit) that they are of."""
    if not _REPO.fullmatch(repo):
        raise DataError(f"{repo}: no such file or folder, and no name of a data set on the hub (owner/name).")
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError:
        raise MissingExtraError(
            f'{repo}: fetching it needs the package datasets; run: pip install "skillopt[datasets]"'
        ) from None
    try:
        exact = str(HfApi().dataset_info(repo, revision=revision or None).sha)
        folder = snapshot_download(repo, repo_type="dataset", revision=exact, allow_patterns=list(patterns))
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise DataError(
            f"{repo}: cannot be fetched from {HUB} ({type(error).__name__}: {reason}). Check name, revision "
            "and network; if access has to be granted, accept the terms on its page and sign in with `hf auth login`. "
            "A copy on this machine is read with --source PATH."
        ) from error
    return Path(folder), exact
