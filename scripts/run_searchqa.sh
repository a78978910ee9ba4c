#!/usr/bin/env bash
# Train a skill for SearchQA. OPTIMIZER_MODEL and TARGET_MODEL name the models; further arguments go to skillopt-train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

OPTIMIZER_MODEL="${OPTIMIZER_MODEL:-gpt-5.5}"
TARGET_MODEL="${TARGET_MODEL:-gpt-5.5}"

exec "${PYTHON:-python3}" scripts/train.py \
  --config configs/searchqa/default.yaml \
  --optimizer_model "$OPTIMIZER_MODEL" \
  --target_model "$TARGET_MODEL" \
  --out_root "outputs/skillopt_searchqa_${TARGET_MODEL//\//_}_$(date +%Y%m%d_%H%M%S)" \
  "$@"
