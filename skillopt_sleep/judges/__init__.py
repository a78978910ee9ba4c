"""How an answer is scored: by checks, by comparison with a reference, or by a model with a rubric.

Scores are (hard, soft, rationale): hard is 0 or 1, soft lies in 0..1, both are finite. What cannot be decided raises
and is never a zero.
"""

from __future__ import annotations

from skillopt_sleep.judges.checks import KNOWN_OPS as KNOWN_OPS
from skillopt_sleep.judges.checks import SHAPE_OPS as SHAPE_OPS
from skillopt_sleep.judges.checks import Undecidable as Undecidable
from skillopt_sleep.judges.checks import char_bound as char_bound
from skillopt_sleep.judges.exact import exact_score as exact_score
from skillopt_sleep.judges.exact import keyword_soft_score as keyword_soft_score
from skillopt_sleep.judges.exact import score_exact as score_exact
from skillopt_sleep.judges.rubric import grade as grade
from skillopt_sleep.judges.rule import required_tools as required_tools
from skillopt_sleep.judges.rule import score_rule_judge as score_rule_judge
from skillopt_sleep.judges.validate import clean_checks as clean_checks
from skillopt_sleep.judges.validate import is_shape_only as is_shape_only
from skillopt_sleep.judges.validate import validate_checks as validate_checks
from skillopt_sleep.judges.work import WORK_OPS as WORK_OPS
from skillopt_sleep.judges.work import conditions_of as conditions_of
from skillopt_sleep.judges.work import shown_answer as shown_answer
