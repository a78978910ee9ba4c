"""Sample data of the environment `alfworld`: eighteen small, real games, one of each type in each split.

The lists of items are plain data and shipped. The games are made on the person's machine, because they hold the rules
of the package `alfworld`. A room of a few receptacles and things is drawn from a seed, and with it a way to do the
task. Same version of the package, same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt.errors import MissingExtraError
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, atomic_write_text

GAMES_FOLDER = "games"
"""Folder of the games, beside the folders of the splits."""

SPLITS = ("train", "val", "test")
_SEED = 7
_IGNORE_ALL = "*\n"  # games are made, not committed

# kind, whether it can be opened
_PLACES = (
    ("CounterTop", False),
    ("DiningTable", False),
    ("SideTable", False),
    ("Shelf", False),
    ("Cabinet", True),
    ("Drawer", True),
)
_APPLIANCES = (("Fridge", True), ("Microwave", True), ("SinkBasin", False))
_FOOD = ("Apple", "Bread", "Egg", "Lettuce", "Potato", "Tomato")
_DISHES = ("Bowl", "Cup", "Mug", "Plate")
_OTHERS = ("Book", "CellPhone", "KeyChain", "Pencil", "RemoteControl", "Watch")
_IN_THE_RULES = ("Knife", "ButterKnife")  # kinds that the rules of the game name

_HELD = "(exists (?a - agent ?o - object) (and (objectType ?o {thing}Type) (holds ?a ?o)))"
_LIT = (
    "(exists (?t - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?t DeskLampType) (toggleable ?t) "
    "(isToggled ?t) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?t ?r)))"
)
_PLACED = (
    "(exists (?o - object ?r - receptacle) (and (objectType ?o {thing}Type) (receptacleType ?r {place}Type) "
    "(inReceptacle ?o ?r){state}))"
)
_BOTH_PLACED = (
    "(exists (?o - object ?p - object ?r - receptacle) (and (not (= ?o ?p)) (objectType ?o {thing}Type) "
    "(objectType ?p {thing}Type) (receptacleType ?r {place}Type) (inReceptacle ?o ?r) (inReceptacle ?p ?r)))"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type of task. `appliance` and `verb`: what is done to the thing on the way; `state`: what it is then."""

    name: str
    goal: str
    words: str
    things: Sequence[str]
    appliance: str = ""
    verb: str = ""
    state: str = ""
    number: int = 1


_KINDS = (
    _Kind("pick_and_place_simple", _PLACED, "bring a {thing} to the {place}", _OTHERS + _DISHES),
    _Kind("look_at_obj_in_light", f"{_LIT} {_HELD}", "look at the {thing} in the light of the desklamp", _OTHERS),
    _Kind(
        "pick_clean_then_place_in_recep",
        _PLACED,
        "put a washed {thing} in or on the {place}",
        _DISHES,
        "SinkBasin",
        "clean",
        "isClean",
    ),
    _Kind(
        "pick_heat_then_place_in_recep",
        _PLACED,
        "put a hot {thing} in or on the {place}",
        _FOOD,
        "Microwave",
        "heat",
        "isHot",
    ),
    _Kind(
        "pick_cool_then_place_in_recep",
        _PLACED,
        "put a cold {thing} in or on the {place}",
        _FOOD,
        "Fridge",
        "cool",
        "isCool",
    ),
    _Kind(
        "pick_two_obj_and_place", _BOTH_PLACED, "bring two things, each a {thing}, to the {place}", _OTHERS, number=2
    ),
)


@dataclass(frozen=True, slots=True)
class _Room:
    """A drawn game: receptacles with what is in each, the task, and its place (blank: none is asked for)."""

    kind: _Kind
    thing: str
    place: str
    receptacles: tuple[tuple[str, bool], ...]
    contents: tuple[tuple[str, int], ...]
    """Kind of each thing and the index of the receptacle that it is in; those of the task come first."""


def items() -> dict[str, list[JsonObject]]:
    """The items of each split, in their order."""
    return {
        split: [
            {"id": f"{split}:{number:04d}", "gamefile": f"{_folder(split, room)}/game.tw-pddl", "task_type": kind}
            for number, (kind, room) in enumerate(_rooms(split))
        ]
        for split in SPLITS
    }


