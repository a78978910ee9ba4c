"""What must hold for items and splits before anything is spent on them.

Errors: an id that is unusable or used twice, an empty train or val split, one id in two splits. Warnings (errors if
`strict`): items of different splits that ask for the same thing under different ids.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from skillopt.errors import DataError
from skillopt.types import Item, canonical_json

MAX_ID_LENGTH = 512
_NAMED = 10
# Fields that tell what is right, or where an item comes from, and not what it asks for.
_NOT_INPUT = frozenset(
    {
        *("answer", "answers", "reference", "references", "label", "labels", "target", "targets", "gold", "golds"),
        *("ground_truth", "expected", "output", "outputs", "solution", "split", "source", "category", "difficulty"),
    }
)
_EDGE_MARKS = ".,;:!?\"'“”‘’()[]"


def check_id(value: Any, where: str) -> str:
    """The id as text. Raises DataError, naming `where`, for ids that cannot be used.

    Usable is any text of 1 to 512 characters without control characters, and any whole number. Ids never become paths
    as they are: `skillopt.utils.files.safe_name` encodes them.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise DataError(f"{where}: the id is {value!r}; expected text or a whole number.")
    text = str(value)
    if not text.strip():
        raise DataError(f"{where}: the id is empty; give every item an id.")
    if len(text) > MAX_ID_LENGTH:
        raise DataError(f"{where}: the id has {len(text)} characters; expected at most {MAX_ID_LENGTH}.")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text):
        raise DataError(f"{where}: the id {text!r} holds a control character; expected printable text.")
    return text


def refuse_duplicates(named: Iterable[tuple[str, str]]) -> None:
    """Raise DataError if an id stands twice in (id, place) pairs, naming both places."""
    places: dict[str, str] = {}
    for item_id, where in named:
        if item_id in places:
            raise DataError(f"{where}: the id {item_id!r} is already used at {places[item_id]}; ids must be unique.")
        places[item_id] = where


def check_items(items: Sequence[Mapping[str, Any]], *, source: str) -> tuple[Item, ...]:
    """Items as values, in the same order. `source` names where they come from in errors.

    Raises DataError for an entry that is no mapping or has no usable id, and for duplicate ids with both positions.
    """
    checked: list[Item] = []
    for number, item in enumerate(items, 1):
        where = f"{source}: item {number}"
        if not isinstance(item, Mapping):
            raise DataError(f"{where}: expected a mapping with an 'id', found {type(item).__name__}.")
        if "id" not in item:
            raise DataError(f"{where}: has no 'id'.")
        checked.append(Item(check_id(item["id"], where), dict(item)))
    refuse_duplicates((item.id, f"{source}: item {number}") for number, item in enumerate(checked, 1))
    return tuple(checked)


def check_splits(
    splits: Mapping[str, Sequence[Item]], *, strict: bool = False, ignore: Collection[str] = ()
) -> list[str]:
    """Notices about splits that can be trained on; `splits` maps `train`, `val` and `test` to their items.

    Raises DataError if train or val is empty or if an id stands in two splits. An empty test split gives a notice.
    Items of two splits that have the same input up to case, white space and punctuation at the edges of words give a
    notice with their ids, an error if `strict`. Fields in `ignore` and those that hold answers are not part of an
    input.
    """
    for name in ("train", "val"):
        if not splits.get(name):
            raise DataError(f"split {name}: has no items; training needs at least one in train and in val.")
    for first, second in combinations(splits, 2):
        shared = sorted({item.id for item in splits[first]} & {item.id for item in splits[second]})
        if shared:
            raise DataError(
                f"splits {first} and {second} share {len(shared)} id(s): {_listing(shared)}; "
                "an item may stand in one split only."
            )
    notices = [] if splits.get("test") else ["split test: has no items, so there is no final test."]
    same = list(_same_inputs(splits, ignore))
    if same and strict:
        raise DataError(same[0])
    return notices + same


def _same_inputs(splits: Mapping[str, Sequence[Item]], ignore: Collection[str]) -> Iterator[str]:
    by_input = {name: _by_input(items, ignore) for name, items in splits.items()}
    for first, second in combinations(splits, 2):
        shared = [key for key in by_input[first] if key in by_input[second]]
        if shared:
            pairs = [f"{by_input[first][key]} = {by_input[second][key]}" for key in shared]
            yield (
                f"splits {first} and {second} hold {len(shared)} item(s) with the same input under different ids "
                f"({first} = {second}): {_listing(pairs)}; remove one of each pair, or scores on {second} are too high."
            )


def _by_input(items: Sequence[Item], ignore: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        found.setdefault(_folded_input(item, ignore), item.id)
    return found


def _folded_input(item: Item, ignore: Collection[str]) -> str:
    own = {key: value for key, value in item.data.items() if key != "id" and key not in ignore}
    inputs = {key: value for key, value in own.items() if key.casefold() not in _NOT_INPUT}
    try:
        return canonical_json({key: _fold(value) for key, value in (inputs or own).items()})
    except RecursionError:
        raise DataError(f"item {item.id!r}: its data are nested too deeply.") from None


def _fold(value: Any) -> Any:
    if isinstance(value, str):
        words = (word.strip(_EDGE_MARKS) for word in unicodedata.normalize("NFC", value).casefold().split())
        return " ".join(word for word in words if word) or value
    if isinstance(value, Mapping):
        return {str(key): _fold(entry) for key, entry in value.items()}
    return [_fold(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _listing(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
