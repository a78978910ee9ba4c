"""What the ends of epochs leave behind for the epochs after them, and how it is read back on a resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillopt.engine.kit import Kit
from skillopt.engine.leaks import REFUSED
from skillopt.optimizer.meta_skill import format_meta_skill_context
from skillopt.types import JsonObject

NO_CONTENT = "no_content"
NO_CHANGE = "no_change"


@dataclass(frozen=True, slots=True)
class Memory:
    """What the ends of the epochs so far left behind, beside the skill.

    `meta_skill`: the last notes that an optimizer wrote; a call that fails leaves them standing. `refused`: what the
    optimizer is told of guidance that was turned down, "" when the last guidance stands. `slow_base` and `meta_base`:
    the epoch whose skill the next comparison starts from. Work that came to nothing leaves its base where it was, so
    that the next end of an epoch does it together with its own.
    """

    meta_skill: str = ""
    refused: str = ""
    slow_base: int = 0
    meta_base: int = 0

    def after(self, epoch: int, slow: Mapping[str, Any] | None, meta: Mapping[str, Any] | None) -> Memory:
        """The memory after an epoch with these results; None for work that is switched off."""
        memory = self
        if slow is not None and slow["action"] != NO_CONTENT:
            refused = _refusal(slow) if slow.get("slow_update_content") else self.refused
            memory = replace(memory, slow_base=epoch, refused=refused)
        if meta is not None and meta["action"] != NO_CONTENT:
            notes = meta.get("meta_skill_content") or self.meta_skill
            memory = replace(memory, meta_base=epoch, meta_skill=notes)
        return memory


def _refusal(slow: Mapping[str, Any]) -> str:
    """What the optimizer is told of guidance that did not come to stand."""
    if slow["action"] == REFUSED:
        return "Refused before it was tried: " + "; ".join(slow.get("leak_advice") or ())
    if "accept" in slow["action"] or slow["action"] == NO_CHANGE:
        return ""
    return f"Tried, and results were not clearly better with it:\n{slow['slow_update_content']}"


def render_meta_context(memory: Memory) -> str:
    """The `meta_skill_context` of analyst, merge, ranking and learning-rate calls of the next epoch; "" if none."""
    return format_meta_skill_context(memory.meta_skill)


def load_memory(kit: Kit, epochs_closed: int) -> Memory:
    """The memory after `epochs_closed` epochs, read back from their result files.

    A file that is missing or broken counts as work that came to nothing, with a notice.
    """
    optimizer, folder = kit.config.optimizer, kit.folder
    memory = Memory()
    for epoch in range(1, epochs_closed + 1):
        slow = _read(kit, folder.slow_result(epoch)) if optimizer.use_slow_update else None
        meta = _read(kit, folder.meta_result(epoch)) if optimizer.use_meta_skill else None
        memory = memory.after(epoch, slow, meta)
    return memory


def _read(kit: Kit, path: Path) -> JsonObject:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        value = {}
        kit.emit("notice", text=f"{kit.folder.relative(path)} could not be read ({type(error).__name__}).")
    return value if isinstance(value, dict) and isinstance(value.get("action"), str) else {"action": NO_CONTENT}
