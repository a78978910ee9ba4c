"""Why a staged night cannot be used, as errors with the code of the failure document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from skillopt_sleep.errors import StagingError


class NoStaging(StagingError):
    """There is no staged night here."""

    code: ClassVar[str] = "no_staging"


class InvalidStaging(StagingError):
    """A night's manifest, receipt or journal is unreadable, of another version, or not as it was written."""

    code: ClassVar[str] = "invalid_staging"


class AdoptionRefused(StagingError):
    """A check before the first write failed: nothing was changed."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "adoption_refused"


class AdoptionFailed(StagingError):
    """Writing failed half-way; everything was put back as it was."""

    code: ClassVar[str] = "adoption_failed"


class UndoRefused(AdoptionRefused):
    """An adoption cannot be taken back as things are; `diff` shows what was edited since."""

    code: ClassVar[str] = "undo_refused"

    def __init__(self, message: str, *, diff: str = "") -> None:
        super().__init__(message)
        self.diff = diff


class SelectionRefused(StagingError):
    """Which rows to adopt was not said in a way that fits the night.

    `available` lists the night's per-skill rows as (name, live path).
    """

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "invalid_selection"

    def __init__(self, message: str, *, available: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.available = tuple(available)


class NoStagedSkills(SelectionRefused):
    """Named skills were asked for, but the night has none."""

    code: ClassVar[str] = "no_staged_skills"


class SelectionRequired(SelectionRefused):
    """The night has rows of named skills, and nobody said which of them to adopt."""

    code: ClassVar[str] = "selection_required"
