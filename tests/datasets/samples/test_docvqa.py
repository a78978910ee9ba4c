"""The sample pages: as shipped, small, no page twice, every answer printed on its page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from skillopt.datasets.samples import docvqa as samples
from skillopt.envs.docvqa.adapter import DocVQAEnv
from skillopt.errors import MissingExtraError

SHIPPED = Path(__file__).parents[3] / "data" / "samples" / "docvqa"
NEEDS_PILLOW = 'needs an image library: pip install "skillopt[docvqa]"'


def test_the_shipped_tables_are_what_the_generator_writes() -> None:
    for split, number in samples.SPLITS.items():
        text = (SHIPPED / split / "items.csv").read_bytes().decode("utf-8")
        assert text == samples.table(split)
        assert len(text.splitlines()) == number + 1


def test_the_shipped_pages_have_the_pixels_that_the_generator_draws() -> None:
    pillow = pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    for split in samples.samples().values():
        for sample in split:
            with pillow.open(SHIPPED / sample.row["image_path"]) as page:
                drawn = samples.draw(sample.sheet)
                assert (page.mode, page.size) == (drawn.mode, drawn.size) == ("L", (800, 1000))
                assert page.tobytes() == drawn.tobytes(), sample.row["image_path"]


def test_the_shipped_folder_is_small_and_holds_nothing_else() -> None:
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert len(files) == sum(samples.SPLITS.values()) + len(samples.SPLITS)
    assert sum(path.stat().st_size for path in files) < 150_000


def test_every_answer_is_printed_on_its_page_and_no_page_comes_twice() -> None:
    made = [sample for split in samples.samples().values() for sample in split]
    assert len({str(sample.sheet.texts) for sample in made}) == len(made) == 15
    for sample in made:
        printed = "\n".join(words for _, _, words, _ in sample.sheet.texts)
        assert json.loads(sample.row["answer"])[0] in printed
        assert all(x >= 0 and y < 490 and x + 6 * size * len(w) <= 400 for x, y, w, size in sample.sheet.texts)


def test_every_split_has_several_kinds_of_pages_and_is_accepted() -> None:
    env = DocVQAEnv(split_dir=str(SHIPPED))
    env.setup({})
    for split in samples.SPLITS:
        assert len({env.task_type(item) for item in env.get_dataloader().items(split)}) == 4
    assert env.get_dataloader().notices == []


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r'pip install "skillopt\[docvqa\]"'):
        samples.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_written_anywhere(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason=NEEDS_PILLOW)
    samples.write(tmp_path)
    DocVQAEnv(split_dir=str(tmp_path)).setup({})
