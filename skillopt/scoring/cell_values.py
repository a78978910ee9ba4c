"""Whether two cell values of a spreadsheet are the same."""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from decimal import ROUND_HALF_UP, Context, Decimal

from skillopt.scoring.base import Mode

_EPOCH = dt.datetime(1899, 12, 30)  # noqa: DTZ001 -- day 0 of a workbook, which knows no time zones
_DAY = 86_400
_CENT = Decimal("0.01")
_CONTEXT = Context(prec=40)
_NOISE = 1e-9
_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?)\s*")
_CLOCK = re.compile(r"\s*([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.0*)?)?\s*")
_TEMPORAL = (dt.date, dt.time, dt.timedelta)  # a datetime is a date


def same_value(expected: object, got: object, mode: Mode = "strict") -> bool:
    """Whether the value of a cell is the expected one. Symmetric; never raises.

    Values are what a workbook reader gives: None, text, bool, int, float, date, datetime, time, timedelta.

    `strict`: None and "" are equal. Numbers, and texts that are numbers (`"1"`, `" 1e3 "`), are equal if they round
    half up, in decimal, to the same two places (1.005 and 1.01 are equal), or differ by less than 1e-9 of their size. A
    truth value equals only itself. Dates, times, durations, the serial numbers behind them, and for a time its text
    (`"09:30"`), are equal if they fall into the same minute. Other texts must be the same, save for line ends and
    Unicode composition.

    `paper`: numbers, truth values and texts that Python reads as a number are rounded to two places in binary, a
    datetime to whole days, a time is its text to the minute; then type and value must be the same.
    """
    if mode == "paper":
        return _published_equal(expected, got)
    if type(expected) is type(got) and (expected == got or (expected != expected and got != got)):
        return True
    blank = (expected is None or expected == "", got is None or got == "")
    if any(blank):
        return all(blank)
    if isinstance(expected, bool) or isinstance(got, bool):
        return False
    if isinstance(expected, _TEMPORAL) or isinstance(got, _TEMPORAL):
        minutes = _minutes(expected)
        return minutes is not None and minutes == _minutes(got)
    left, right = _number(expected), _number(got)
    if left is not None and right is not None:
        return _same_number(left, right)
    return isinstance(expected, str) and isinstance(got, str) and _text(expected) == _text(got)


def _text(value: str) -> str:
    return unicodedata.normalize("NFC", value.replace("\r\n", "\n").replace("\r", "\n"))


def _number(value: object) -> Decimal | None:
    """The finite number that a value is or writes, else None."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return Decimal(match[1]) if match else None
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if isinstance(value, int) else None


def _same_number(left: Decimal, right: Decimal) -> bool:
    if left == right or _rounded(left) == _rounded(right):
        return True
    gap, size = _CONTEXT.abs(_CONTEXT.subtract(left, right)), max(_CONTEXT.abs(left), _CONTEXT.abs(right))
    return gap < _CONTEXT.multiply(size, Decimal(repr(_NOISE)))


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(_CENT, ROUND_HALF_UP, _CONTEXT) if value.adjusted() < 30 else value


def _minutes(value: object) -> int | None:
    """Whole minutes since day 0, after rounding to the second; None for what is no point or length of time."""
    seconds = _seconds(value)
    return None if seconds is None or abs(seconds) > 1e12 else math.floor((seconds + 0.5) / 60)


def _seconds(value: object) -> float | None:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - _EPOCH).total_seconds()
    if isinstance(value, dt.date):
        return float((value - _EPOCH.date()).days * _DAY)
    if isinstance(value, dt.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    clock = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if clock:
        return float(int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3] or 0))
    number = _number(value)
    return None if number is None else float(number) * _DAY


def _published_equal(expected: object, got: object) -> bool:
    left, right = _published_value(expected), _published_value(got)
    if left in ("", None) and right in ("", None):
        return True
    return type(left) is type(right) and left == right


def _published_value(value: object) -> object:
    if isinstance(value, (bool, int, float, str)):
        try:
            return round(float(value), 2)
        except (ValueError, OverflowError):
            return value
    if isinstance(value, dt.datetime):
        return float(round((value.replace(tzinfo=None) - _EPOCH).total_seconds() / _DAY))
    return str(value)[:-3] if isinstance(value, dt.time) else value
