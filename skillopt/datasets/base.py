"""Data loaders: the base class for any source of batches, and the one that reads train, val and test splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt.datasets import checks, generated, ratio, readers, sampling
from skillopt.datasets.audit import audit_choices
from skillopt.datasets.batches import SPLIT_NAMES, BaseDataLoader, BatchSpec, canonical_split
from skillopt.datasets.folders import MissingDataFileError, data_files, only_file, visible
from skillopt.errors import ConfigError, DataError, ResumeMismatchError
from skillopt.types import Item, content_hash
from skillopt.utils.files import safe_name

__all__ = ["SPLIT_MODES", "SPLIT_NAMES", "BaseDataLoader", "BatchSpec", "SplitDataLoader", "canonical_split"]

SPLIT_MODES = ("ratio", "hash", "split_dir")


class SplitDataLoader(BaseDataLoader):
    """Items of a train, a val and a test split.

    `split_mode: split_dir` reads the folders train, val and test of `split_dir`. `split_mode: ratio` cuts the items of
    `data_path` (a file, or a folder with one file) by `split_ratio` and `split_seed`, writes the split to
    `split_output_dir` or `<out_root>/_generated_splits/...` (only in memory if there is neither) and reads it from
    there. `split_mode: hash` does the same, but places each item by its id and `split_seed` alone, so that a file that
    grew is cut again without moving an old item. `limit` above 0 keeps the first n items of each split in their fixed
    order. `id_field` names the id column.
    `split_strict` makes an error of equal inputs in different splits. `split_reset` allows to replace a generated split
    that was cut from other items.

    A subclass overrides `load_split_items` or `load_raw_items` for other file formats. After `setup`: `items(split)`,
    `fingerprint`, and `notices`, sentences for the person who runs it.
    """

    def __init__(  # noqa: PLR0913 - the signature is a public contract
        self,
        split_dir: str = "",
        data_path: str = "",
        split_mode: str = "ratio",
        split_ratio: str = "2:1:7",
        split_seed: int = 42,
        split_output_dir: str = "",
        seed: int = 42,
        limit: int = 0,
        *,
        id_field: str = "id",
        split_strict: bool = False,
        split_reset: bool = False,
    ) -> None:
        self.split_dir = split_dir
        self.data_path = data_path
        self.split_mode = split_mode
        self.split_ratio = split_ratio
        self.split_seed = split_seed
        self.split_output_dir = split_output_dir
        self.seed = seed
        self.limit = limit
        self.id_field = id_field
        self.split_strict = split_strict
        self.split_reset = split_reset
        self.out_root = ""
        self.env_name = "data"
        self.notices: list[str] = []
        self._items: dict[str, tuple[Item, ...]] = {}

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Fill settings left at their defaults from the flat configuration, then read and check all splits.

        Raises ConfigError for a setting and DataError for data that cannot be used.
        """
        super().setup(cfg)
        self._fill_settings(cfg)
        self._check_settings()
        self.notices = []
        splits = self._load_folder(self.split_dir) if self.split_mode == "split_dir" else self._cut()
        ignore = {self.id_field} if self.id_field != "id" else set()
        self.notices += checks.check_splits(splits, strict=self.split_strict, ignore=ignore)
        self.notices += audit_choices([item for items in splits.values() for item in items])
        self._items = {name: items[: self.limit or None] for name, items in splits.items()}
        if self.limit:
            used = ", ".join(f"{name} {len(self._items[name])} of {len(splits[name])}" for name in SPLIT_NAMES)
            self.notices.append(f"limit {self.limit}: only the first items of each split are used ({used}).")

    def set_out_root(self, out_root: str) -> None:
        """Put generated splits under this run folder, whatever the configuration says."""
        self.out_root = str(out_root)

    def items(self, split: str) -> tuple[Item, ...]:
        """Items of a split (or alias), in their fixed order. Raises DataError for an unknown name or before `setup`."""
        name = canonical_split(split)
        if not self._items:
            raise DataError("the data loader has no items yet; call setup(cfg) first.")
        return self._items[name]

    @property
    def split_hashes(self) -> dict[str, str]:
        """Hash of ids and content of each split, in order."""
        return {name: content_hash([item.content for item in self.items(name)]) for name in SPLIT_NAMES}

    @property
    def fingerprint(self) -> str:
        """Hash of all splits; changes when an item in use is added, removed, moved or edited."""
        return content_hash(self.split_hashes)

    def build_train_batch(self, batch_size: int, seed: int) -> BatchSpec:
        """All train items shuffled with `Random(seed)`, the first `batch_size` kept."""
        return self.batch_of("train", "train", seed, sampling.shuffled(self.items("train"), seed)[:batch_size])

    def build_eval_batch(self, env_num: int, split: str, seed: int) -> BatchSpec:
        """The first `env_num` items in file order, all if it is 0 or exceeds the split. The seed decides nothing."""
        items = self.items(split)
        return self.batch_of("eval", split, seed, items[:env_num] if env_num > 0 else items)

    def plan_train_epoch(
        self, *, epoch: int, steps_per_epoch: int, accumulation: int, batch_size: int, seed: int
    ) -> list[BatchSpec]:
        """The training batches of an epoch: every train item once, then refilled batches; see `epoch_slices`."""
        plan = sampling.epoch_slices(
            self.items("train"),
            epoch=epoch,
            batches=steps_per_epoch * accumulation,
            batch_size=batch_size,
            seed=seed,
        )
        return [self.batch_of("train", "train", batch_seed, batch) for batch_seed, batch in plan]

    def batch_of(self, phase: str, split: str, seed: int, items: Sequence[Item]) -> BatchSpec:
        """The batch of these items. Override it where the seed of a batch decides how its items are shown."""
        payload = [item.to_dict() for item in items]
        return BatchSpec(phase, split, seed, len(payload), payload)

    def state_dict(self) -> dict[str, Any]:
        """Fingerprint of the whole data and of each split."""
        return {"fingerprint": self.fingerprint, "splits": self.split_hashes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raise ResumeMismatchError, naming the splits, if the data are not those of `state`."""
        if not state or state.get("fingerprint") == self.fingerprint:
            return
        old = state.get("splits") or {}
        changed = ", ".join(name for name, value in self.split_hashes.items() if old.get(name) != value)
        raise ResumeMismatchError(
            f"the data changed since this run began (split {changed}), so its scores cannot be compared with new ones; "
            "restore the files or start in another out_root."
        )

    def load_split_items(self, split_path: str) -> list[dict[str, Any]]:
        """Item dicts of one split's folder. Override it to read another format.

        Reads the alphabetically first *.json, or else *.jsonl, or else *.csv; raises FileNotFoundError if there is
        none.
        """
        for suffix in (".json", ".jsonl", ".csv"):
            found = data_files(Path(split_path), (suffix,))
            if found:
                others = [path.name for path in data_files(Path(split_path)) if path != found[0]]
                if others:
                    self.notices.append(f"{split_path}: reads {found[0].name} and leaves out {', '.join(others)}.")
                return readers.read_items(found[0], id_field=self.id_field)
        raise MissingDataFileError(f"{split_path}: holds no items; expected a .json, .jsonl or .csv file.")

    def load_raw_items(self, data_path: str) -> list[dict[str, Any]]:
        """Item dicts of the source that ratio mode cuts. Override it to read another format.

        `data_path` is absolute: a file, or a folder with exactly one data file and no folders train, val, test.
        """
        path = Path(data_path)
        if not path.exists():
            raise MissingDataFileError(f"env.data_path: {path} does not exist.")
        if path.is_dir():
            path = only_file(path)
        return readers.read_items(path, id_field=self.id_field)

    def _fill_settings(self, cfg: Mapping[str, Any]) -> None:
        for name, default in _default_settings().items():
            value = cfg.get(name)
            if getattr(self, name) in (default, "", None):
                setattr(self, name, default if value in (None, "") else value)
        self.split_seed = self.split_seed or self.seed
        self.out_root = self.out_root or str(cfg.get("out_root") or "")
        if isinstance(cfg.get("env"), str) and cfg["env"]:
            self.env_name = cfg["env"]

    def _check_settings(self) -> None:
        if self.split_mode not in SPLIT_MODES:
            raise ConfigError(f"env.split_mode is {self.split_mode!r}; expected one of {', '.join(SPLIT_MODES)}.")
        for name in ("split_seed", "seed", "limit"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"env.{name} is {value!r}; expected a whole number.")
        if self.limit < 0:
            raise ConfigError(f"env.limit is {self.limit}; expected 0 (all items) or more.")

    def _load_folder(self, folder: str) -> dict[str, tuple[Item, ...]]:
        if not str(folder).strip():
            raise DataError("env.split_dir is empty; name the folder that holds train, val and test.")
        root = Path(folder)
        if not root.is_dir():
            found = "is not a folder" if root.exists() else "does not exist"
            raise DataError(f"env.split_dir: {root} {found}; name a folder that holds train, val and test.")
        for name in SPLIT_NAMES:
            if not (root / name).is_dir():
                raise DataError(
                    f"{root}: has no folder {name!r}; expected the folders train, val and test (an empty folder test "
                    "means no final test)."
                )
        splits = {}
        for name in SPLIT_NAMES:
            empty_test = name == "test" and not visible(root / name)
            loaded = [] if empty_test else self.load_split_items(str(root / name))
            splits[name] = checks.check_items(loaded, source=str(root / name))
        return splits

    def _cut(self) -> dict[str, tuple[Item, ...]]:
        if not str(self.data_path).strip():
            hint = f"; to read the splits in {self.split_dir}, set split_mode: split_dir" if self.split_dir else ""
            raise DataError(f"env.data_path is empty; name a file of items to cut by split_ratio{hint}.")
        source = Path(self.data_path).absolute()
        weights = ratio.parse_ratio(self.split_ratio)
        items = checks.check_items(self.load_raw_items(str(source)), source=str(source))
        cut = ratio.cut_by_hash if self.split_mode == "hash" else ratio.cut
        splits = cut(items, weights, self.split_seed)
        counts = {name: len(splits[name]) for name in SPLIT_NAMES}
        if not items:
            raise DataError(f"{source}: holds no items.")
        if not counts["train"] or not counts["val"]:
            shares = ", ".join(f"{name} {number}" for name, number in counts.items())
            raise DataError(
                f"{source}: {len(items)} item(s) cut {self.split_ratio} in split_mode {self.split_mode} give {shares}; "
                "train and val need at least one item each, so add items or change env.split_ratio (in split_mode "
                "ratio, 1:1:1 needs three items)."
            )
        folder = self._generated_folder()
        if folder is None:
            return {name: tuple(splits[name]) for name in SPLIT_NAMES}
        manifest = {
            "source_data_path": str(source),
            "split_mode": self.split_mode,
            "split_ratio": self.split_ratio,
            "split_seed": self.split_seed,
            "counts": counts,
            "source_hash": ratio.source_hash(items),
        }
        generated.write_split_folder(folder, splits, manifest, reset=self.split_reset)
        return self._load_folder(str(folder))

    def _generated_folder(self) -> Path | None:
        if self.split_output_dir:
            return Path(self.split_output_dir)
        if not self.out_root:
            return None
        by_hash = "_hash" if self.split_mode == "hash" else ""
        name = f"{self.env_name}_{self.split_ratio.replace(':', '-')}_seed{self.split_seed}{by_hash}"
        return Path(self.out_root) / "_generated_splits" / safe_name(name)


def _default_settings() -> dict[str, Any]:
    blank = SplitDataLoader()
    names = ("split_dir", "data_path", "split_mode", "split_ratio", "split_seed", "split_output_dir", "seed", "limit")
    return {name: getattr(blank, name) for name in (*names, "id_field", "split_strict", "split_reset")}