def write_items(folder: Path) -> None:
    """Write the lists of items, `<split>/items.json`."""
    for split, rows in items().items():
        atomic_write_json(folder / split / "items.json", rows)


def write_games(folder: Path) -> None:
    """Write the games. Raises MissingExtraError without the package `alfworld`."""
    domain, grammar = _rules()
    atomic_write_text(folder / GAMES_FOLDER / ".gitignore", _IGNORE_ALL)
    for split in SPLITS:
        for _, room in _rooms(split):
            place = folder / _folder(split, room)
            walkthrough = _walkthrough(room)
            game = {
                "pddl_domain": domain,
                "grammar": grammar.replace("UNKNOWN GOAL", _words(room)),
                "pddl_problem": _problem(room),
                "solvable": True,
                "walkthrough": walkthrough,
            }
            atomic_write_text(place / "game.tw-pddl", json.dumps(game))
            atomic_write_json(place / "traj_data.json", _notes(room, walkthrough))


def write(folder: Path) -> None:
    """Write the lists of items and the games: about 1 MB. Raises MissingExtraError without the package `alfworld`."""
    write_games(folder)
    write_items(folder)


def _rules() -> tuple[str, str]:
    """Domain and grammar of the game, as the package holds them."""
    from importlib.util import find_spec

    found = find_spec("alfworld")  # not imported: that would make a folder in the person's home
    if found is None or found.origin is None:
        raise MissingExtraError('the sample games need the package alfworld; run: pip install "skillopt[alfworld]"')
    data = Path(found.origin).parent / "data"
    return (data / "alfred.pddl").read_text(encoding="utf-8"), (data / "alfred.twl2").read_text(encoding="utf-8")


def _rooms(split: str) -> list[tuple[str, _Room]]:
    return [(kind.name, _draw(kind, SPLITS.index(split))) for kind in _KINDS]


def _draw(kind: _Kind, turn: int) -> _Room:
    """The room of a kind's game number `turn`: things differ between the turns, so no task comes twice."""
    rng = random.Random(f"{_SEED}:{kind.name}:{turn}")
    thing = kind.things[(turn + _KINDS.index(kind)) % len(kind.things)]
    places = rng.sample(_PLACES, 4)
    receptacles = (*places, *_APPLIANCES)
    place = "" if kind.name == "look_at_obj_in_light" else places[0][0]
    start = [rng.randrange(1, 4) for _ in range(kind.number)]
    contents = [(thing, where) for where in start]
    if not place:
        contents.append(("DeskLamp", next(index for index, (_, opens) in enumerate(places) if not opens)))
    strangers = rng.sample([other for other in _FOOD + _DISHES + _OTHERS if other != thing], 3)
    contents += [(other, rng.randrange(len(receptacles))) for other in strangers]
    return _Room(kind, thing, place, receptacles, tuple(contents))


def _folder(split: str, room: _Room) -> str:
    return f"{GAMES_FOLDER}/{split}/{room.kind.name}-{room.thing}-{room.place or 'DeskLamp'}"


def _words(room: _Room) -> str:
    return room.kind.words.format(thing=room.thing.lower(), place=room.place.lower())


def _walkthrough(room: _Room) -> list[str]:
    """One way to do the task, in the words of the game."""
    acts: list[str] = []
    opened: set[int] = set()

    def go(index: int) -> str:
        name = f"{room.receptacles[index][0].lower()} 1"
        acts.append(f"go to {name}")
        if room.receptacles[index][1] and index not in opened:
            opened.add(index)
            acts.append(f"open {name}")
        return name

    for number, (_, where) in enumerate(room.contents[: room.kind.number]):
        thing = f"{room.thing.lower()} {_label(room, number)}"
        acts.append(f"take {thing} from {go(where)}")
        if room.kind.appliance:
            index = [kind for kind, _ in room.receptacles].index(room.kind.appliance)
            acts.append(f"{room.kind.verb} {thing} with {go(index)}")
        if room.place:
            acts.append(f"move {thing} to {go(0)}")
        else:
            lamp = next(where for kind, where in room.contents if kind == "DeskLamp")
            if lamp != where:
                go(lamp)
            acts.append("use desklamp 1")
    return acts


