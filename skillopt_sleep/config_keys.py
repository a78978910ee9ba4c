"""Every setting of a night in one table: type, default, range and meaning.

Files, flags and the reference page are checked against and made from these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "folder", "path", "choice", "flag", "integer", "number", "paths", "texts", "projects"]

SOURCES = ("claude", "codex", "copilot", "copilot_cli", "cursor", "pi", "opencode", "auto")
BACKENDS = ("mock", "claude", "codex", "copilot", "cursor", "pi", "opencode", "handoff", "azure_openai")
BACKEND_ALIASES = {
    "anthropic": "claude",
    "claude_cli": "claude",
    "claude_code": "claude",
    "codex_cli": "codex",
    "openai_codex": "codex",
    "github_copilot": "copilot",
    "copilot_cli": "copilot",
    "gh_copilot": "copilot",
    "cursor_agent": "cursor",
    "cursor_cli": "cursor",
    "pi_cli": "pi",
    "pi_coding_agent": "pi",
    "pi-coding-agent": "pi",
    "opencode_cli": "opencode",
    "opencode-cli": "opencode",
    "azure": "azure_openai",
    "aoai": "azure_openai",
    "session": "handoff",
    "file": "handoff",
    "azure_responses": "azure-responses",
    "aoai-responses": "azure-responses",
    "responses": "azure-responses",
}
ALL_BACKENDS = (*BACKENDS, "azure-responses")
GATE_MODES = ("on", "off", "none", "false", "greedy")


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. `low` and `high` bound numbers (inclusive); `nullable` accepts null, whose sense `meaning` says."""

    name: str
    kind: Kind
    default: Any
    meaning: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    nullable: bool = False

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        words = {
            "text": "text",
            "folder": "the path of a folder",
            "path": "a path",
            "choice": "one of " + ", ".join(repr(choice) for choice in self.choices if choice) + self._empty(),
            "flag": "true or false",
            "integer": "a whole number" + self._range(),
            "number": "a number" + self._range(),
            "paths": "a list of paths",
            "texts": "a list of texts",
            "projects": "'invoked', 'all' or a list of project paths",
        }[self.kind]
        return words + (" or null" if self.nullable else "")

    def _empty(self) -> str:
        return ", or empty" if "" in self.choices else ""

    def _range(self) -> str:
        if self.low is not None and self.high is not None:
            return f" from {self.low:g} to {self.high:g}"
        return f" of at least {self.low:g}" if self.low is not None else ""


_BACKEND_CHOICES = ("", *ALL_BACKENDS)

