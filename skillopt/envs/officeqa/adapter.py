"""The environment `officeqa`: questions about figures in bulletins, answered with tools, search, or the right pages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.config.provider_row import Provider
from skillopt.config.providers import PROVIDERS
from skillopt.datasets.base import SplitDataLoader
from skillopt.envs.answers import AnswerTag
from skillopt.envs.benchmark import BenchmarkEnv, Row, headed, materialize_command
from skillopt.envs.exec_target import asker, is_exec_target, run_agent
from skillopt.envs.fingerprint import default_fingerprint
from skillopt.envs.officeqa import rollouts
from skillopt.envs.officeqa.documents import find_roots
from skillopt.envs.officeqa.loader import OfficeQALoader
from skillopt.envs.officeqa.pages import join_pages, shortened
from skillopt.envs.officeqa.rows import normal_row, page_hints
from skillopt.envs.officeqa.search import SearchService
from skillopt.envs.officeqa.sources import Page, Sources, answer_folders
from skillopt.envs.officeqa.tools import Toolbox
from skillopt.errors import ConfigError, DataError
from skillopt.prompts.fence import fence
from skillopt.scoring import Score, get_scorer, scorer_fingerprint
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

if TYPE_CHECKING:
    from skillopt.envs.chat import Chat

RETRIEVALS = ("oracle", "restricted", "open")
SEARCH_MODES = {
    "offline": "offline",
    "custom": "custom",
    "custom_search": "custom",
    "azure": "azure",
    "azure_search": "azure",
}
WEB_SEARCH: JsonObject = {"type": "web_search"}
_LISTED = 20
_EXCERPT = 2000
_PLACES = frozenset({"data_dirs", "search_auth_env", "search_timeout_seconds"})  # change no result
_PROMPTS = {"custom": "system_search", "azure": "system_web"}


@dataclass(eq=False)
class OfficeQAEnv(BenchmarkEnv):
    """Items with `question`, `ground_truth`, `source_files` and `source_docs`. The fields are the `env.*` keys.

    `search_mode`: `offline` looks into folders of documents, `custom` asks a search service, `azure` lets the provider
    search. Offline, `retrieval` says what the target gets: `oracle` the right pages and tools over the right files,
    `restricted` the tools only, `open` tools over all files; without `use_local_tools` it gets no tools.
    `exec_timeout`: seconds for one item, in every mode. `hard` is equality of amounts, `soft` token F1.
    """

    max_turns: int = field(default=1, init=False)
    split_mode: str = "split_dir"
    exec_timeout: float = 900
    data_dirs: Sequence[str] | str | None = None
    max_tool_turns: int = 12
    search_mode: str = "offline"
    retrieval: str = "oracle"
    use_local_tools: bool = True
    max_queries_per_turn: int = 4
    search_api_url: str = ""
    search_auth_env: str = "OFFICEQA_CUSTOM_SEARCH_AUTH"
    search_provider: str = "duckduckgo"
    search_max_num_results: int = 4
    search_timeout_seconds: float = 20

    def __post_init__(self) -> None:
        if self.search_mode not in SEARCH_MODES:
            raise ConfigError(f"env.search_mode is {self.search_mode!r}; expected offline, custom or azure.")
        self.search_mode = SEARCH_MODES[self.search_mode]
        if self.retrieval not in RETRIEVALS:
            raise ConfigError(f"env.retrieval is {self.retrieval!r}; expected {', '.join(RETRIEVALS)}.")
        for name in ("max_tool_turns", "max_queries_per_turn", "search_max_num_results", "search_timeout_seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"env.{name} is {getattr(self, name)}; expected more than 0.")
        super().__post_init__()
        self._scorer = get_scorer("amount", mode=self.scoring)
        self._tag = AnswerTag(which="first" if self.scoring == "paper" else "last", fallback="none")
        self._sources = Sources.none()
        self._service: SearchService | None = None
        self._hidden: tuple[Path, ...] = ()

    def runs_agents(self) -> bool:
        """Whether a coding agent can do the items: not where the controller searches for the target."""
        return self._reads_documents

    def make_loader(self, **settings: Any) -> SplitDataLoader:
        """A loader that takes a CSV file before a JSON file."""
        return OfficeQALoader(self.normalize, **settings)

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Find the documents, once, then load the splits and check every item.

        Raises ConfigError when the target's backend cannot do what the mode needs, or for wrong search settings;
        DataError without documents, and for items whose files or pages are not there.
        """
        self._check_backend(str(cfg.get("target_backend") or ""))
        self._need_data(cfg)
        if self.search_mode == "custom":
            self._service = SearchService(
                self.search_api_url,
                self.search_auth_env,
                self.search_provider,
                self.search_max_num_results,
                self.search_timeout_seconds,
            )
        if self._reads_documents:
            roots = find_roots(self.data_dirs, os.environ)
            splits = self.split_dir or str(cfg.get("split_dir") or "")
            self._hidden = answer_folders(splits, self.out_root, self.data_path)
            self._sources = Sources.find(self.retrieval, roots, self._hidden)
        super().setup(cfg)
        self._add_notices()

    def normalize(self, row: Row) -> Row:
        """The row under the names that items have here (see `normal_row`), with the hash of what it will be shown.

        The hash makes an item another one when a document changes.
        """
        item = normal_row(row)
        item.pop("source_hash", None)
        if digest := self._sources.digest(item):
            item["source_hash"] = digest
        return item

    def check(self, item: Item) -> None:
        """Raise DataError for an item without question or answer, or whose documents are not there."""
        if not any(self.text_of(item, name).strip() for name in ("question", "ground_truth")):
            raise DataError(
                f"item {item.id!r} has neither question nor ground_truth, as in a list of ids; "
                f"`{materialize_command(type(self))}` fetches what belongs to the ids."
            )
        self.text_of(item, "question", required=True)
        self.text_of(item, "ground_truth", required=True)
        self._scorer.check_references(self.references(item), f"item {item.id!r}, field 'ground_truth'")
        self._sources.check(item)

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """Instructions and skill, then the question with what the mode shows."""
        return self._messages(item, skill, self._sources.pages(item.data))

    def answer(self, reply_text: str) -> str:
        """The text of the answer tag; a reply without one answers nothing."""
        return self._tag(reply_text)

    def score(self, item: Item, answer: str) -> Score:
        """Equality of amounts as `hard`, token F1 as `soft`."""
        return self._scorer(answer, self.references(item))

    def task_type(self, item: Item) -> str:
        """The item's category."""
        return self.text_of(item, "category")

    def reference(self, item: Item) -> str:
        """The right answer."""
        return self.text_of(item, "ground_truth")

    def references(self, item: Item) -> list[str]:
        """The right answer, as a list."""
        return [self.text_of(item, "ground_truth")]

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        """Do one item in the way of its mode."""
        pages = self._sources.pages(item.data)
        if is_exec_target(chat) and self._reads_documents and self.use_local_tools:
            messages = self._messages(item, "", pages)
            return self._row(item, pages, self._by_agent(item, skill, messages, chat), chat)
        ask, shown_skill = asker(chat, skill)
        messages = self._messages(item, shown_skill, pages)
        if self.search_mode == "custom":
            assert self._service is not None, "made in setup"
            limits = (self.max_tool_turns, self.max_queries_per_turn)
            course = rollouts.with_search(chat, messages, self._service, self.answered, limits)
        elif self.search_mode == "azure":
            course = rollouts.once(chat, messages, tools=[WEB_SEARCH])
        elif self.use_local_tools:
            toolbox = Toolbox(self._sources.library, self._sources.allowed(item.data))
            course = rollouts.with_tools(chat, messages, toolbox, self.answered, self.max_tool_turns)
        else:
            course = rollouts.once(ask, messages)
        return self._row(item, pages, course, chat)

    def fingerprint(self) -> str:
        """Hash of the sources, the prompts, the scorer, the settings, and in `open` of every document."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _PLACES}
        scorer = scorer_fingerprint("amount", {"mode": self.scoring})
        return content_hash(default_fingerprint(type(self), own), scorer, self._sources.digest_of_all())

    @property
    def _reads_documents(self) -> bool:
        return self.search_mode == "offline"

    def _check_backend(self, backend: str) -> None:
        """Raise ConfigError for a target that cannot carry what this mode sends; agents bring their own tools."""
        row = PROVIDERS.get(backend)
        offline = "tools" if self.use_local_tools else ""
        need = {"offline": offline, "azure": "web_search"}.get(self.search_mode, "")
        if row is None or row.is_agent("target") or not need or need in row.capabilities:
            return
        able = [name for name, other in PROVIDERS.items() if other.serves("target") and self._can_use(other, need)]
        raise ConfigError(
            f"env.search_mode={self.search_mode} sends {need}, which the backend {backend} (for the target) cannot "
            f"carry; set model.target_backend to one of: {', '.join(able)}."
        )

    def _can_use(self, row: Provider, need: str) -> bool:
        return self.runs_agents() if row.is_agent("target") else need in row.capabilities

    def _messages(self, item: Item, skill: str, pages: Sequence[Page]) -> list[JsonObject]:
        offline = "system_tools" if self.use_local_tools else "system_plain"
        system = _PROMPTS.get(self.search_mode, offline)
        return [
            {"role": "system", "content": self.with_skill(system, skill, rounds=str(self.max_tool_turns))},
            {"role": "user", "content": self._task(item, fence(join_pages(pages), "pages") if pages else "")},
        ]

    def _task(self, item: Item, pages: str) -> str:
        """The user message: question, and offline what is known about where to look."""
        parts = {"Question": self.question(item)}
        if self._reads_documents:
            parts["Parsed pages"] = pages
            if self._sources.limited:
                parts["Candidate files"] = _listing([doc.name for doc in self._sources.right(item.data)])
                parts["Source hints"] = _listing(item.data["source_docs"])
        return headed(parts)

    def _by_agent(self, item: Item, skill: str, messages: Sequence[Mapping[str, Any]], chat: Chat) -> rollouts.Course:
        """Runs of a coding agent, which finds the documents in its folder under the names that the task uses."""
        task = "\n\n".join([self.prompt("agent"), str(messages[-1]["content"])])
        given: dict[str, Any] = {"data_dirs": self._sources.library.roots}
        if self._sources.limited:
            given = {"files": {doc.name: doc.path for doc in self._sources.allowed(item.data)}}

        def ask(told: str) -> str:
            return run_agent(chat, task=told, skill=skill, denied=self._hidden, **given).text

        return rollouts.with_agent(ask, task, self.answered, self.max_tool_turns)

    def _row(self, item: Item, pages: Sequence[Page], course: rollouts.Course, chat: Chat) -> RolloutResult:
        """The scored result. It keeps the beginning of each page, and the skill not at all."""
        excerpts = join_pages([(title, shortened(text, _EXCERPT)) for title, text in pages])
        shown = [{"role": "user", "content": self._task(item, excerpts)}]
        result = self.result(item, self.answer(course.reply_text), shown, course.turns, chat)
        reason = result.fail_reason
        if course.out_of_rounds and reason.startswith("no_answer"):
            reason = f"out_of_rounds: no answer within {course.rounds} rounds."
        extras = {
            **result.extras,
            "ground_truth": self.reference(item),
            "source_files": item.data["source_files"],
            "resolved_source_paths": [doc.name for doc in self._sources.right(item.data)],
            "oracle_parsed_pages_included": bool(pages),
            "oracle_parsed_pages_chars": sum(len(text) for _, text in pages),
            "use_local_tools": self.use_local_tools,
            "last_finish_reason": chat.finish_reason,
        }
        trajectory = tuple(entry for entry in result.trajectory if entry.get("role") != "user")
        return replace(result, fail_reason=reason, n_turns=course.rounds, trajectory=trajectory, extras=extras)

    def _add_notices(self) -> None:
        if not self._reads_documents:
            return
        items = self.all_items()
        pageless = [item for item in items if not page_hints(item.data)] if self.retrieval == "oracle" else []
        if pageless:
            what = "the tools" if self.use_local_tools else "nothing to read"
            self._rows.notices.append(
                f"{len(pageless)} of {len(items)} items name no page in 'source_docs', e.g. {pageless[0].id!r}; with "
                f"env.retrieval=oracle they get {what}."
            )
        if self.retrieval != "oracle" and not self.use_local_tools:
            self._rows.notices.append(
                f"env.retrieval={self.retrieval} without env.use_local_tools: the target is shown no document at all."
            )


def _listing(names: Sequence[str]) -> str:
    more = [f"- … and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return "\n".join([*(f"- {name}" for name in names[:_LISTED]), *more])
