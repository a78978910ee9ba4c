"""Learning: rules from failures, tried at the gate, written into the learned block and nowhere else."""

from __future__ import annotations

from skillopt_sleep.learn.block import LEARNED_END as LEARNED_END
from skillopt_sleep.learn.block import LEARNED_START as LEARNED_START
from skillopt_sleep.learn.block import MalformedBlock as MalformedBlock
from skillopt_sleep.learn.block import check_document as check_document
from skillopt_sleep.learn.consolidate import LearnTrace as LearnTrace
from skillopt_sleep.learn.consolidate import consolidate as consolidate
from skillopt_sleep.learn.dream import dream_augment as dream_augment
from skillopt_sleep.learn.dream import dream_consolidate as dream_consolidate
from skillopt_sleep.learn.dream import dream_tasks as dream_tasks
from skillopt_sleep.learn.dream import recall_similar as recall_similar
from skillopt_sleep.learn.edits import apply_edits as apply_edits
from skillopt_sleep.learn.edits import apply_edits_detailed as apply_edits_detailed
from skillopt_sleep.learn.edits import run_edits as run_edits
from skillopt_sleep.learn.groups import accepted_group_skills as accepted_group_skills
from skillopt_sleep.learn.groups import consolidate_groups as consolidate_groups
from skillopt_sleep.learn.groups import history_of as history_of
from skillopt_sleep.learn.groups import skill_group_reports as skill_group_reports
from skillopt_sleep.learn.groups import split_by_skill as split_by_skill
from skillopt_sleep.learn.policy import review_edit as review_edit
from skillopt_sleep.learn.results import refused_edits as refused_edits
from skillopt_sleep.learn.rules import current_learned_lines as current_learned_lines
from skillopt_sleep.learn.rules import ensure_skill_scaffold as ensure_skill_scaffold
from skillopt_sleep.learn.rules import extract_learned as extract_learned
from skillopt_sleep.learn.rules import set_learned as set_learned
from skillopt_sleep.learn.slow_update import SlowHistory as SlowHistory
from skillopt_sleep.learn.slow_update import extract_slow_field as extract_slow_field
from skillopt_sleep.learn.slow_update import has_slow_field as has_slow_field
from skillopt_sleep.learn.slow_update import replace_slow_field as replace_slow_field
from skillopt_sleep.learn.slow_update import run_slow_update as run_slow_update
from skillopt_sleep.learn.slow_update import slow_history as slow_history
from skillopt_sleep.learn.slow_update import slow_note as slow_note
