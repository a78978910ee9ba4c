"""Which documents and pages belong to an item, and which of them its target may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from skillopt.datasets.base import SPLIT_NAMES
from skillopt.envs.officeqa.documents import Document, Library
from skillopt.envs.officeqa.pages import PageShelf
from skillopt.envs.officeqa.rows import page_hints
from skillopt.errors import DataError
from skillopt.types import Item, content_hash

Page = tuple[str, str]
"""Title and text of a parsed page."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The documents and parsed pages under one kind of retrieval; `retrieval` is blank where no documents are read."""

    retrieval: str
    library: Library
    shelf: PageShelf

    @classmethod
    def none(cls) -> Sources:
        """No documents at all."""
        return cls("", Library(()), PageShelf(()))

    @classmethod
    def find(cls, retrieval: str, roots: Sequence[Path], hidden: Sequence[Path]) -> Sources:
        """The documents in `roots`, without those in `hidden`."""
        return cls(retrieval, Library(roots, hidden), PageShelf(roots))

    @property
    def limited(self) -> bool:
        """Whether a target sees the files of its own item only."""
        return self.retrieval in ("oracle", "restricted")

    def right(self, item: Mapping[str, Any]) -> list[Document]:
        """The documents that an item names."""
        found = [doc for file in item["source_files"] for doc in self.library.named(file)]
        return list(dict.fromkeys(found))

    def allowed(self, item: Mapping[str, Any]) -> Sequence[Document]:
        """The documents that the item's target may look into."""
        return self.right(item) if self.limited else self.library.documents

    def pages(self, item: Mapping[str, Any]) -> list[Page]:
        """The pages that the target is shown. Raises DataError for a page that is not there."""
        if self.retrieval != "oracle":
            return []
        found = [(file, number, self.shelf.file_of(file)) for file, number in page_hints(item)]
        return [
            (f"Page {number} of {PureWindowsPath(file).name}", self.shelf.page(path, number))
            for file, number, path in found
            if path is not None
        ]

    def digest(self, item: Mapping[str, Any]) -> str:
        """Hash of what the item's target may see, blank where that is not the item's own."""
        if not self.limited:
            return ""
        files = [(doc.name, self.library.digest(doc.path)) for doc in self.right(item)]
        parsed = [self.shelf.file_of(file) for file, _ in page_hints(item)] if self.retrieval == "oracle" else []
        pages = [self.library.digest(path) for path in dict.fromkeys(parsed) if path is not None]
        return content_hash(files, pages)[:16]

    def digest_of_all(self) -> str:
        """Hash of every document where all may be looked into, else blank."""
        if self.retrieval != "open":
            return ""
        return content_hash([(doc.name, self.library.digest(doc.path)) for doc in self.library.documents])

    def check(self, item: Item) -> None:
        """Raise DataError for an item whose files or parsed pages are not there: it is never given all of them."""
        if not self.limited:
            return
        if not item.data["source_files"]:
            raise DataError(
                f"item {item.id!r}: field 'source_files' is empty; set env.retrieval=open to let all files be searched."
            )
        roots = ", ".join(map(str, self.library.roots))
        for file in item.data["source_files"]:
            if not self.library.named(file):
                raise DataError(
                    f"item {item.id!r}: the file {file!r} of 'source_files' is not in {roots}; add it, or set "
                    "env.data_dirs to the folder that has it."
                )
        for file, number in page_hints(item.data) if self.retrieval == "oracle" else ():
            if self.shelf.file_of(file) is None:
                raise DataError(
                    f"item {item.id!r}: page {number} of {file!r} has no parsed form (jsons/*.json) beside {roots}; "
                    "add it, or set env.retrieval=restricted to do without the right pages."
                )


def answer_folders(split_dir: str, out_root: str, data_path: str) -> tuple[Path, ...]:
    """Where right answers or results lie: no target may look there."""
    splits = [Path(split_dir) / name for name in SPLIT_NAMES] if split_dir else []
    return tuple([*splits, *(Path(name) for name in (out_root, data_path) if name)])
