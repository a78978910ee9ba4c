"""Fail unless a finished quickstart run shows the gain that the README promises."""

from __future__ import annotations

import json
import sys
from pathlib import Path

BEFORE_AT_MOST = 0.4
AFTER_AT_LEAST = 0.8


def main() -> int:
    """Check `summary.json` of the run folder given as the only argument; 0 when the promise holds."""
    summary = json.loads((Path(sys.argv[1]) / "summary.json").read_text(encoding="utf-8"))
    before, after = summary["baseline_test_hard"], summary["test_hard"]
    kept = before <= BEFORE_AT_MOST and after >= AFTER_AT_LEAST
    verdict = "as promised" if kept else f"promised: at most {BEFORE_AT_MOST}, then at least {AFTER_AT_LEAST}"
    print(f"quickstart: test {before:.3f} before, {after:.3f} after ({verdict})")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
