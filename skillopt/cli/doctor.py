"""`skillopt doctor`: what would stop a run, and the command or variable that mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from skillopt.cli.common import DONE, FAILED, print_json
from skillopt.tracking.console import plain

if TYPE_CHECKING:
    from skillopt.engine.findings import Finding


def doctor_command(
    config_path: Path | None,
    options: Sequence[str],
    flags: Mapping[str, object],
    out: TextIO,
    *,
    offline: bool,
    as_json: bool,
) -> int:
    """Check a configuration, or the installation when there is none, and print the findings; the exit code."""
    from skillopt.engine.doctor import diagnose
    from skillopt.engine.doctor_install import diagnose_installation

    if config_path is None and not options and not flags:
        findings = diagnose_installation()
    else:
        findings = diagnose(config_path or {}, cfg_options=options, flags=flags, offline=offline)
    stops = sum(finding.level == "fail" for finding in findings)
    if as_json:
        print_json({"ok": not stops, "offline": offline, "findings": [f.to_dict() for f in findings]}, out)
    else:
        tell_findings(findings, out)
    return FAILED if stops else DONE


def tell_findings(findings: Sequence[Finding], out: TextIO) -> None:
    """One line for each finding, then how many would stop a run."""
    for finding in findings:
        fix = f" — {finding.fix}" if finding.fix else ""
        out.write(plain(f"{finding.level:<4}  {finding.what}{fix}") + "\n")
    stops = sum(finding.level == "fail" for finding in findings)
    out.write(f"{stops} of these would stop a run.\n" if stops else "Nothing here would stop a run.\n")
