"""Rows of one file of a source: JSON, JSON Lines, CSV, Parquet or Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillopt.datasets.readers import SUFFIXES, read_rows
from skillopt.errors import DataError, MissingExtraError

Row = dict[str, Any]
COLUMN_SUFFIXES = (".parquet", ".arrow")
TABLE_SUFFIXES = (*COLUMN_SUFFIXES, *SUFFIXES)
_ROWS_AT_A_TIME = 64


def table_rows(path: Path) -> Iterator[Row]:
    """Rows of a file in their order; those of Parquet and Arrow files are read a few at a time.

    Raises DataError for a file that cannot be read, MissingExtraError where it needs the package `pyarrow`.
    """
    if path.suffix.lower() in COLUMN_SUFFIXES:
        return _column_rows(path)
    return iter(read_rows(path))


def _column_rows(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f'{path}: needs the package pyarrow; run: pip install "skillopt[datasets]"') from None
    try:
        for batch in _batches(path):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path}: is no readable {path.suffix[1:]} file ({reason}).") from error


def _batches(path: Path) -> Iterator[Any]:
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=_ROWS_AT_A_TIME)
        return
    import pyarrow.ipc

    with path.open("rb") as stream:
        if stream.read(6) == b"ARROW1":
            reader = pyarrow.ipc.open_file(path)
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            stream.seek(0)
            yield from pyarrow.ipc.open_stream(stream)
