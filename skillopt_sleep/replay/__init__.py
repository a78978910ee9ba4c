"""Tasks done again with a skill and a memory, and what the results say together."""

from __future__ import annotations

from skillopt_sleep.replay.reward import Scores as Scores
from skillopt_sleep.replay.reward import aggregate_cost as aggregate_cost
from skillopt_sleep.replay.reward import aggregate_scores as aggregate_scores
from skillopt_sleep.replay.reward import metric_score as metric_score
from skillopt_sleep.replay.reward import multi_objective_reward as multi_objective_reward
from skillopt_sleep.replay.reward import summarize as summarize
from skillopt_sleep.replay.rollout import contrastive_reflect as contrastive_reflect
from skillopt_sleep.replay.rollout import multi_rollout as multi_rollout
from skillopt_sleep.replay.run import replay_batch as replay_batch
from skillopt_sleep.replay.run import replay_one as replay_one
from skillopt_sleep.replay.workers import worker_count as worker_count
from skillopt_sleep.types import RolloutSet as RolloutSet
