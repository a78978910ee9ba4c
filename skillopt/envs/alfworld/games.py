"""Where a game's files are, of which type its task is, and what its makers wrote about the right way to do it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt.datasets.materialize.games import DATA_VARIABLE, USUAL_ROOT
from skillopt.errors import DataError, SkillOptError
from skillopt.types import Item
from skillopt.utils.files import read_text

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
OTHER = "other"
SUFFIX = ".tw-pddl"

_SHORT_NAMES = {"pick_and_place": "pick_and_place_simple"}
_DESCRIPTIONS = 3
_STEPS = 12


def game_path(item: Item, root: Path) -> Path:
    """The game file of an item.

    A relative one is inside `root`; an absolute one, also by `~` or `$NAME`, is taken as the data says. Raises
    DataError, naming item and field, for a missing one, a path that leads out of the root, or no game file.
    """
    value = item.data.get("gamefile")
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"item {item.id!r}: field 'gamefile' is missing or empty; expected the path of a game file.")
    if not value.endswith(SUFFIX) or "\0" in value:
        raise DataError(f"item {item.id!r}: gamefile {value!r} is not a game; expected a path that ends in {SUFFIX}.")
    path = Path(_expanded(value))
    if path.is_absolute():
        return path
    inside = Path(os.path.normpath(root / path))  # links inside the root are its owner's business
    if not inside.is_relative_to(os.path.normpath(root)):
        raise DataError(
            f"item {item.id!r}: gamefile {value!r} leads out of the data folder; expected a path inside it."
        )
    return inside


def _expanded(value: str) -> str:
    if re.match(rf"\$({DATA_VARIABLE}\b|\{{{DATA_VARIABLE}\}})", value) and DATA_VARIABLE not in os.environ:
        value = re.sub(r"^\$\{?\w+\}?", lambda _: USUAL_ROOT, value)
    return str(Path(os.path.expandvars(value)).expanduser()) if value[:1] in "~$" else value


def task_type(data: Mapping[str, Any]) -> str:
    """The type of an item's task: what it says, else what the path of its game says, else `other`."""
    said = str(data.get("task_type") or "")
    if said:
        return _SHORT_NAMES.get(said, said)
    path = str(data.get("gamefile") or "")
    found = (kind for kind in (*TASK_TYPES, *_SHORT_NAMES) if kind in path)
    kind = next(found, OTHER)
    return _SHORT_NAMES.get(kind, kind)


def reference_text(game: Path) -> str:
    """What `traj_data.json` beside a game says about its task, for analysts; empty when there is no such file."""
    try:
        data = json.loads(read_text(game.parent / "traj_data.json"))
    except (SkillOptError, OSError, ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    people = [person for person in _list(_map(data.get("turk_annotations")).get("anns")) if isinstance(person, dict)]
    steps = [str(step) for person in people[:1] for step in _list(person.get("high_descs"))]
    scene = _map(data.get("scene"))
    parts = [
        ("Task type", str(data.get("task_type") or "")),
        ("Descriptions by people", _lines([str(person.get("task_desc") or "") for person in people][:_DESCRIPTIONS])),
        ("Steps by people", _lines(steps[:_STEPS])),
        ("Parameters", _pairs(_map(data.get("pddl_params")))),
        ("Plan", _lines([_planned(step) for step in _list(_map(data.get("plan")).get("high_pddl"))])),
        ("Scene", _pairs({key: scene[key] for key in ("floor_plan", "scene_num") if key in scene})),
    ]
    return "\n".join(f"{name}: {text}" for name, text in parts if text)


def _planned(step: object) -> str:
    action = _map(_map(step).get("discrete_action"))
    arguments = ", ".join(str(argument) for argument in _list(action.get("args")) if argument)
    return f"{action.get('action', '')}({arguments})" if action.get("action") else ""


def _lines(texts: list[str]) -> str:
    return "".join(f"\n- {text.strip()}" for text in texts if text.strip())


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value not in ("", None, False))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
