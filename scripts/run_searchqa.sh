#!/usr/bin/env bash
# Train a skill for SearchQA, as train_benchmark.sh says.
exec "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" searchqa "$@"
