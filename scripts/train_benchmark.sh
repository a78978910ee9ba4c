#!/usr/bin/env bash
# Train a skill for a benchmark: train_benchmark.sh NAME [arguments of skillopt-train]. NAME is a folder of configs/;
# OPTIMIZER_MODEL and TARGET_MODEL name the models. Each start makes a new folder; an --out_root among the arguments wins,
# so that a run that was stopped goes on in its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

NAME="${1:-}"
if [ ! -f "configs/$NAME/default.yaml" ]; then
  known="$(cd configs && echo [a-z]*/default.yaml)"
  echo "usage: train_benchmark.sh NAME [arguments of skillopt-train], NAME one of: ${known//\/default.yaml/}" >&2
  exit 2
fi
shift
OPTIMIZER_MODEL="${OPTIMIZER_MODEL:-gpt-5.5}"
TARGET_MODEL="${TARGET_MODEL:-gpt-5.5}"

exec "${PYTHON:-python3}" scripts/train.py \
  --config "configs/$NAME/default.yaml" \
  --optimizer_model "$OPTIMIZER_MODEL" \
  --target_model "$TARGET_MODEL" \
  --out_root "outputs/skillopt_${NAME}_${TARGET_MODEL//\//_}_$(date +%Y%m%d_%H%M%S)" \
  "$@"
