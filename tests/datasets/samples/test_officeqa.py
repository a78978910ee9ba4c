"""The sample bulletins: as shipped, small, and accepted in every kind of retrieval."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt.datasets.samples import officeqa as samples
from skillopt.envs.officeqa.adapter import OfficeQAEnv

SHIPPED = Path(__file__).parents[3] / "data" / "samples" / "officeqa"


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_shipped_files_are_what_the_generator_writes(tmp_path: Path) -> None:
    samples.write(tmp_path)
    assert files(tmp_path) == files(SHIPPED)
    assert sum(map(len, files(SHIPPED).values())) < 60_000


def test_there_are_enough_items_of_both_kinds_in_every_split() -> None:
    made = samples.items()
    assert {split: len(rows) for split, rows in made.items()} == {"train": 6, "val": 4, "test": 4}
    assert all({row["category"] for row in rows} == {"easy", "hard"} for rows in made.values())
    assert len({row["question"] for rows in made.values() for row in rows}) == 14


@pytest.mark.parametrize("retrieval", ["oracle", "restricted", "open"])
def test_the_shipped_items_are_accepted(retrieval: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFICEQA_DOCS_DIR", raising=False)
    env = OfficeQAEnv(split_dir=str(SHIPPED), data_dirs=[str(SHIPPED / "docs")], retrieval=retrieval)
    env.setup({})
    assert env.get_dataloader().notices == []
    assert [item.id for item in env.all_items()] == [f"VB{number:04d}" for number in range(1, 15)]
    if retrieval == "oracle":
        assert all(env.messages(item, "")[1]["content"].count("| Treasury notes |") < 2 for item in env.all_items())
