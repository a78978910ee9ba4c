#!/usr/bin/env bash
# Train a skill for ALFWorld. OPTIMIZER_MODEL and TARGET_MODEL name the models; further arguments go to skillopt-train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

OPTIMIZER_MODEL="${OPTIMIZER_MODEL:-gpt-5.5}"
TARGET_MODEL="${TARGET_MODEL:-gpt-5.5}"

export ALFWORLD_DATA="${ALFWORLD_DATA:-$HOME/.cache/alfworld}"
if [[ ! -d "$ALFWORLD_DATA/json_2.1.1" ]]; then
  echo "There are no games in $ALFWORLD_DATA: run alfworld-download, or set ALFWORLD_DATA to their folder." >&2
  exit 1
fi

exec "${PYTHON:-python3}" scripts/train.py \
  --config configs/alfworld/default.yaml \
  --optimizer_model "$OPTIMIZER_MODEL" \
  --target_model "$TARGET_MODEL" \
  --out_root "outputs/skillopt_alfworld_${TARGET_MODEL//\//_}_$(date +%Y%m%d_%H%M%S)" \
  "$@"
