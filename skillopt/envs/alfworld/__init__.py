"""ALFWorld: household tasks in a text game, played step by step, each episode in a process of its own."""

from __future__ import annotations
