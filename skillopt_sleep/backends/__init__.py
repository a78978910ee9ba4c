"""Whoever answers the model calls of a night. See `base.Backend` for the protocol and `build` for the names."""

from __future__ import annotations

from skillopt_sleep.backends.base import Backend, skill_hash
from skillopt_sleep.backends.build import (
    backend_for_config,
    build_backend,
    get_backend,
    meter_for_config,
    reaches_network,
)
from skillopt_sleep.backends.cache import CallCache
from skillopt_sleep.backends.cli import CliBackend
from skillopt_sleep.backends.dual import DualBackend
from skillopt_sleep.backends.egress import NotSent, PreviewedCall
from skillopt_sleep.backends.handoff import HandoffBackend, handoff_of
from skillopt_sleep.backends.handoff_folder import HandoffFolder
from skillopt_sleep.backends.mock import RULES, MockBackend
from skillopt_sleep.backends.wire import Outgoing, Reply
from skillopt_sleep.judges.exact import exact_score, keyword_soft_score

__all__ = [
    "RULES",
    "Backend",
    "CallCache",
    "CliBackend",
    "DualBackend",
    "HandoffBackend",
    "HandoffFolder",
    "MockBackend",
    "NotSent",
    "Outgoing",
    "PreviewedCall",
    "Reply",
    "backend_for_config",
    "build_backend",
    "exact_score",
    "get_backend",
    "handoff_of",
    "keyword_soft_score",
    "meter_for_config",
    "reaches_network",
    "skill_hash",
]
