"""Harvest: from the transcripts of coding agents to redacted digests of a person's sessions.

`harvest(config)` gives what is new, with a receipt; `commit(receipt)` moves the cursor once a night has worked with
it. `harvest_for_config`, `harvest_claude` and `harvest_codex` read everything and remember nothing.
"""

from __future__ import annotations

from skillopt_sleep.harvest.claude import harvest_claude
from skillopt_sleep.harvest.codex import harvest_codex
from skillopt_sleep.harvest.index import Receipt
from skillopt_sleep.harvest.sources import Harvest, commit, harvest, harvest_for_config, hold_window

__all__ = [
    "Harvest",
    "Receipt",
    "commit",
    "harvest",
    "harvest_claude",
    "harvest_codex",
    "harvest_for_config",
    "hold_window",
]
