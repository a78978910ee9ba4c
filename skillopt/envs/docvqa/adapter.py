"""The environment `docvqa`: a question about the image of a page, answered as printed, scored by letters (ANLS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from skillopt.envs.answers import AnswerTag
from skillopt.envs.benchmark import BenchmarkEnv, Row, materialize_command
from skillopt.envs.chat import Chat
from skillopt.envs.docvqa.images import DataAddresses, PageImage, find_image, need_pillow
from skillopt.envs.docvqa.rows import normal_row
from skillopt.errors import ConfigError, DataError
from skillopt.scoring import Score, get_scorer, scorer_fingerprint
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

DETAILS = ("auto", "low", "high")
_NEAR_MISS = "near_miss"
_SHOWN = 5


@dataclass(eq=False)
class DocVQAEnv(BenchmarkEnv):
    """Items with `question`, `answers` and the path of one image or more. The fields are the `env.*` keys.

    `data_root`: the folder below which the images lie; blank: the folder of the data, then the working directory.
    `image_detail`: `auto`, `low` or `high`, sent with each image unless it is `auto`. `hard` is 1 for an answer equal
    to an accepted one, `soft` is ANLS.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"images"})

    split_mode: str = "split_dir"
    workers: int = 16
    image_detail: str = "auto"
    data_root: str = ""

    def __post_init__(self) -> None:
        if self.image_detail not in DETAILS:
            raise ConfigError(f"env.image_detail is {self.image_detail!r}; expected {', '.join(DETAILS)}.")
        super().__post_init__()
        self._scorer = get_scorer("anls", mode=self.scoring)
        self._tag = AnswerTag(which="outer" if self.scoring == "paper" else "last")
        self._roots = [Path()]
        self._pages: dict[str, PageImage] = {}
        self._addresses = DataAddresses()

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load the splits and read every image once.

        Raises DataError for an item or an image that cannot be used, MissingExtraError when an image is too large to be
        sent as it is and Pillow is missing.
        """
        self._roots = self._image_roots(cfg)
        self._pages.clear()
        super().setup(cfg)
        self._notice_shared_pages()

    def normalize(self, row: Row) -> Row:
        """The row under the names that items have here (see `normal_row`), with the hash of each of its images.

        The hashes make an item another one when the file behind a path changes.
        """
        item = normal_row(row)
        where = f"item {str(item['id'])!r}"
        named = item["image_paths"] if item["question"] or item["answers"] else ()  # else `check` knows better
        pages = [self._page(name, where) for name in named]
        return {**item, "image_hashes": [page.sha256 for page in pages]}

    def check(self, item: Item) -> None:
        """Raise DataError for an item without question, answer or image."""
        if not self.text_of(item, "question").strip() and not item.data["answers"]:
            raise DataError(
                f"item {item.id!r} has neither question nor answer, as in a list of ids; "
                f"`{materialize_command(type(self))}` fetches what belongs to the ids."
            )
        self.text_of(item, "question", required=True)
        if not item.data["answers"]:
            raise DataError(f"item {item.id!r}: field 'answer' is missing or empty; nothing could be right.")
        if not item.data["image_paths"]:
            raise DataError(f"item {item.id!r}: field 'image_path' is missing or empty.")
        for name in item.data["image_paths"]:
            page = self._page(name, f"item {item.id!r}")
            if not page.fits:
                need_pillow(page, f"item {item.id!r}")

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """Instructions and skill, then the images and the question."""
        parts: list[JsonObject] = [self._image_part(page) for page in self.pages(item)]
        parts.append({"type": "text", "text": self._task(item)})
        return [
            {"role": "system", "content": self.with_skill("system", skill)},
            {"role": "user", "content": parts},
        ]

    def pages(self, item: Item) -> list[PageImage]:
        """The images of an item."""
        return [self._page(str(name), f"item {item.id!r}") for name in item.data["image_paths"]]

    def answer(self, reply_text: str) -> str:
        """The text of the answer tag, else the last line."""
        return self._tag(reply_text)

    def answered(self, reply_text: str) -> bool:
        """Whether a reply holds an answer tag."""
        return self._tag.find(reply_text) is not None

    def score(self, item: Item, answer: str) -> Score:
        """ANLS with the best of the accepted answers."""
        return self._scorer(answer, self.references(item))

    def reference(self, item: Item) -> str:
        """The accepted answers, joined by ` | `."""
        return " | ".join(self.references(item))

    def references(self, item: Item) -> list[str]:
        """The accepted answers."""
        return [str(answer) for answer in item.data["answers"]]

    def result(
        self,
        item: Item,
        answer: str,
        messages: Sequence[Mapping[str, Any]],
        turns: Sequence[Mapping[str, Any]],
        chat: Chat,
    ) -> RolloutResult:
        """The scored result. Images are named in it, with their hashes, and never kept; a near miss says that it is."""
        pages = self.pages(item)
        told = "\n".join([*(page.words for page in pages), self._task(item)])
        shown = [{**m, "content": told} if isinstance(m.get("content"), list) else m for m in messages]
        result = super().result(item, answer, shown, turns, chat)
        reason = result.fail_reason
        if 0.0 < result.soft < 1.0 and reason.startswith("wrong_answer:"):
            reason = f"{_NEAR_MISS}{reason.removeprefix('wrong_answer')}"
        return replace(result, fail_reason=reason)

    def extras(self, item: Item, answer: str) -> Mapping[str, Any]:  # noqa: ARG002
        """Names and hashes of the images, and `gold_answers`."""
        pages = self.pages(item)
        images = {"image_paths": [page.name for page in pages], "image_hashes": [page.sha256 for page in pages]}
        return {**images, "gold_answers": self.references(item)}

    def fingerprint(self) -> str:
        """Hash of the sources, the prompts, the scorer and the settings that can change a result."""
        return content_hash(super().fingerprint(), scorer_fingerprint("anls", {"mode": self.scoring}))

    def _task(self, item: Item) -> str:
        return self.prompt("user", question=self.question(item))

    def _image_part(self, page: PageImage) -> JsonObject:
        detail = {} if self.image_detail == "auto" else {"detail": self.image_detail}
        return {"type": "image_url", "image_url": {"url": self._addresses.of(page), **detail}}

    def _page(self, name: str, where: str) -> PageImage:
        if name not in self._pages:
            self._pages[name] = find_image(name, self._roots, where)
        return self._pages[name]

    def _image_roots(self, cfg: Mapping[str, Any]) -> list[Path]:
        if self.data_root:
            root = Path(self.data_root)
            if not root.is_dir():
                raise DataError(f"env.data_root: {root} is not a folder; name the one that the image paths start from.")
            return [root]
        source = Path(str(self.split_dir or cfg.get("split_dir") or "."))
        if self.split_mode in ("ratio", "hash"):
            data = Path(str(self.data_path or cfg.get("data_path") or "."))
            source = data if data.is_dir() else data.parent
        return [source, Path()]

    def _notice_shared_pages(self) -> None:
        """Say it when a page of the test split is also one to learn from: the score then says less about new pages."""
        seen = {digest for split in ("train", "val") for item in self._rows.items(split) for digest in _hashes(item)}
        shared = [item.id for item in self._rows.items("test") if seen.intersection(_hashes(item))]
        if shared:
            more = ", …" if len(shared) > _SHOWN else ""
            self._rows.notices.append(
                f"{len(shared)} test item(s) ask about an image that train or val items ask about too: "
                f"{', '.join(shared[:_SHOWN])}{more}."
            )


def _hashes(item: Item) -> list[str]:
    return [str(digest) for digest in item.data["image_hashes"]]
