#!/usr/bin/env bash
# Train a skill for ALFWorld, as train_benchmark.sh says, with the games in ALFWORLD_DATA.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export ALFWORLD_DATA="${ALFWORLD_DATA:-$HOME/.cache/alfworld}"
if [[ ! -d "$ALFWORLD_DATA/json_2.1.1" ]]; then
  echo "There are no games in $ALFWORLD_DATA: run alfworld-download, or set ALFWORLD_DATA to their folder." >&2
  exit 1
fi

exec scripts/train_benchmark.sh alfworld "$@"
