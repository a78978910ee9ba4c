"""What staging and adoption work with besides the night itself: the person's seal, locks, and allowed places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.staging.allowed import Allowed, allowed_targets
from skillopt_sleep.staging.manifest import Manifest, Row
from skillopt_sleep.staging.problems import AdoptionRefused
from skillopt_sleep.staging.resolve import plugin_of
from skillopt_sleep.staging.signing import Seal, load_seal


@dataclass(frozen=True, slots=True)
class Desk:
    """State folder, seal and allowed targets. `strict`: the caller gave the configuration, so it alone says where."""

    state_dir: Path
    seal: Seal
    allowed: Allowed
    strict: bool

    def check_place(self, row: Row, manifest: Manifest) -> None:
        """Raise AdoptionRefused when a row's target lies outside the allowed places.

        Without a caller's configuration a signed manifest speaks for its own targets, since only this person's
        installation can have written them. A plugin's cache is never written.
        """
        problem = self.allowed.problem(row)
        if problem and (self.strict or not manifest.signed or plugin_of(Path(row.live_realpath))):
            raise AdoptionRefused(f"{row.words}: {problem}")


def desk_for(project: Path, cfg: SleepConfig | None, *, create: bool = False) -> Desk:
    """The desk of a project. `cfg` None: as this person's configuration files say. `create` makes a missing key."""
    config = cfg
    if config is None:
        from skillopt_sleep.config import load_config

        config = load_config(invoked_project=str(project))
    return Desk(config.state_dir, load_seal(config.state_dir, create=create), allowed_targets(config), cfg is not None)
