"""The environment `spreadsheetbench`: workbooks changed by programs that the target writes, graded by their cells."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from skillopt.envs.benchmark import BenchmarkEnv, Row
from skillopt.envs.chat import Chat
from skillopt.envs.exec_target import is_exec_target
from skillopt.envs.fingerprint import default_fingerprint
from skillopt.envs.spreadsheetbench import conversation, loading, react
from skillopt.envs.spreadsheetbench.cases import Task, digests_of, find_cases, read_task, task_folder, task_type
from skillopt.envs.spreadsheetbench.conversation import Talk, Work
from skillopt.envs.spreadsheetbench.execution import Room, Run, Workshop
from skillopt.envs.spreadsheetbench.grading import Verdict, grade, total, verification
from skillopt.envs.spreadsheetbench.replies import extract_code
from skillopt.envs.spreadsheetbench.workbooks import need_openpyxl, preview
from skillopt.errors import ConfigError
from skillopt.scoring import Score
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

if TYPE_CHECKING:
    from skillopt.scoring.base import Mode

MODES = ("single", "multi", "react")
_SANDBOXES = ("auto", "require")
_RULES_VERSION = 1  # raise it when something outside this folder changes results


@dataclass(eq=False)
class SpreadsheetBenchEnv(BenchmarkEnv):
    """Workbooks to change. The fields are the `env.*` keys.

    `data_root`: folder with the workbooks. `mode`: `single`, one program in one reply; `multi`, up to `max_turns`
    replies, each told how its program failed; `react`, up to `max_turns` replies with tools. `exec_timeout`: seconds
    for one item. `code_sandbox`: `require` refuses to run programs where files and network cannot be shut out.
    `use_eval_feedback`: in training rollouts of mode `multi`, a program that runs is checked, and the target is told
    which cells are wrong and what it wrote there.
    """

    agents_with = "env.mode=single"
    data_root: str = ""
    mode: str = "single"
    max_turns: int = 30
    exec_timeout: float = 600
    workers: int = 64
    code_sandbox: str = "auto"
    use_eval_feedback: bool = False

    def __post_init__(self) -> None:
        for key, allowed in (("mode", MODES), ("code_sandbox", _SANDBOXES)):
            if getattr(self, key) not in allowed:
                expected = ", ".join(allowed[:-1]) + f" or {allowed[-1]}"
                raise ConfigError(f"env.{key} is {getattr(self, key)!r}; expected {expected}.")
        if self.use_eval_feedback and self.mode != "multi":
            raise ConfigError(
                f"env.use_eval_feedback needs env.mode=multi, where a further reply can follow; it is {self.mode}."
            )
        super().__post_init__()
        if self.mode == "react":
            self.needs = frozenset({"tools"})  # type: ignore[misc] # this mode's, not every one's
        self.train_options = {"use_eval_feedback": True} if self.use_eval_feedback else {}
        self._room = Room(self.exec_timeout, require=self.code_sandbox == "require")
        self._tasks: dict[str, Task] = {}
        self._previews: dict[str, str] = {}
        pandas = importlib.util.find_spec("pandas") is not None
        self._libraries = f"the standard library{', openpyxl and pandas' if pandas else ' and openpyxl'}"

    def runs_agents(self) -> bool:
        """Whether coding agents can be targets: in mode `single` only, as their own work is of many turns already."""
        return self.mode == "single"

    def one_call(self) -> bool:
        """Whether an item is one call."""
        return self.mode == "single"

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load items and workbooks and check them. Raises DataError, ConfigError or MissingExtraError."""
        need_openpyxl()
        loading.check_root(self.data_root)
        super().setup(cfg)
        notices = self._rows.notices
        notices += loading.sandbox_notices(require=self._room.require)
        notices += loading.data_notices({item.id: self._task(item) for item in self.all_items()}, self._grading)

    def normalize(self, row: Row) -> Row:
        """The row with the digests of its workbooks, so that changed files are another task."""
        where = f"item {str(row.get('id'))!r}"
        cases = find_cases(task_folder(Path(self.data_root), row, where), where)
        return {**row, "workbooks": digests_of(cases)}

    def check(self, item: Item) -> None:
        """Raise DataError for an item whose position or workbooks cannot be used."""
        task = self._task(item)
        loading.check_task(item.id, task, str(item.data.get("answer_sheet") or ""), self._grading, self._rows.notices)

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """Instructions and skill, then the item: its workbook's first rows, or in mode `react` its file."""
        kind = "react" if self.mode == "react" else "code"
        task = self._task(item)
        values = {
            "instruction": task.instruction,
            "instruction_type": task.instruction_type or "(not given)",
            "answer_position": task.answer_position,
            **({} if kind == "react" else {"preview": self._preview(item)}),
        }
        return [
            {"role": "system", "content": self.with_skill(f"{kind}_system", skill, libraries=self._libraries)},
            {"role": "user", "content": self.prompt(f"{kind}_user", **values)},
        ]

    def task_type(self, item: Item) -> str:
        """`cell_level`, `sheet_level` or `other`."""
        return task_type(self.text_of(item, "instruction_type"))

    def question(self, item: Item) -> str:
        """The instruction."""
        return self.text_of(item, "instruction")

    def answer(self, reply_text: str) -> str:
        """The program inside a reply."""
        return extract_code(reply_text)

    def score(self, item: Item, answer: str) -> Score:
        """Run a program on the item's cases and compare the results."""
        with Workshop(self._task(item), self._room) as shop:
            return total(self._verdicts(shop, Work(code=answer)))

    def fingerprint(self) -> str:
        """Hash of sources, prompts, libraries and the settings that can change a result; not of places."""
        settings = {
            name: getattr(self, name)
            for name in ("mode", "max_turns", "scoring", "max_completion_tokens", "use_eval_feedback")
        }
        return content_hash(_RULES_VERSION, default_fingerprint(type(self), settings), self._libraries)

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        """Let the target work on an item, run its program on every case, and grade the results."""
        task = self._task(item)
        messages = self.messages(item, skill)
        with Workshop(task, self._room, chat.cancel) as shop:
            look = (lambda run: self._verdict(shop, 0, run)) if self._tells(chat) else None
            talk = Talk(chat, self.prompt, shop, self.max_turns, look)
            work = self._work(talk, messages, skill)
            verdicts = self._verdicts(shop, work)
        return self._row(item, messages, work, verdicts, chat)

    def _work(self, talk: Talk, messages: list[JsonObject], skill: str) -> Work:
        if is_exec_target(talk.chat):
            if not self.runs_agents():
                raise ConfigError(
                    f"env.mode is {self.mode!r}, but the target is a coding agent, which works in turns of its own: "
                    "set env.mode=single."
                )
            return conversation.agent(talk, skill, str(messages[1]["content"]), self._libraries)
        ways = {"single": conversation.single, "multi": conversation.multi, "react": react.react}
        return ways[self.mode](talk, messages)

    def _verdicts(self, shop: Workshop, work: Work) -> list[Verdict]:
        """Every case, run with the program unless that was done already, and graded."""
        verdicts = []
        for number, case in enumerate(shop.task.cases):
            if not number and work.first is not None:
                run = work.first
            elif work.code:
                run = shop.run(work.code, case)
            elif self.mode == "react":
                run = Run(reason="no-solution-py-for-other-cases: solution.py is not there to be run on this workbook")
            else:
                run = Run(reason="empty-code-block: the reply holds no program")
            verdicts.append(self._verdict(shop, number, run))
        return verdicts

    def _verdict(self, shop: Workshop, number: int, run: Run) -> Verdict:
        return grade(shop.task, shop.task.cases[number], run, self._grading, shop.cancel.raise_if_cancelled)

    def _row(
        self, item: Item, messages: list[JsonObject], work: Work, verdicts: list[Verdict], chat: Chat
    ) -> RolloutResult:
        """The result of an item, with every case in it."""
        score = total(verdicts)
        system, user = work.prompts or (str(messages[0]["content"]), str(messages[1]["content"]))
        return RolloutResult(
            id=item.id,
            hard=score.hard,
            soft=score.soft,
            n_turns=work.replies,
            fail_reason="" if score.hard >= 1 else score.feedback,
            task_type=self.task_type(item),
            task_description=self.question(item),
            predicted_answer=work.code,
            question=self.question(item),
            target_system_prompt=system,
            target_user_prompt=user,
            spreadsheet_preview=self._preview(item),
            trajectory=(*work.turns, {"role": "system", "content": verification(verdicts)}),
            usage=chat.usage,
            extras={
                "ok": score.hard >= 1,
                "instruction_type": self.text_of(item, "instruction_type"),
                "agent_ok" if self.mode == "react" else "llm_ok": True,
                **_progress(work, verdicts, score),
                "use_eval_feedback": self._tells(chat),
                "finish_reason": chat.finish_reason,
                "model": chat.model,
                **self._traces(chat),
            },
        )

    def _tells(self, chat: Chat) -> bool:
        """Whether the target is told which cells are wrong: in training rollouts, if it was asked for."""
        return self.use_eval_feedback and bool(chat.rollout_options.get("use_eval_feedback"))

    @property
    def _grading(self) -> Mode:
        return cast("Mode", self.scoring)

    def _task(self, item: Item) -> Task:
        key = item.content
        if key not in self._tasks:
            self._tasks[key] = read_task(item, Path(self.data_root), self._grading)
        return self._tasks[key]

    def _preview(self, item: Item) -> str:
        key = item.content
        if key not in self._previews:
            self._previews[key] = preview(self._task(item).cases[0].source)
        return self._previews[key]


def _progress(work: Work, verdicts: Sequence[Verdict], score: Score) -> JsonObject:
    """How far an item came: the phase that it ended in, and what became of its program and of each case."""
    ran = sum(verdict.run.output is not None for verdict in verdicts)
    late = work.phase == "timeout" or score.feedback.startswith("task-timeout")
    return {
        "phase": "timeout" if late else work.phase if not work.code else "eval" if ran else "exec",
        "code_ok": bool(work.code),
        "exec_ok": ran == len(verdicts),
        "n_cases": len(verdicts),
        "n_exec_pass": ran,
        "n_pass": sum(verdict.passed for verdict in verdicts),
        "cases": [verdict.row() for verdict in verdicts],
    }
