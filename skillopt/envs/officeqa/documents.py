"""The collection of documents: where it lies, what is in it, and the text of one of them.

The folders are walked once. A name that a model or an item gives is only ever looked up among what was found, so that
nothing outside the folders can be reached, whatever the name looks like.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from skillopt.errors import DataError
from skillopt.model.harness.workspace import link_name

DATA_VARIABLE = "OFFICEQA_DOCS_DIR"
WELL_KNOWN = (
    "data/officeqa_docs_official",
    "data/officeqa_smoke_docs",
    "~/officeqa-sparse/treasury_bulletins_parsed",
    "~/officeqa/treasury_bulletins_parsed",
)
"""Where documents are looked for when neither `env.data_dirs` nor the variable leads to any."""

FETCH = f"hf download databricks/officeqa --repo-type dataset --local-dir {WELL_KNOWN[0]}"
"""The command that fetches the public documents."""

NESTED_FOLDER = "treasury_bulletins_parsed"
TEXTS_FOLDER = "transformed"
PAGES_FOLDER = "jsons"
_MAX_BYTES = 64 * 1024 * 1024
_KEPT_FILES = 32


@dataclass(frozen=True, slots=True)
class Document:
    """One file. `name`: how it is called in prompts and tools, `docs/root_1/…`; `path` is resolved."""

    name: str
    path: Path
    root: int
    relative: str

    @property
    def base(self) -> str:
        """The name without folders."""
        return self.path.name


def split_folders(value: Sequence[str] | str | None) -> list[str]:
    """Folders of a list, or of a text with commas or the system's path separator between them."""
    parts = re.split(f"[,{re.escape(os.pathsep)}]", value) if isinstance(value, str) else value or ()
    return [str(part).strip() for part in parts if str(part).strip()]


def find_roots(data_dirs: Sequence[str] | str | None, environ: Mapping[str, str]) -> list[Path]:
    """The folders of documents that exist: those asked for and of the variable, else the well-known ones.

    A folder with a child `transformed`, or one in `treasury_bulletins_parsed`, stands for that child. Raises DataError
    when there is none.
    """
    asked = [*split_folders(data_dirs), *split_folders(environ.get(DATA_VARIABLE))]
    roots = _existing(asked) or _existing(WELL_KNOWN)
    if not roots:
        looked = ", ".join(asked) or "nothing is set"
        raise DataError(
            f"env.data_dirs: there is no folder of documents ({looked}); set env.data_dirs or {DATA_VARIABLE} to the "
            f"folder with the text files; those of the public data (access on request): {FETCH}"
        )
    return roots


def _existing(names: Sequence[str]) -> list[Path]:
    folders = [Path(name).expanduser() for name in names]
    found = [folder.resolve() for folder in folders if folder.is_dir()]
    return list(dict.fromkeys(_texts(folder) for folder in found))


def _texts(folder: Path) -> Path:
    for child in (folder / TEXTS_FOLDER, folder / NESTED_FOLDER / TEXTS_FOLDER):
        if child.is_dir():
            return child.resolve()
    return folder


class Library:
    """The documents of some folders, found once and shared by all items. Safe to use from many threads.

    `hidden`: folders whose files are left out, such as those that hold right answers.
    """

    def __init__(self, roots: Sequence[Path], hidden: Sequence[Path] = ()) -> None:
        self.roots = tuple(roots)
        self._hidden = tuple(path.resolve() for path in hidden)
        self.documents = tuple(doc for number, root in enumerate(roots, 1) for doc in self._scan(number, root))
        self._by_base: dict[str, list[Document]] = {}
        for doc in self.documents:
            self._by_base.setdefault(doc.base, []).append(doc)
        self._lock = threading.Lock()
        self._texts: OrderedDict[Path, list[str]] = OrderedDict()
        self._digests: dict[Path, str] = {}

    def named(self, file: str) -> list[Document]:
        """The documents with this file name, of the first folder that has any; folders in the name do not count."""
        found = self._by_base.get(PureWindowsPath(file).name, [])
        return [doc for doc in found if doc.root == found[0].root]

    def lines(self, document: Document) -> list[str]:
        """The lines of a document. Raises DataError when it cannot be read any more."""
        with self._lock:
            if document.path in self._texts:
                self._texts.move_to_end(document.path)
                return self._texts[document.path]
        lines = _read(document.path).decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        if lines[-1] == "":
            lines.pop()
        with self._lock:
            self._texts[document.path] = lines
            while len(self._texts) > _KEPT_FILES:
                self._texts.popitem(last=False)
        return lines

    def digest(self, path: Path) -> str:
        """SHA-256 of a file, computed once. Raises DataError when it cannot be read."""
        if path not in self._digests:
            self._digests[path] = hashlib.sha256(_read(path)).hexdigest()
        return self._digests[path]

    def _scan(self, number: int, root: Path) -> Iterator[Document]:
        for parent, folders, files in os.walk(root):
            here = Path(parent)
            folders[:] = sorted(name for name in folders if self._open(here / name, root))
            for name in sorted(files):
                path = (here / name).resolve()
                if name.startswith(".") or not path.is_file() or not self._inside(path, root):
                    continue
                relative = (here / name).relative_to(root).as_posix()
                yield Document(f"{link_name(number)}/{relative}", path, number, relative)

    def _open(self, folder: Path, root: Path) -> bool:
        pages = folder.parent == root and folder.name == PAGES_FOLDER
        return not folder.name.startswith(".") and not pages and self._inside(folder.resolve(), root)

    def _inside(self, path: Path, root: Path) -> bool:
        return path.is_relative_to(root) and not any(path.is_relative_to(hidden) for hidden in self._hidden)


def _read(path: Path) -> bytes:
    if path.resolve() != path:
        raise DataError(f"{path}: became a link after the run began; restore the document.")
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path}: the document cannot be read ({error.strerror}).") from None
    if len(data) > _MAX_BYTES:
        raise DataError(f"{path}: is larger than {_MAX_BYTES >> 20} MiB; split the document.")
    return data
