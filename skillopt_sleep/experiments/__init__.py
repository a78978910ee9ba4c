"""Experiments that show what a night can do, on made-up personas and on public benchmarks of skills.

python -m skillopt_sleep.experiments.run_experiment --persona researcher --assert-improves
python -m skillopt_sleep.experiments.run_gbrain --data-root DIR --backend claude
"""
