"""The shipped quickstart data: made by its script, balanced, and without anything shared between splits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data" / "quickstart"
SPLITS = ("train", "val", "test")


@pytest.fixture(scope="module")
def items() -> dict[str, list[dict[str, str]]]:
    return {split: json.loads((DATA / split / "items.json").read_text(encoding="utf-8")) for split in SPLITS}


def test_the_script_writes_the_shipped_files_byte_for_byte(tmp_path):
    script = ROOT / "scripts" / "make_quickstart_data.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=60)
    for split in SPLITS:
        made = (tmp_path / split / "items.json").read_bytes()
        assert made == (DATA / split / "items.json").read_bytes(), split


def test_splits_are_disjoint_by_id_and_by_text(items):
    for key in ("id", "text"):
        values = [item[key] for split in SPLITS for item in items[split]]
        assert len(values) == len(set(values)) == 180, key


@pytest.mark.parametrize("split", SPLITS)
def test_fields_and_labels_are_balanced(items, split):
    rows = items[split]
    assert Counter(row["field"] for row in rows) == {"city": 15, "person": 15, "date": 15, "sentiment": 15}
    labels = Counter(row["answer"] for row in rows if row["field"] == "sentiment")
    assert set(labels) == {"positive", "negative"}
    assert abs(labels["positive"] - labels["negative"]) <= 1


def test_answers_follow_from_the_texts(items):
    for row in (row for split in SPLITS for row in items[split]):
        if row["field"] == "date":
            written = re.search(r"\d+ [A-Z][a-z]+ \d{4}", row["text"])
            assert written is not None
            moment = datetime.strptime(written[0], "%d %B %Y").replace(tzinfo=timezone.utc)
            assert row["answer"] == moment.date().isoformat()
        elif row["field"] != "sentiment":
            assert row["answer"] in row["text"]


def test_names_and_sentence_patterns_do_not_cross_splits(items):
    people = {split: {row["answer"] for row in items[split] if row["field"] == "person"} for split in SPLITS}
    cities = {split: {row["answer"] for row in items[split] if row["field"] == "city"} for split in SPLITS}
    reviews = {
        split: {part for row in items[split] if row["field"] == "sentiment" for part in row["text"].split(". ")}
        for split in SPLITS
    }
    for groups in (people, cities, reviews):
        assert not (groups["train"] & groups["val"] | groups["train"] & groups["test"] | groups["val"] & groups["test"])
