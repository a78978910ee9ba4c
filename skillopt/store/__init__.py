"""What has been paid for: finished rollouts and finished optimizer replies, kept under the hash of what made them."""

from __future__ import annotations

from skillopt.store.database import Store

__all__ = ["Store"]
