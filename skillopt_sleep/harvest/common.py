"""What every source shares: the session as it is being read, the rules for its text, and the digest made from it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from skillopt_sleep.harvest.clock import epoch_of, iso_of
from skillopt_sleep.harvest.feedback import signals
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.types import SessionDigest

MAX_TEXT = 8000  # characters of one prompt or answer
MAX_PROMPTS = 100
WHOLE_PROMPTS = 10  # later ones are cut to MAX_LATER_TEXT
MAX_LATER_TEXT = 1000
MAX_FINALS = 5
MAX_NAMES = 100
MAX_FILES = 20
_MAX_NAME = 400
_RAW_LIMIT = 256 * 1024  # longer texts are cut before secrets are looked for
_CUT_ZONE = 32 * 1024  # the end of a cut text, where half a secret may stand; longer than any secret
_SURROGATES = re.compile("[\ud800-\udfff]")
_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(?:\s+\S+){0,2}\s*")
_COMMAND_TAG = re.compile(r"<command-(?:message|name)>")
_OPENINGS = ("[Pasted text", "Caveat:", "# /", "[Request interrupted by user")
_SUMMARIES = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
)
_UNCLEAN = re.compile(r"[^A-Za-z0-9_.:-]+")
Claim = Callable[[str], bool]
Scope = str | Sequence[str]


@dataclass(slots=True)
class Session:
    """One session as far as it has been read; all text in it is redacted and bounded, so that it can be kept.

    `prompts` are (text, whether it can speak of an answer before it). `entry` says whether a person sat in front of
    it, where that is known. `repeated` counts prompts that another transcript holds already, `seen` how often each
    text came. `unmatched` holds what was seen through only one of two channels that carry the same text.
    """

    session_id: str
    projects: list[str] = field(default_factory=list)
    branch: str = ""
    started: float | None = None
    ended: float | None = None
    prompts: list[tuple[str, bool]] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    skills: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    n_user: int = 0
    n_assistant: int = 0
    answered: bool = False
    repeating: bool = False
    repeated: int = 0
    entry: str = ""
    sub_agent: bool = False
    root: str = ""
    dated_by_file: bool = False
    seen: dict[str, int] = field(default_factory=dict)
    unmatched: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Session:
        """The session that `to_dict` gave."""
        known = {f.name for f in fields(cls)}
        session = cls(**{key: value for key, value in data.items() if key in known})
        session.prompts = [(text, answered) for text, answered in session.prompts]
        return session

    def to_dict(self) -> dict[str, Any]:
        """JSON values of all fields."""
        self.finals = [clean_text(text) for text in self.finals]
        return asdict(self)

    @property
    def turns(self) -> int:
        """Turns of both sides."""
        return self.n_user + self.n_assistant

    def at(self, stamp: object) -> None:
        """Widen the session's time by that of a record, when it has one."""
        when = epoch_of(stamp)
        if when is not None:
            self.started = when if self.started is None else min(self.started, when)
            self.ended = when if self.ended is None else max(self.ended, when)

    def in_folder(self, folder: object) -> None:
        """Note a working folder."""
        if isinstance(folder, str) and folder and "\0" not in folder and Path(folder).is_absolute():
            add_name(self.projects, folder, most=MAX_FILES, clean=False)

    def asked(self, text: str, key: str, claim: Claim) -> None:
        """A prompt of the person. `key` identifies it among all transcripts; an empty key never repeats."""
        if key and not claim(key):
            self.repeating = True
            self.repeated += 1
            return
        self.repeating = False
        self.n_user += 1
        most = MAX_TEXT if self.n_user <= WHOLE_PROMPTS else MAX_LATER_TEXT
        self.prompts.append((clean_text(text, most), self.answered or self.n_user > 1))
        if len(self.prompts) > MAX_PROMPTS:  # the beginning says what was wanted, the end how it turned out
            del self.prompts[MAX_PROMPTS // 2]

    def replied(self, text: str) -> None:
        """A visible text of the agent."""
        self.answered = True
        if self.repeating:
            return
        self.n_assistant += 1
        self.finals = [*self.finals, text[:_RAW_LIMIT]][-MAX_FINALS:]

    def digest(self, path: str, project: str) -> SessionDigest:
        """What mining gets of the session."""
        return SessionDigest(
            session_id=self.session_id,
            project=project,
            git_branch=self.branch,
            started_at=iso_of(self.started),
            ended_at=iso_of(self.ended),
            user_prompts=[text for text, _ in self.prompts],
            assistant_finals=list(self.finals),
            tools_used=list(self.tools),
            skills_used=list(self.skills),
            files_touched=list(self.files),
            feedback_signals=signals(text for text, answered in self.prompts if answered),
            n_user_turns=self.n_user,
            n_assistant_turns=self.n_assistant,
            raw_path=path,
        )


def clean_text(text: str, most: int = MAX_TEXT) -> str:
    """`text` without secrets, without characters that cannot be stored, and only then cut to `most` characters."""
    cut = len(text) >= _RAW_LIMIT
    text = redact_secrets(_SURROGATES.sub("\ufffd", text[:_RAW_LIMIT].replace("\0", "")))
    if cut:
        text = text[: max(0, len(text) - _CUT_ZONE)]
    return text if len(text) <= most else text[: most - 2] + " …"


def add_name(names: list[str], name: object, *, most: int = MAX_NAMES, clean: bool = True) -> None:
    """Add a text to distinct names in the order in which they were first seen."""
    if not isinstance(name, str) or not name.strip() or len(names) >= most:
        return
    text = clean_text(name.strip())[:_MAX_NAME] if clean else _SURROGATES.sub("\ufffd", name)
    if text not in names:
        names.append(text)


def tool_name(name: str) -> str:
    """A tool's name in plain characters, at most 80."""
    return _UNCLEAN.sub("_", name)[:80]


def is_noise(text: str) -> bool:
    """True for what stands where prompts stand and is none: blank, tags, short commands, notes of the program."""
    text = text.strip()
    if not text or (text.startswith("<") and text.endswith(">")) or text.startswith((*_OPENINGS, *_SUMMARIES)):
        return True
    return _COMMAND.fullmatch(text) is not None or _COMMAND_TAG.search(text, 0, 200) is not None


def text_of(content: object, kinds: frozenset[str] | None = None) -> str:
    """The text of a message's content: a string, a list of strings and blocks, or a block.

    Of blocks, those with a string `text` count, and only of `kinds` where they are given.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in (text_of(item, kinds) for item in content) if part)
    if isinstance(content, dict) and (kinds is None or content.get("type") in kinds):
        inner = content.get("text", content.get("content"))
        return inner if isinstance(inner, str) else ""
    return ""


def key_of(*parts: object) -> str:
    """A short key of what identifies a prompt."""
    joined = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return hashlib.sha256(joined).hexdigest()[:20]


def pick_project(folders: Iterable[str], scope: Scope, invoked: str) -> str | None:
    """The folder of a session under which it belongs to `scope`, or None when it does not.

    `all`: every session, also one without a folder (""). `invoked`: one in the invoked project or in a folder inside
    it; any folder when no project is invoked. A list: exactly one of these.
    """
    known = list(folders)
    if scope == "all":
        return known[0] if known else ""
    if not isinstance(scope, str):
        wanted = {_real(path) for path in scope}
        return next((folder for folder in known if _real(folder) in wanted), None)
    if not invoked:
        return known[0] if known else None
    root = _real(invoked)
    inside = root if root.endswith(os.sep) else root + os.sep
    return next((folder for folder in known if _real(folder) == root or _real(folder).startswith(inside)), None)


@lru_cache(maxsize=4096)
def _real(path: str) -> str:
    return os.path.normcase(os.path.realpath(Path(path).expanduser()))
