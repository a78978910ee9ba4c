"""Copy the modules of skillopt that a night needs into skillopt_sleep, which imports nothing from skillopt.

python scripts/vendor.py          write the copies
python scripts/vendor.py --check  exit 1 and name the copies that are out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = Path("skillopt_sleep/vendored")
NOTE = "# A copy of skillopt/{name}, made by scripts/vendor.py: change the original, then run that.\n"
MODULES = (
    "errors.py",
    "types/canonical.py",
    "model/provider_words.py",
    "utils/alarm.py",
    "utils/azure_hosts.py",
    "utils/cancel.py",
    "utils/codex_home.py",
    "utils/files.py",
    "utils/invisible.py",
    "utils/json_reply.py",
    "utils/json_scan.py",
    "utils/parallel.py",
    "utils/process.py",
    "utils/process_family.py",
    "utils/process_watch.py",
    "utils/removal.py",
    "utils/sandbox.py",
    "utils/sandbox_driver.py",
    "utils/sandbox_keeper.py",
    "utils/sandbox_room.py",
    "utils/sandbox_view.py",
    "utils/tool_servers.py",
    "scoring/refusal.py",
    "evaluation/stats.py",
)
INIT = '"""Copies of standard-library-only modules of skillopt, made by scripts/vendor.py."""\n'
_IMPORT = re.compile(r"^(\s*(?:from|import) )skillopt\b", re.MULTILINE)


def copies(root: Path = ROOT) -> dict[Path, str]:
    """Text of every copy by its path, both relative to `root`. The gate is copied byte for byte."""
    made = {Path("skillopt_sleep/learn/gate.py"): _read(root / "skillopt/evaluation/gate.py")}
    for name in MODULES:
        text = _IMPORT.sub(r"\1skillopt_sleep.vendored", _read(root / "skillopt" / name))
        made[HOME / name] = NOTE.format(name=name) + text
        made[(HOME / name).parent / "__init__.py"] = INIT
    made[HOME / "__init__.py"] = INIT
    return made


def stale(root: Path = ROOT) -> list[Path]:
    """The copies that are missing, differ from their original, or have none any more."""
    wanted = copies(root)
    differing = [path for path, text in wanted.items() if not (root / path).is_file() or _read(root / path) != text]
    there = (path.relative_to(root) for path in (root / HOME).rglob("*.py"))
    return sorted([*differing, *(path for path in there if path not in wanted)])


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Copy what skillopt_sleep needs of skillopt.")
    parser.add_argument("--check", action="store_true", help="only name the copies that are out of date")
    arguments = parser.parse_args()
    old = stale()
    if arguments.check:
        for path in old:
            print(f"{path}: out of date; run python scripts/vendor.py", file=sys.stderr)
        return int(bool(old))
    wanted = copies()
    for path in old:
        target = ROOT / path
        if path not in wanted:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(wanted[path].encode("utf-8"))
    print(f"{len(old)} of {len(wanted)} copies written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
