"""`skillopt config show`: every effective setting and where it came from, as text or as JSON."""

from __future__ import annotations

import json
from typing import TextIO

from skillopt.cli.common import DONE, print_json
from skillopt.config.effective import Effective, effective_json, effective_settings
from skillopt.config.run_config import RunConfig

_WIDEST_NAME, _WIDEST_VALUE = 34, 44


def show_config(config: RunConfig, out: TextIO, *, as_json: bool) -> int:
    """Print the effective settings; the exit code. Credentials are shown as `set` or `unset`."""
    if as_json:
        print_json({"config": str(config.config_path or ""), "command": config.command, **effective_json(config)}, out)
        return DONE
    unset = 0
    for group, items in effective_settings(config).items():
        shown = [item for item in items if item.value is not None or item.source != "default"]
        unset += len(items) - len(shown)
        out.writelines([f"{group}\n", *(_line(item) for item in shown), "\n"])
    out.write(f"{unset} settings that are unset and have no built-in value are left out; --json lists them.\n")
    return DONE


def _line(item: Effective) -> str:
    value = json.dumps(item.value, ensure_ascii=False)
    return f"  {item.name:<{_WIDEST_NAME}} {value:<{_WIDEST_VALUE}}  # {item.source}\n"
