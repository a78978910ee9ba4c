"""What a run found out about its models (kept in its `config.json` over all its processes) and about its data."""

from __future__ import annotations

from skillopt.engine.kit import Kit
from skillopt.engine.run_dir import RunDir
from skillopt.errors import DataError
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, read_json

_KEY = "model_notes"


def kept_notes(folder: RunDir) -> JsonObject:
    """The field of `config.json` that holds the sentences of earlier processes; empty when there are none."""
    notes = _config(folder).get(_KEY)
    return {_KEY: notes} if isinstance(notes, list) and notes else {}


def note_models(kit: Kit) -> list[str]:
    """Add what the session found out to `config.json`. All sentences, the oldest first."""
    before = kept_notes(kit.folder).get(_KEY, [])
    notes = list(dict.fromkeys([*before, *kit.session.notes]))
    if notes != before:
        atomic_write_json(kit.folder.config, {**_config(kit.folder), _KEY: notes})
    return notes


def data_notes(kit: Kit) -> list[str]:
    """What the environment has to say about its data and this machine, such as code that runs without a room."""
    return [str(text) for text in getattr(kit.adapter.get_dataloader(), "notices", ())]


def _config(folder: RunDir) -> JsonObject:
    """What `config.json` holds; nothing when it is missing or was damaged by somebody."""
    try:
        config = read_json(folder.config) if folder.config.exists() else {}
    except DataError:
        config = {}
    return config if isinstance(config, dict) else {}
