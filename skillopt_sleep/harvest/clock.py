"""Reads the clocks of transcripts: every time becomes seconds since 1970 in UTC, and only those are compared."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_ISO = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](?P<clock>\d{2}:\d{2}(?::\d{2})?)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<zone>[Zz]|UTC|[+-]\d{2}:?\d{2}|[+-]\d{2})?\s*"
)
_NUMBER = re.compile(r"\s*\d{9,20}(?:\.\d+)?\s*")
_EARLIEST = 946_684_800.0  # the year 2000
_LATEST = 4_102_444_800.0  # the year 2100
_UNITS = (1.0, 1e3, 1e6, 1e9)


def epoch_of(value: object, *, naive_is_local: bool = False) -> float | None:
    """Seconds since 1970 of an ISO-8601 text or of a number (seconds, or milli-, micro- or nanoseconds).

    A text without an offset is UTC, which is what agents write; with `naive_is_local` it is this machine's time, which
    is what people write. None when the value is no time between the years 2000 and 2100.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _from_number(float(value)) if abs(value) < 1e21 else None
    if not isinstance(value, str):
        return None
    if _NUMBER.fullmatch(value):
        return _from_number(float(value))
    match = _ISO.fullmatch(value.strip())
    return _from_match(match, naive_is_local=naive_is_local) if match is not None else None


def iso_of(epoch: float | None) -> str:
    """ISO-8601 in UTC with milliseconds and an offset; an empty text for None."""
    if epoch is None:
        return ""
    return datetime.fromtimestamp(epoch, timezone.utc).isoformat(timespec="milliseconds")


def _from_number(value: float) -> float | None:
    plausible = (value / unit for unit in _UNITS)
    return next((seconds for seconds in plausible if _EARLIEST <= seconds <= _LATEST), None)


def _from_match(match: re.Match[str], *, naive_is_local: bool) -> float | None:
    clock = match["clock"] or "00:00:00"
    clock = clock if len(clock) == 8 else clock + ":00"
    try:
        moment = datetime.strptime(f"{match['date']} {clock}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - set below
        zone = _zone_of(match["zone"])
        if zone is None:
            zone = None if naive_is_local else timezone.utc
        seconds = (moment if zone is None else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    seconds += float(f"0.{match['fraction'] or 0}")
    return seconds if _EARLIEST <= seconds <= _LATEST else None


def _zone_of(text: str | None) -> timezone | None:
    if not text:
        return None
    if text in ("Z", "z", "UTC"):
        return timezone.utc
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)
