"""Cutting one list of items into train, val and test by a ratio."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from skillopt.datasets.sampling import shuffled
from skillopt.errors import ConfigError
from skillopt.types import Item, content_hash

Ratio = tuple[Fraction, Fraction, Fraction]


def parse_ratio(text: Any) -> Ratio:
    """The weights of train, val and test in a text such as `2:1:7` or `0.5:0.2:0.3`.

    Three positive whole numbers, or three positive decimals that add up to exactly 1; empty parts are left out, so
    that a trailing colon does no harm. Raises ConfigError for anything else, and for a number: YAML reads an unquoted
    2:1:7 as one.
    """
    if not isinstance(text, str):
        raise ConfigError(f"env.split_ratio is {text!r}; expected a text such as '2:1:7' (in YAML, with the quotes).")
    parts = [part.strip() for part in text.split(":") if part.strip()]
    whole = all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts)
    decimal = all(re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,9}", part) for part in parts)
    weights = [Fraction(part) for part in parts] if decimal else []
    good = len(weights) == 3 and min(weights) > 0 and (whole or sum(weights) == 1)
    if not good:
        raise ConfigError(
            f"env.split_ratio is {text!r}; expected three positive whole numbers for train, val and test such as "
            "'2:1:7', or three positive decimals with the sum 1 such as '0.5:0.2:0.3'."
        )
    return weights[0], weights[1], weights[2]


def split_counts(total: int, ratio: Ratio) -> tuple[int, int, int]:
    """Sizes of train, val and test by largest remainder: they add up to `total`.

    Each gets the floor of its exact share; what is left goes one each to the largest fractional part, then to the
    larger weight, then to the earlier split.
    """
    shares = [total * weight / sum(ratio) for weight in ratio]
    counts = [int(share) for share in shares]
    order = sorted(range(3), key=lambda i: (counts[i] - shares[i], -ratio[i]))
    for index in order[: total - sum(counts)]:
        counts[index] += 1
    return counts[0], counts[1], counts[2]


def cut(items: Sequence[Item], ratio: Ratio, seed: int) -> dict[str, list[Item]]:
    """Items by split: sorted by id, shuffled with `random.Random(seed).shuffle`, cut in the order train, val, test.

    Sorting first makes membership and order depend on ids and seed only, not on the order in the file.
    """
    order = shuffled(sorted(items, key=lambda item: item.id), seed)
    train, val, _ = split_counts(len(order), ratio)
    return {"train": order[:train], "val": order[train : train + val], "test": order[train + val :]}


def cut_by_hash(items: Sequence[Item], ratio: Ratio, seed: int) -> dict[str, list[Item]]:
    """Items by split, each placed by its own id and the seed alone, so that other items never move it.

    The first 64 bits of SHA-256 of `<seed>:<id>` are a place on a line that the weights share: train first, then val,
    then test. The sizes follow the weights as chance has it. A split is in the order of the places.
    """
    splits: dict[str, list[Item]] = {"train": [], "val": [], "test": []}
    total = sum(ratio)
    for item in sorted(items, key=lambda item: (_place(item.id, seed), item.id)):
        share = Fraction(_place(item.id, seed), 2**64) * total
        name = "train" if share < ratio[0] else "val" if share < ratio[0] + ratio[1] else "test"
        splits[name].append(item)
    return splits


def _place(item_id: str, seed: int) -> int:
    text = f"{seed}:{item_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def source_hash(items: Sequence[Item]) -> str:
    """Hash of the items whatever their order; changes with every item added, removed or edited."""
    return content_hash(sorted(item.content for item in items))
