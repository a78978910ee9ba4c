"""Runs `solution.py`, beside this file, on `input.xlsx` as it is run later: paths preset, a bare environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_START = """
import runpy, sys
runpy.run_path(sys.argv[1], {"INPUT_PATH": sys.argv[2], "OUTPUT_PATH": sys.argv[3]}, "__main__")
"""
_SECONDS = 120
_NEEDED = ("PATH", "LANG", "SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT", "COMSPEC")  # what Python itself cannot do without


def main(folder: Path) -> int:
    """Run the program; its exit code, 1 when it ended well without an output."""
    output = folder / "output.xlsx"
    output.unlink(missing_ok=True)
    names = [str(folder / name) for name in ("solution.py", "input.xlsx")]
    with tempfile.TemporaryDirectory() as scratch:
        kept = {name: os.environ[name] for name in _NEEDED if name in os.environ}
        env = {**kept, "HOME": str(folder), "TMPDIR": scratch}
        argv = [sys.executable, "-c", _START, *names, str(output)]
        code = subprocess.run(argv, cwd=folder, env=env, timeout=_SECONDS, check=False).returncode
    if code == 0 and not output.is_file():
        sys.stderr.write("solution.py ended without writing output.xlsx\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent))
