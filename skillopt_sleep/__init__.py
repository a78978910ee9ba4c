"""SkillOpt-Sleep: a person's coding agent gets better at their recurring work overnight, one reviewed change at a time.

Importing the package needs the standard library only; each name below loads its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "skillopt_sleep.backends": (
        "Backend CliBackend DualBackend HandoffBackend MockBackend build_backend exact_score get_backend "
        "keyword_soft_score skill_hash"
    ),
    "skillopt_sleep.budget": "Budget Meter plan_depth",
    "skillopt_sleep.config": "DEFAULTS SleepConfig load_config",
    "skillopt_sleep.errors": (
        "BudgetSpent CallFailed NightBusy PendingCalls SleepError StagingError StagingRecoveryError StateBroken "
        "UsageProblem"
    ),
    "skillopt_sleep.evidence": "EvidenceLog read_events",
    "skillopt_sleep.harvest": "harvest_for_config",
    "skillopt_sleep.judges": "KNOWN_OPS SHAPE_OPS char_bound is_shape_only score_rule_judge validate_checks",
    "skillopt_sleep.learn": (
        "LEARNED_END LEARNED_START accepted_group_skills apply_edits apply_edits_detailed consolidate "
        "consolidate_groups current_learned_lines dream_augment dream_consolidate ensure_skill_scaffold "
        "extract_learned extract_slow_field has_slow_field recall_similar replace_slow_field run_slow_update "
        "set_learned skill_group_reports"
    ),
    "skillopt_sleep.learn.gate": "GateResult evaluate_gate select_gate_score",
    "skillopt_sleep.mining": (
        "assign_splits dedup_tasks filter_tasks_for_target group_tasks_by_skill_hint heuristic_mine make_llm_miner "
        "mine normalize_legacy_split session_skill_hint"
    ),
    "skillopt_sleep.night": "run_sleep_cycle",
    "skillopt_sleep.prompts": "describe get_prompt is_overridden load_overrides render save_overrides",
    "skillopt_sleep.redact": "redact_secrets",
    "skillopt_sleep.replay": (
        "aggregate_cost aggregate_scores contrastive_reflect multi_objective_reward multi_rollout replay_batch "
        "replay_one"
    ),
    "skillopt_sleep.schedule": "list_scheduled unschedule",  # `schedule` is the package itself
    "skillopt_sleep.show": "json_safe",
    "skillopt_sleep.staging": (
        "adopt adopt_skills has_pending_staged_managed has_staged_managed latest_staging new_staging_dir "
        "normalize_skill_name pending_staged_skills proposal_filename resolve_skill skill_proposal_rows "
        "skill_search_roots staged_skill_roots staged_skills staging_root write_skill_proposals write_staging"
    ),
    "skillopt_sleep.state": "SleepState",
    "skillopt_sleep.tasks_file": "load_tasks_file make_tasks_payload write_tasks_file",
    "skillopt_sleep.types": (
        "AdoptedSkill ConsolidationResult CycleOutcome EditRecord GroupConsolidation ReplayResult RolloutSet "
        "SessionDigest SkillGroup SkillGroupReport SkillProposal SkillResolution SleepReport TaskRecord"
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'skillopt_sleep' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
