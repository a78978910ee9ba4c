"""From an accepted change to a file that lives: staging, review, adoption, undo.

A night writes its proposals into a folder of the project (`stage`), pinned to the bytes they were made from and signed
(`manifest`, `signing`). A person looks at them (`pending`, `diff`) and adopts all or some (`adopt`): one transaction
with a journal that survives a kill (`transaction`, `journal`, `recover`). `undo` takes the last adoption back.
"""

from __future__ import annotations

from skillopt_sleep.errors import StagingError, StagingRecoveryError
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.show import json_safe
from skillopt_sleep.staging.adopt import adopt, adopt_skills
from skillopt_sleep.staging.allowed import Allowed, allowed_targets
from skillopt_sleep.staging.git import commit_adopted, git_notices, uncommitted
from skillopt_sleep.staging.names import normalize_skill_name, proposal_filename
from skillopt_sleep.staging.nights import latest_staging, new_staging_dir, staging_root
from skillopt_sleep.staging.pending import (
    NightView,
    StagedRow,
    adopted_names,
    diff,
    has_pending_staged_managed,
    has_staged_managed,
    latest_pending,
    pending_nights,
    pending_staged_skills,
    staged_skill_roots,
    staged_skills,
    view,
)
from skillopt_sleep.staging.preflight import TargetProblem, preflight
from skillopt_sleep.staging.problems import (
    AdoptionFailed,
    AdoptionRefused,
    InvalidStaging,
    NoStagedSkills,
    NoStaging,
    SelectionRefused,
    SelectionRequired,
    UndoRefused,
)
from skillopt_sleep.staging.recover import Recovered, recover
from skillopt_sleep.staging.rejected import reject, rejected_rules
from skillopt_sleep.staging.resolve import resolve_skill, skill_search_roots
from skillopt_sleep.staging.retention import gc
from skillopt_sleep.staging.rows import skill_proposal_rows
from skillopt_sleep.staging.selection import Selection, select
from skillopt_sleep.staging.stage import write_skill_proposals, write_staging
from skillopt_sleep.staging.undo import Undone, undo

__all__ = [
    "AdoptionFailed",
    "AdoptionRefused",
    "Allowed",
    "InvalidStaging",
    "NightView",
    "NoStagedSkills",
    "NoStaging",
    "Recovered",
    "Selection",
    "SelectionRefused",
    "SelectionRequired",
    "StagedRow",
    "StagingError",
    "StagingRecoveryError",
    "TargetProblem",
    "UndoRefused",
    "Undone",
    "adopt",
    "adopt_skills",
    "adopted_names",
    "allowed_targets",
    "commit_adopted",
    "diff",
    "gc",
    "git_notices",
    "has_pending_staged_managed",
    "has_staged_managed",
    "json_safe",
    "latest_pending",
    "latest_staging",
    "new_staging_dir",
    "normalize_skill_name",
    "pending_nights",
    "pending_staged_skills",
    "preflight",
    "proposal_filename",
    "recover",
    "redact_secrets",
    "reject",
    "rejected_rules",
    "resolve_skill",
    "select",
    "skill_proposal_rows",
    "skill_search_roots",
    "staged_skill_roots",
    "staged_skills",
    "staging_root",
    "uncommitted",
    "undo",
    "view",
    "write_skill_proposals",
    "write_staging",
]