def _label(room: _Room, number: int) -> int:
    """The number that the game gives to a thing: it counts those of a kind from the last."""
    return room.kind.number - number


def _problem(room: _Room) -> str:
    """The room as a planning problem of the game's domain."""
    count = len(room.receptacles)
    things = [(f"{kind}_bar__plus_{50 + n:03d}_dot_00", kind, where) for n, (kind, where) in enumerate(room.contents)]
    object_kinds = sorted({kind for _, kind, _ in things} | set(_IN_THE_RULES))
    declared = ["agent1 - agent", *(f"{_location(n)} - location" for n in range(count + 1))]
    declared += [f"{kind}Type - rtype" for kind in sorted({kind for kind, _ in room.receptacles})]
    declared += [f"{kind}Type - otype" for kind in object_kinds]
    declared += [f"{_receptacle(room, n)} - receptacle" for n in range(count)]
    declared += [f"{name} - object" for name, _, _ in things]
    facts = ["(= (total-cost) 0)", f"(atLocation agent1 {_location(count)})"]
    for n, (kind, opens) in enumerate(room.receptacles):
        name = _receptacle(room, n)
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {_location(n)})"]
        facts += [f"(openable {name})"] if opens else []
        facts += [f"(canContain {kind}Type {other}Type)" for other in object_kinds]
    for name, kind, where in things:
        facts += [f"(objectType {name} {kind}Type)", f"(inReceptacle {name} {_receptacle(room, where)})"]
        facts += [f"(objectAtLocation {name} {_location(where)})"]
        facts += [f"({fact} {name})" for fact in _properties(kind)]
    far = [(a, b) for a in range(count + 1) for b in range(count + 1) if a != b]
    facts += [f"(= (distance {_location(a)} {_location(b)}) 1)" for a, b in far]
    state = f" ({room.kind.state} ?o)" if room.kind.state else ""
    goal = room.kind.goal.format(thing=room.thing, place=room.place, state=state)
    parts = ("(:domain alfred)", _block("objects", declared), _block("init", facts), f"(:goal (and {goal}))")
    return "\n".join(["(define (problem room)", *parts, "(:metric minimize (total-cost))", ")", ""])


def _block(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"(:{name}", *lines, ")"])


def _location(number: int) -> str:
    return f"loc_bar_{number}_bar_0_bar_0_bar_0"


def _receptacle(room: _Room, number: int) -> str:
    kind = room.receptacles[number][0]
    if kind == "SinkBasin":
        return f"Sink_bar__plus_{number:02d}_dot_00_bar_SinkBasin"
    return f"{kind}_bar__plus_{number:02d}_dot_00"


def _properties(kind: str) -> tuple[str, ...]:
    if kind == "DeskLamp":
        return ("toggleable",)
    if kind in _FOOD:
        return ("pickupable", "heatable", "coolable", "cleanable")
    return ("pickupable", "cleanable") if kind in _DISHES else ("pickupable",)


def _notes(room: _Room, walkthrough: Sequence[str]) -> JsonObject:
    """What lies beside a game: the task and how it can be done, in the form of the published data."""
    lamp = "" if room.place else "DeskLamp"
    return {
        "task_type": room.kind.name,
        "pddl_params": {
            "object_target": room.thing,
            "parent_target": room.place,
            "toggle_target": lamp,
            "mrecep_target": "",
            "object_sliced": False,
        },
        "turk_annotations": {"anns": [{"task_desc": f"{_words(room)}.", "high_descs": list(walkthrough)}]},
        "plan": {"high_pddl": [_planned(action) for action in walkthrough]},
        "scene": {"floor_plan": "SampleRoom", "scene_num": 0},
    }


def _planned(action: str) -> JsonObject:
    verb, *rest = action.replace("go to", "goto").replace(" 1", "").replace(" 2", "").split()
    return {"discrete_action": {"action": verb, "args": [w for w in rest if w not in ("from", "to", "with")]}}
