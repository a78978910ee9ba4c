# A copy of skillopt/utils/sandbox_driver.py, made by scripts/vendor.py: change the original, then run that.
"""Runs a Python script as it is, with some names set beforehand.

Run by `skillopt.utils.sandbox` as `python -I -B -X utf8 sandbox_driver.py ORDER SCRIPT`; it imports the standard
library only. `ORDER` is JSON: `values`, the names and what they hold; `packages`, further folders to import from.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType


def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback that begins in the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def run(script: Path, values: dict[str, str]) -> None:
    """Run the file as the main module."""
    main = ModuleType("__main__")
    main.__dict__.update(values, __file__=str(script), __builtins__=__builtins__)
    sys.modules["__main__"] = main
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    exec(compile(script.read_bytes(), str(script), "exec", dont_inherit=True), main.__dict__)


if __name__ == "__main__":
    _order = json.loads(sys.argv[1])
    sys.path += [folder for folder in _order["packages"] if folder not in sys.path]
    sys.excepthook = show_error
    run(Path(sys.argv[2]), _order["values"])
