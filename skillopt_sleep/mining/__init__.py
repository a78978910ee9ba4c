"""From sessions to tasks: found, merged, fitted to a skill, and split for training and checking."""

from __future__ import annotations

from skillopt_sleep.mining.heuristic import heuristic_mine as heuristic_mine
from skillopt_sleep.mining.heuristic import session_skill_hint as session_skill_hint
from skillopt_sleep.mining.holdout import Holdout as Holdout
from skillopt_sleep.mining.holdout import HoldoutRecord as HoldoutRecord
from skillopt_sleep.mining.holdout import can_be_judged as can_be_judged
from skillopt_sleep.mining.identity import group_keys as group_keys
from skillopt_sleep.mining.llm import make_llm_miner as make_llm_miner
from skillopt_sleep.mining.merge import dedup_tasks as dedup_tasks
from skillopt_sleep.mining.merge import group_tasks_by_skill_hint as group_tasks_by_skill_hint
from skillopt_sleep.mining.run import mine as mine
from skillopt_sleep.mining.splits import SplitMemory as SplitMemory
from skillopt_sleep.mining.splits import assign_splits as assign_splits
from skillopt_sleep.mining.splits import normalize_legacy_split as normalize_legacy_split
from skillopt_sleep.mining.splits import split_fractions as split_fractions
from skillopt_sleep.mining.target import filter_tasks_for_target as filter_tasks_for_target