KEYS: tuple[Key, ...] = (
    Key("claude_home", "folder", "~/.claude", "Claude Code's folder: transcripts in `projects`, skills in `skills`."),
    Key("codex_home", "folder", "~/.codex", "Codex's folder."),
    Key("pi_home", "folder", "~/.pi", "Pi's folder."),
    Key("cursor_home", "folder", "~/.cursor", "Cursor's folder."),
    Key("vscode_workspace_storage", "path", "", "VS Code's workspace storage; empty: the platform's usual place."),
    Key("copilot_cli_session_store", "path", "", "Copilot CLI's session database; empty: the usual place."),
    Key("opencode_db", "path", "", "OpenCode's database; empty: the usual place; `:memory:`: nothing to read."),
    Key("transcript_source", "choice", "claude", "Which agent's sessions are read.", choices=SOURCES),
    Key("projects", "projects", "invoked", "Whose sessions are read: of the invoked project, of all, or of a list."),
    Key("invoked_project", "path", "", "The project of this night; empty: the current folder."),
    Key(
        "lookback_hours",
        "number",
        72,
        "How far back the first harvest of a project looks; 0 or less, or null: no limit.",
        nullable=True,
    ),
    Key("max_tasks_per_night", "integer", 40, "Most tasks a night works with.", low=1),
    Key("max_sessions_per_night", "integer", 0, "Most sessions a night reads; 0: three for each task.", low=0),
    Key(
        "max_tokens_per_night",
        "integer",
        400_000,
        "Hard cap on tokens of all model calls of a night; 0: none may be spent; null: no cap.",
        low=0,
        nullable=True,
    ),
    Key(
        "max_calls_per_night",
        "integer",
        1000,
        "Hard cap on model calls of a night; 0: none may be made; null: no cap.",
        low=0,
        nullable=True,
    ),
    Key(
        "max_minutes_per_night",
        "number",
        240,
        "No call starts after this many minutes; null: no cap.",
        low=0,
        nullable=True,
    ),
    Key("holdout_fraction", "number", 0.34, "Older name of `val_fraction`, used when only it is set.", low=0, high=1),
    Key("val_fraction", "number", 0.34, "Share of tasks that decide about a change.", low=0, high=1),
    Key("test_fraction", "number", 0.0, "Share of tasks that are only reported.", low=0, high=1),
    Key(
        "backend",
        "choice",
        "",
        "What answers model calls. It has to be chosen: `mock` calls nothing and learns from prepared tasks only.",
        choices=_BACKEND_CHOICES,
    ),
    Key("model", "text", "", "The backend's model; empty: the backend's usual one."),
    Key("optimizer_backend", "choice", "", "Backend of mining, reflection and judging.", choices=_BACKEND_CHOICES),
    Key("optimizer_model", "text", "", "Model of the optimizer; empty: `model`."),
    Key("target_backend", "choice", "", "Backend of attempts.", choices=_BACKEND_CHOICES),
    Key("target_model", "text", "", "Model of the target; empty: `model`."),
    Key("judge_backend", "choice", "", "Backend of rubric judging; empty: the optimizer's.", choices=_BACKEND_CHOICES),
    Key("judge_model", "text", "", "Model of the judge; empty: the optimizer's."),
    Key("azure_endpoint", "text", "", "Address of the OpenAI-compatible or Azure endpoint."),
    Key(
        "gate_mode",
        "choice",
        "on",
        "`on`: a change needs better held-out scores. `off`, `none`, `false`, `greedy`: it does not.",
        choices=GATE_MODES,
    ),
    Key("codex_path", "path", "", "The codex program; empty: looked for."),
    Key("pi_path", "path", "", "The pi program; empty: looked for."),
    Key("cursor_path", "path", "", "The cursor-agent program; empty: looked for."),
    Key("opencode_path", "path", "", "The opencode program; empty: looked for."),
    Key("opencode_tool_replay", "flag", False, "OpenCode may be given stand-ins of the tools that a task requires."),
    Key("edit_budget", "integer", 4, "Most edits of one reflection.", low=1),
    Key("preferences", "text", "", "Your wishes in your words; reflection reads them."),
    Key("gate_metric", "choice", "mixed", "The score that the gate compares.", choices=("hard", "soft", "mixed")),
    Key("gate_mixed_weight", "number", 0.5, "Share of the soft score in `mixed`.", low=0, high=1),
    Key("gate_no_regression", "flag", True, "No held-out task may get worse."),
    Key("gate_min_val", "integer", 5, "With fewer validation tasks the gate answers `inconclusive`.", low=1),
    Key(
        "holdout_nights",
        "integer",
        3,
        "Nights that a validation task decides before it changes places with a training task; null: for ever.",
        low=1,
        nullable=True,
    ),
    Key(
        "holdout_recall", "flag", True, "Validation tasks of earlier nights help where tonight's are too few to decide."
    ),
    Key(
        "replay_mode",
        "choice",
        "mock",
        "`mock`: every task is answered in text. `worktree`: tasks that changed files are done in a fresh checkout.",
        choices=("mock", "worktree"),
    ),
    Key("replay_checks", "texts", [], "Commands that have to succeed after a task in a checkout, such as `make test`."),
    Key("replay_links", "texts", [], "Ignored folders of the project that the commands need, such as `node_modules`."),
    Key("replay_readable", "paths", [], "More folders that the commands can read; their `bin` folders are on PATH."),
    Key("replay_minutes", "number", 10, "Most minutes of one task in a checkout, and of one command.", low=0.1),
    Key("dream_rollouts", "integer", 1, "Attempts at each training task; more than 1 contrasts good with bad.", low=1),
    Key("dream_factor", "integer", 0, "Variations of each training task that are dreamt up.", low=0),
    Key("recall_k", "integer", 0, "Similar tasks of earlier nights that join the training tasks.", low=0),
    Key("recall_all_projects", "flag", False, "Recall may use tasks of other projects."),
    Key("evolve_memory", "flag", True, "The project's CLAUDE.md may change."),
    Key("evolve_skill", "flag", True, "The managed skill may change."),
    Key("slow_update", "flag", True, "Compare with the night before and keep lasting guidance."),
    Key("llm_mine", "flag", True, "Let the backend find the tasks; `mock` never does."),
    Key("target_skill_path", "path", "", "The managed SKILL.md; relative: under the project; empty: see below."),
    Key("skill_roots", "paths", [], "More folders in which named skills are looked for; relative: under the project."),
    Key("target_task_filter", "flag", True, "With `target_skill_path`, keep the tasks that fit that skill."),
    Key("progress", "flag", False, "Say on stderr what the night is doing."),
    Key("workers", "integer", 1, "Attempts at a time; SKILLOPT_SLEEP_WORKERS sets it too.", low=1, high=64),
    Key("evidence_log", "flag", True, "Write evidence.jsonl."),
    Key("evidence_max_chars", "integer", 4000, "Longest text in the evidence; at least 200 are kept.", low=0),
    Key(
        "multi_skill_fanout",
        "flag",
        None,
        "One proposal for each named skill; null: as `multi_skill_report` says.",
        nullable=True,
    ),
    Key("multi_skill_report", "flag", False, "Older name of `multi_skill_fanout`."),
    Key("auto_adopt", "flag", False, "Adopt an accepted managed proposal at once."),
    Key(
        "allow_ungated_auto_adopt",
        "flag",
        False,
        "Auto-adopt even with the gate off, that is, changes that nothing has checked.",
    ),
    Key("managed_skill_name", "text", "skillopt-sleep-learned", "Name of the managed skill and of the last group."),
    Key("redact_secrets", "flag", True, "Redact the evidence. Everything else is redacted whatever this says."),
    Key("retention_nights", "integer", 30, "Newest night folders that are kept; pending proposals always are.", low=1),
    Key("seed", "integer", 42, "Seed of the task splits."),
    Key("state_dir", "path", "", "The folder of state.json; empty: the usual place."),
)
BY_NAME = {key.name: key for key in KEYS}
