"""Small sources and manifests of each benchmark, in the form in which they are published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillopt.datasets.materialize import BENCHMARKS, Order, materialize
from skillopt.datasets.materialize.build import Materialized

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 30


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def read_split(folder: Path, split: str) -> Any:
    return json.loads((folder / split / "items.json").read_text(encoding="utf-8"))


class Case:
    """A folder with a manifest and a source of one benchmark."""

    def __init__(self, name: str, root: Path) -> None:
        self.benchmark, self.root = BENCHMARKS[name], root
        self.manifest, self.output = root / "data" / f"{name}_ids", root / "data" / f"{name}_split"

    def ids(self, train: Sequence[Any], val: Sequence[Any], test: Sequence[Any], field: str = "id") -> None:
        for split, ids in (("train", train), ("val", val), ("test", test)):
            rows = [entry if isinstance(entry, dict) else {field: entry} for entry in ids]
            write_json(self.manifest / split / "items.json", rows)

    def about(self, **info: Any) -> None:
        write_json(self.manifest / "split_manifest.json", info)

    def make(self, source: Path | str, *, force: bool = False, **more: Any) -> Materialized:
        order = Order(self.manifest, self.output, str(source), force=force)
        return materialize(self.benchmark, order, **more)

    @staticmethod
    def rows(folder: Path, split: str) -> Any:
        return read_split(folder, split)

    def split(self, split: str) -> Any:
        return read_split(self.output, split)

    def written(self) -> Any:
        return json.loads((self.output / "split_manifest.json").read_text(encoding="utf-8"))

    def left(self) -> list[str]:
        """Names beside the output folder."""
        return sorted(path.name for path in self.output.parent.iterdir())


def trivia(*keys: str) -> list[dict[str, Any]]:
    return [
        {"key": key, "question": f"Who is {key}?", "context": f"[DOC] {key} is {key}.", "answers": [key], "labels": 1}
        for key in keys
    ]
