"""The workshop of a night: it makes a fresh checkout for each attempt, and tells what was done in it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import CallFailed, UsageProblem
from skillopt_sleep.judges import Undecidable, conditions_of
from skillopt_sleep.show import plain_line
from skillopt_sleep.types import TaskRecord
from skillopt_sleep.worktrees.changes import Changes
from skillopt_sleep.worktrees.checkout import Seeds, check_out, inner_folder, place_git_dir, put_memory
from skillopt_sleep.worktrees.checks import Commands, commands_of
from skillopt_sleep.worktrees.conditions import outcome_of_changes
from skillopt_sleep.worktrees.git import GitFailed, find_git
from skillopt_sleep.worktrees.hidden import hidden_places
from skillopt_sleep.worktrees.pen import Pen, make_pen
from skillopt_sleep.worktrees.repository import FULL_NAME, Repository, find_repository
from skillopt_sleep.worktrees.scratch import Scratch, empty
from skillopt_sleep.worktrees.work import Outcome, Work, shown_diff

PLACE = "worktrees"
"""The folder of checkouts, in the state folder."""


@dataclass(frozen=True, slots=True)
class Means:
    """What checkouts of one repository are made with. `memory`: the project's memory file, relative to its top."""

    repository: Repository
    commands: Commands
    memory: Path
    scratch: Scratch
    seeds: Seeds
    pen: Pen

    def links(self, tree: Path) -> dict[Path, Path]:
        """What of the live project is shown in a checkout, by where; a place that leads elsewhere is passed over."""
        found = {}
        for name in self.commands.links:
            with contextlib.suppress(OSError):
                at = inner_folder(tree, self.repository.folder / name.parent) / name.name
                if not at.is_symlink():
                    found[at] = (self.commands.project / name).resolve()
        return found

    def untouched(self, commit: str, room: Path) -> Path:
        """The project's folder in a new checkout in `room`, with what the commands need.

        Raises GitFailed and OSError.
        """
        tree = room / self.repository.root.name
        check_out(self.seeds.of(commit), tree)
        folder = inner_folder(tree, self.repository.folder)
        self.commands.link(folder)
        return folder


class Workshop:
    """Checkouts of one repository. Safe to use from several threads; to be closed, which removes all of them."""

    def __init__(self, config: SleepConfig, repository: Repository, commands: Commands) -> None:
        self._known, self._commands = repository, commands
        self._scratch = scratch = Scratch(config.state_dir / PLACE)
        try:
            pen = make_pen((*repository.private, *hidden_places(config)), scratch.new("pen"))
        except BaseException:
            scratch.close()
            raise
        memory = repository.folder / config.memory_path.name
        self._means = Means(repository, commands, memory, scratch, Seeds(repository, scratch), pen)

    def __enter__(self) -> Workshop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def repository(self) -> Path:
        """The top of the repository that the project lies in."""
        return self._known.root

    def commit_at(self, when_epoch: float, branch: str = "") -> str:
        """The newest first-parent commit not younger than a time, of a branch if it is there, else of HEAD; or ""."""
        return self._known.commit_at(when_epoch, branch)

    def resolve(self, rev: str) -> str:
        """The full name of a commit. Raises UsageProblem when there is none."""
        return self._known.resolve(rev)

    def inside(self, path: str, cwd: str) -> str | None:
        """Where in the repository a file lies, judged by its name alone; None when it lies outside."""
        return self._known.inside(path, cwd)

    def workspace(self, task: TaskRecord, memory: str) -> Workspace:
        """Where a task with a workspace is done, with `memory` as the project's memory file.

        Raises UsageProblem for a workspace without a commit of this repository, or with a folder outside of it.
        """
        commit, folder = str(task.workspace.get("commit", "")), str(task.workspace.get("folder") or "")
        inner = PurePosixPath(folder.replace("\\", "/"))
        if inner.is_absolute() or ".." in inner.parts or "\0" in folder or ".git" in inner.parts:
            raise UsageProblem(f"Task {task.id}: workspace.folder {folder!r} is no folder of the repository.")
        name = commit if FULL_NAME.fullmatch(commit) else self.resolve(commit)
        return Workspace(self._means, name, Path(inner), memory, tuple(conditions_of(task.judge)))

    def has_folder(self, commit: str, folder: str) -> bool:
        """Whether there is such a folder in a commit; "" is the top."""
        return self._known.has_folder(commit, folder)

    def preflight(self, commit: str, commands: Sequence[str], *, source: str = "replay_checks") -> None:
        """Run each command once on an untouched checkout of a commit, in the project's folder.

        Raises UsageProblem for one that cannot be started or does not end in time, naming its `source`; one that fails
        is fine.
        """
        if not commands:
            return
        room = self._scratch.new("room")
        try:
            folder = self._means.untouched(commit, room)
            for command in dict.fromkeys(commands):
                self._commands.check(command, folder=folder, room=room, source=source)
        except (GitFailed, OSError) as error:
            raise UsageProblem(f"No checkout of {self.repository} can be made to try commands: {error}") from error
        finally:
            empty(room)

    def close(self) -> None:
        """Remove every checkout and copy."""
        self._scratch.close()


