#!/usr/bin/env bash
# Train a skill for SpreadsheetBench, as train_benchmark.sh says.
exec "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" spreadsheetbench "$@"
