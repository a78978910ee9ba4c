"""Fail when tests were skipped that this machine could have run: `python scripts/check_skips.py RESULTS.xml ...`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from xml.etree import ElementTree

ALLOWED = (
    r"live service",  # needs an account and costs money
    r"needs a user whom permissions stop",  # continuous integration may run as root
    r"the Claude Agent SDK is not installed",  # its package carries a program of 180 MB
    r"the sandbox \w+ does not work on this machine",  # a container may forbid the kernel's means
    r"this bubblewrap cannot bound it",  # an old one
)


def refused(paths: Sequence[str]) -> list[str]:
    """`test: reason` of every skip that is not allowed, in files that `pytest --junitxml` wrote."""
    found = []
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            for skip in case.iter("skipped"):
                reason = f"{skip.get('message', '')} {skip.text or ''}".strip()
                if skip.get("type") == "pytest.skip" and not any(re.search(known, reason) for known in ALLOWED):
                    found.append(f"{case.get('classname')}::{case.get('name')}: {reason}")
    return found


def main(paths: Sequence[str]) -> int:
    if not paths:
        print("usage: check_skips.py RESULTS.xml ...", file=sys.stderr)
        return 2
    found = refused(paths)
    for line in found:
        print(f"skipped: {line}", file=sys.stderr)
    if found:
        print(f"{len(found)} tests were skipped; install what they need (make extras).", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
