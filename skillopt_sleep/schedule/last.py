"""How the last scheduled night of a project ended: kept beside its job, so that no night fails in silence."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.schedule.job import job_folder

FILE = "last.json"
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class LastNight:
    """`began` and `ended` in epoch seconds; `exit_code` None: it did not come to an end. `message`: the last of what
    it wrote to standard error.
    """

    began: float
    ended: float | None = None
    exit_code: int | None = None
    message: str = ""

    @property
    def failed(self) -> bool:
        """True when the night did not do its work."""
        return self.exit_code != 0


def last_night(project: str | Path) -> LastNight | None:
    """How the last scheduled night of a project ended; None when there was none or that cannot be read."""
    try:
        data = json.loads((job_folder(project) / FILE).read_bytes())
        ended, code = data["ended"], data["exit_code"]
        return LastNight(
            float(data["began"]),
            None if ended is None else float(ended),
            None if code is None else int(code),
            str(data["message"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def record_night(folder: Path, night: LastNight) -> None:
    """Keep in the folder of a job how its night ended, redacted and private."""
    row = asdict(night)
    row["message"] = redact_secrets(night.message)[-_LONGEST:].strip()
    paths.write_private_json(folder / FILE, row)