@dataclass(frozen=True, slots=True)
class Workspace:
    """What an attempt starts from: a commit, the agent's `folder` in it, the `memory` file, the conditions on it."""

    means: Means
    commit: str
    folder: Path
    memory: str
    conditions: tuple[Mapping[str, Any], ...] = ()

    @property
    def identity(self) -> str:
        """What decides about the work beside prompt and model, for keys of a cache. The prompt has the memory."""
        commands = self.means.commands
        told = [self.commit, self.folder.as_posix(), [dict(one) for one in self.conditions], commands.seconds]
        return json.dumps([*told, [str(path) for path in (*commands.links, *commands.readable)]], sort_keys=True)

    @property
    def about(self) -> str:
        """One line for previews."""
        return plain_line(f"in a fresh checkout of {self.means.repository.root} at {self.commit[:12]}")

    @property
    def seconds(self) -> float:
        """The time for one attempt."""
        return self.means.commands.seconds

    @contextlib.contextmanager
    def open(self) -> Iterator[Desk]:
        """A fresh checkout, removed at the end. Raises CallFailed (refused) when none can be made."""
        room = self.means.scratch.new("desk")
        try:
            try:
                desk = Desk(self, room)
            except (GitFailed, OSError) as error:
                raise CallFailed(f"No checkout can be made {self.about}: {error}", kind="refused") from error
            yield desk
        finally:
            empty(room)


class Desk:
    """A fresh checkout in which an agent works, in `folder`."""

    def __init__(self, workspace: Workspace, room: Path) -> None:
        self._workspace, self._room, self._means = workspace, room, workspace.means
        means, repository = workspace.means, workspace.means.repository
        self._seed = means.seeds.of(workspace.commit)
        self._tree = room / "work" / repository.root.name
        check_out(self._seed, self._tree)
        put_memory(self._tree, means.memory, workspace.memory)
        self._changes = Changes(
            self._seed,
            self._tree,
            room / "changes",
            repository.object_format,
            memory=means.memory,
            skipped=[repository.folder / name for name in means.commands.links],
        )
        self.folder = inner_folder(self._tree, workspace.folder)

    def penned(
        self,
        argv: Sequence[str],
        *,
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        rooms: bool = False,
    ) -> list[str]:
        """The command that runs a program here, shut in with bubblewrap: to be run with its environment and input.

        It can write the checkout, a private /tmp and what is `writable` (its own home, say), and read the machine but
        for what is hidden: the live project, its history, transcripts, credentials, the homes of agents, sockets. What
        is `readable` or `writable` is shown even so, but for transcripts in it; what is not there is passed over. The
        folders of `replay_links` lie in the checkout, to be read. In the pen no further one can be made, except by a
        program that has a sandbox of its own for its commands: `rooms`.
        """
        return self._means.pen.around(
            argv,
            folder=self.folder,
            writable=[self._tree, *writable],
            readable=[*self._means.commands.readable, *readable],
            linked=self._means.links(self._tree),
            rooms=rooms,
        )

    def finish(self) -> Work:
        """What was changed, and which conditions hold; to be called once the agent has ended.

        Raises CallFailed (refused) for changes that are too large or cannot be taken, Undecidable for a command that
        cannot be started without the changes either.
        """
        try:
            changed = self._changes.take()
            outcomes: dict[str, Outcome] = {}
            commands = [str(one["arg"]) for one in self._workspace.conditions if one["op"] == "command"]
            if commands:
                outcomes = self._run(list(dict.fromkeys(commands)))
        except (GitFailed, OSError) as error:
            raise CallFailed(f"The changes of an attempt cannot be taken: {error}", kind="refused") from error
        checks = [
            outcomes[str(one["arg"])] if one["op"] == "command" else outcome_of_changes(one, changed)
            for one in self._workspace.conditions
        ]
        return Work(shown_diff(changed.diff), changed.files, tuple(checks))

    def _run(self, commands: Sequence[str]) -> dict[str, Outcome]:
        """The outcome of each command in the project's folder of a second checkout, which has the changes."""
        room = self._room / "checks"
        tree = room / self._tree.name
        place_git_dir(self._seed, tree)
        self._changes.put_files(tree)
        folder = inner_folder(tree, self._means.repository.folder)
        self._means.commands.link(folder)
        return {command: self._outcome(command, folder, room) for command in commands}

    def _outcome(self, command: str, folder: Path, room: Path) -> Outcome:
        """The outcome of a command. One that starts without the changes, and with them twice does not, fails."""
        run = self._means.commands.run
        with contextlib.suppress(Undecidable):
            return run(command, folder=folder, room=room)
        plain = self._means.scratch.new("untouched")
        try:
            run(command, folder=self._means.untouched(self._workspace.commit, plain), room=plain)
        finally:
            empty(plain)
        try:
            return run(command, folder=folder, room=room)
        except Undecidable as undecided:
            return Outcome("command", command, passed=False, note=str(undecided))


def open_workshop(config: SleepConfig) -> Workshop:
    """The workshop of the project's repository, its pen tried.

    Raises UsageProblem when there is no git, no repository with a commit, or no bubblewrap that shuts in, and when the
    repository holds the person's home, which could not be hidden from an agent.
    """
    if not find_git():
        raise UsageProblem("replay_mode worktree needs git: install it, or set replay_mode to mock.")
    repository = find_repository(config.project)
    home = paths.expand("~").resolve()
    around = next((path for path in repository.private if home.is_relative_to(path)), None)
    if around is not None:
        raise UsageProblem(
            f"The repository of {config.project} holds your home folder ({around}), which cannot be hidden from an "
            "agent that lives there; set replay_mode to mock."
        )
    return Workshop(config, repository, commands_of(config))
