"""The values that travel between rooms. Frozen, without behaviour beyond reading and writing themselves.

    canonical.py   one JSON text for equal values, and the hash of it
    fields.py      what every `to_dict` and `from_dict` needs
    rollouts.py    Item, RolloutResult, Usage
    patches.py     Edit, Suggestion, SkillCandidate, Patch, RawPatch
    roles.py       RoleConfig

Values that a reader of run files knows as JSON have `to_dict` and `from_dict`; `from_dict` ignores unknown
keys so that files written by a later version can still be read.
"""

from __future__ import annotations

from skillopt.types.canonical import JsonObject, canonical_json, content_hash
from skillopt.types.patches import (
    PAYLOAD_KEYS,
    Edit,
    EditOp,
    FailureSummaryEntry,
    Patch,
    PatchItem,
    RawPatch,
    SkillCandidate,
    Suggestion,
    read_item,
)
from skillopt.types.roles import RoleConfig
from skillopt.types.rollouts import Item, ItemStatus, RolloutResult, Usage

__all__ = [
    "PAYLOAD_KEYS",
    "Edit",
    "EditOp",
    "FailureSummaryEntry",
    "Item",
    "ItemStatus",
    "JsonObject",
    "Patch",
    "PatchItem",
    "RawPatch",
    "RoleConfig",
    "RolloutResult",
    "SkillCandidate",
    "Suggestion",
    "Usage",
    "canonical_json",
    "content_hash",
    "read_item",
]
