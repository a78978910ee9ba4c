"""Sample items of SearchQA: invented facts about islands that do not exist, each among documents about other things."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json

SPLITS = {"train": range(8), "val": range(8, 13), "test": range(13, 18)}
_LONG = (3, 9, 15)  # items whose documents are longer than a prompt shows


@dataclass(frozen=True, slots=True)
class _Kind:
    """A question, the document that answers it, and the accepted answers."""

    question: str
    title: str
    fact: str
    answers: tuple[str, ...]


_KINDS = (
    _Kind(
        "Who built the lighthouse of {town}?",
        "The lighthouse of {town}",
        "Sailors know the white lighthouse of {town} from far away. {first} {last}, a {trade}, built it in {year} with "
        "stones from the old harbour wall.",
        ("{first} {last}", "{last}"),
    ),
    _Kind(
        "Below which mountain does the river {river} rise?",
        "{river} (river)",
        "The {river} rises in a moor below Mount {mount} and reaches the sea after forty miles.",
        ("Mount {mount}", "{mount}"),
    ),
    _Kind(
        "In what year was the bridge over the {river} opened to carts?",
        "Bridges of the islands",
        "Carts had to wade until {year}, when the bridge over the {river} was opened; the toll was a penny.",
        ("{year}",),
    ),
    _Kind(
        "Launched in {year}, this ship was the first to bring mail to {town}.",
        "Mail by sea",
        "The first letters came to {town} on board the {ship}, which was launched in {year} and sailed twice a month.",
        ("{ship}",),
    ),
    _Kind(
        "From which plant do the dyers of {town} make their blue?",
        "Dyeing in {town}",
        "The blue cloth of {town} owes its colour to the {plant}, whose leaves are left to rot in tubs for a week.",
        ("{plant}",),
    ),
    _Kind(
        "The fair that ends in the square of {town} begins in this village.",
        "The autumn fair",
        "On the first day the fair sets out from {village} with drums; on the third it ends in the square of {town}.",
        ("{village}", "the village of {village}"),
    ),
)
_FILLER = (
    ("Weather", "Fog is common in spring. The wind turns to the west in the afternoon and dies down at night."),
    ("Ferry times", "The ferry leaves at eight and at four. Bicycles go free; dogs need a ticket of their own."),
    ("Birds", "Terns nest on the flat rocks. Visitors are asked to keep to the marked path until the end of July."),
    ("Recipes", "Boil the barley for an hour, add leeks and smoked eel, and serve the soup with black bread."),
    ("Maps", "The oldest map shows three islands where there are seven, and a sea serpent beside the third."),
)
_WORDS = {
    "town": "Arvik Bremsund Calder Dornach Eskholm Farrow Gullen Hestavoe Inverly Jarlsey Kelpwick Lunnay Merrow "
    "Norsund Ollaby Pendry Quoyle Rasmont",
    "village": "Ashby Birkay Corran Dalsett Elvik Fosseby Grunay Holmra Ivett Jorby Kirn Lathmore Mossay Nesting Orsta "
    "Pirnie Quarff Rumbay",
    "first": "Ada Bruno Celia Dirk Edda Finn Gisela Harald Ilse Jonas Katrin Lorens Maud Nils Ottilie Peder Ragna Sven",
    "last": "Aldane Brockhus Corvin Draven Elstow Fennimore Grindal Haskett Ingram Jessup Kittel Lundgate Marsk Nordal "
    "Oxley Prestwick Ravndal Skelly",
    "trade": "mason smith painter miller cooper weaver baker glazier tanner potter carter roper thatcher joiner sailor "
    "printer tiler founder",
    "river": "Alne Brue Crossa Dwyre Enlow Ferra Glassen Hyle Irva Jell Keth Lorne Minnow Nabb Orrel Pell Quair Rothe",
    "mount": "Ambler Beacon Corrie Dunmore Ettrick Fallon Greywall Hooded Iselin Jorund Knapp Lomar Mirren Nockton "
    "Orrin Pallas Quern Rydal",
    "ship": "Petrel Osprey Dunlin Kestrel Merlin Gannet Curlew Plover Linnet Siskin Avocet Heron Turnstone Godwit "
    "Puffin Whimbrel Fulmar Redshank",
    "plant": "woadwort sea_aster bluebind marsh_flax skyroot kelpflower inkthistle dune_vetch heathbell saltwort_lily "
    "moorberry indigo_sedge stonecress blue_dock tideweed lark_madder fenviolet harebine",
}


def write(folder: Path) -> None:
    """Write `<folder>/<split>/items.json` for train, val and test."""
    for split, numbers in SPLITS.items():
        atomic_write_json(folder / split / "items.json", [_item(split, number) for number in numbers])


def _item(split: str, number: int) -> JsonObject:
    kind, words = _KINDS[number % len(_KINDS)], _words(number)
    return {
        "id": f"sample-{split}-{number + 1:02d}",
        "question": kind.question.format_map(words),
        "context": _context(split, number),
        "answers": [answer.format_map(words) for answer in kind.answers],
    }


def _context(split: str, number: int) -> str:
    """The document with the answer, others of the same place, one that answers for another place, and noise."""
    kind, numbers = number % len(_KINDS), SPLITS[split]
    other = numbers[(numbers.index(number) + 1) % len(numbers)]
    documents = [
        _document(kind, number),
        _document(kind + 2, number),
        _document(kind + 4, number),
        _document(kind, other),
    ]
    documents += [f"[DOC] [TLE] {title} [PAR] {text}" for title, text in _FILLER[number % 3 : number % 3 + 2]]
    random.Random(f"searchqa {number}").shuffle(documents)
    if number in _LONG:
        documents += [f"[DOC] [TLE] {title}, at length [PAR] {' '.join([text] * 15)}" for title, text in _FILLER]
    return " ".join(documents)


def _document(kind: int, number: int) -> str:
    chosen, words = _KINDS[kind % len(_KINDS)], _words(number)
    return f"[DOC] [TLE] {chosen.title.format_map(words)} [PAR] {chosen.fact.format_map(words)}"


def _words(number: int) -> Mapping[str, str]:
    words = {name: texts.split()[number].replace("_", " ") for name, texts in _WORDS.items()}
    return {**words, "year": str(1703 + 11 * number)}
