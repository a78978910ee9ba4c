"""The folder in which a coding agent does one task: what is put into it, what may not be, what is taken out of it.

An agent sees the task, the skill and what is handed to it, under relative names, in a folder that is made for this
attempt alone and removed after it:

    task.md                                   what is asked
    .agents/skills/skillopt-target/SKILL.md   the skill that is trained
    ATTACHMENTS.md, attachments/01_page.png   images, if there are any
    docs/root_1, docs/root_2, …               links to folders of data, if there are any
    …                                         files of the task
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from skillopt.errors import DataError
from skillopt.model.attachments import Image
from skillopt.types import content_hash
from skillopt.utils.invisible import replace_surrogates

SKILL_NAME = "skillopt-target"
SKILL_PATH = f".agents/skills/{SKILL_NAME}/SKILL.md"
TASK_FILE = "task.md"
ATTACHMENTS_FILE = "ATTACHMENTS.md"
ATTACHMENTS_FOLDER = "attachments"
LINKS_FOLDER = "docs"
DENIED_NAMES = frozenset({"officeqa_split", "sealqa_split"})
"""Names of folders that hold right answers, wherever they lie."""

_DESCRIPTION = "Guidance for the task in this folder. Read it before you begin."
_NO_GUIDANCE = "There is no guidance yet."
_LARGEST_OUTPUT = 4 * 1024 * 1024
_RESERVED = frozenset({SKILL_PATH, TASK_FILE, ATTACHMENTS_FILE})


@dataclass(frozen=True, slots=True)
class DataPolicy:
    """Which data an agent must not be given: folders (with all in them) and names of folders.

    `denied`: folders with right answers or results, such as the splits and the run folder.
    """

    denied: tuple[Path, ...] = ()
    denied_names: frozenset[str] = DENIED_NAMES

    def check(self, path: Path) -> Path:
        """The real path. Raises DataError when it is, lies in, or holds something that is denied."""
        real = path.resolve()
        if named := self.denied_names.intersection(real.parts):
            raise DataError(f"{path}: an agent may not be given data under {sorted(named)[0]!r}, which holds answers.")
        for root in self.denied:
            known = root.resolve()
            if real.is_relative_to(known) or known.is_relative_to(real):
                raise DataError(f"{path}: an agent may not be given this, because it would see {root}.")
        return real

    def check_folder(self, path: Path) -> Path:
        """The real path of a folder of data, none of whose links leads out of it. Raises DataError."""
        real = self.check(path)
        if not real.is_dir():
            raise DataError(f"{path}: is not a folder that an agent could be given.")
        for link in _links(real):
            if not link.resolve().is_relative_to(real):
                raise DataError(f"{link}: this link leads out of {path}, which an agent is given; copy what it names.")
        return real


@dataclass(frozen=True, slots=True)
class Workspace:
    """What an agent is given for one task, besides the task itself, which is the user message of the call.

    `files`: by relative path, a text or a file to copy. `images`: files or read images. `data_dirs`: folders that it
    may read. `outputs`: relative paths of text files that are read back into `ModelReply.files`. `folder`: a folder
    that somebody prepared, in which the agent works as it is; nothing is put into it. `allowed_tools`,
    `permission_mode` and `sandbox` replace what the adapter would choose. `trace_dir`: where traces are kept as files.
    """

    skill: str = ""
    preamble: str = ""
    files: Mapping[str, str | Path] = field(default_factory=dict)
    images: tuple[Path | Image, ...] = ()
    data_dirs: tuple[Path, ...] = ()
    outputs: tuple[str, ...] = ()
    allow_file_edits: bool = False
    policy: DataPolicy = DataPolicy()
    folder: Path | None = None
    allowed_tools: tuple[str, ...] = ()
    permission_mode: str = ""
    sandbox: str = ""
    trace_dir: Path | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of everything that the agent is given."""
        files = {name: value if isinstance(value, str) else _digest(value) for name, value in self.files.items()}
        images = [
            _digest(image) if isinstance(image, Path) else content_hash(image.data.hex()) for image in self.images
        ]
        folders = [str(self.folder or ""), [str(path) for path in self.data_dirs]]
        how = [list(self.outputs), self.allow_file_edits, list(self.allowed_tools), self.permission_mode, self.sandbox]
        return content_hash("workspace", self.skill, self.preamble, files, images, folders, how)


def render_skill_md(
    skill_content: str, *, name: str = SKILL_NAME, description: str = _DESCRIPTION, preamble: str = ""
) -> str:
    """The text of SKILL.md: front matter with name and description, an optional preamble, and the skill."""
    head = f"---\nname: {json.dumps(name)}\ndescription: {json.dumps(description, ensure_ascii=False)}\n---"
    parts = [head, "# ReflACT Target Skill", preamble.strip(), "## Dynamic Guidance", skill_content.strip()]
    return "\n\n".join([part for part in parts[:-1] if part] + [parts[-1] or _NO_GUIDANCE]) + "\n"


def prepare_workspace(  # noqa: PLR0913 - a published signature
    *,
    work_dir: str | Path,
    skill_md: str,
    task_text: str = "",
    task_filename: str = TASK_FILE,
    images: Sequence[str | Path] | None = None,
    extra_files: Mapping[str, str] | None = None,
    copy_files: Sequence[tuple[str | Path, str]] | None = None,
    link_dirs: Sequence[tuple[str | Path, str]] | None = None,
) -> tuple[str, str]:
    """Make `work_dir` anew as a workspace; the paths of its SKILL.md and of its task file.

    `extra_files`: texts by relative path. `copy_files`: (source, relative path). `link_dirs`: (folder, relative path).
    Raises FileNotFoundError for a source that is missing, DataError for a path that leads out of the workspace and for
    a folder that is there and is no workspace.
    """
    folder = Path(work_dir)
    _clear(folder)
    policy = DataPolicy()
    skill_path = _write(folder, SKILL_PATH, skill_md)
    task_path = folder / relative_path(task_filename)
    if task_text:
        _write(folder, task_filename, task_text)
    for name, text in (extra_files or {}).items():
        _write(folder, name, text)
    for source, name in copy_files or ():
        _copy(folder, Path(source), name, policy)
    for source, name in link_dirs or ():
        _link(folder, policy.check_folder(Path(source)), name)
    attach(folder, tuple(Path(image) for image in images or ()), policy)
    return str(skill_path), str(task_path)


def lay_out(workspace: Workspace, task: str, folder: Path) -> tuple[Path, ...]:
    """Put everything of `workspace` into the empty `folder`; the paths of its images there.

    Raises DataError for a file that is missing, a path that leads out of the workspace, and data that is denied.
    """
    _write(folder, SKILL_PATH, render_skill_md(workspace.skill, preamble=workspace.preamble))
    _write(folder, TASK_FILE, f"{task}\n" if task and not task.endswith("\n") else task)
    for name, value in workspace.files.items():
        if str(relative_path(name)) in _RESERVED:
            raise DataError(f"{name}: this file of a workspace is written from the task; choose another name.")
        if isinstance(value, str):
            _write(folder, name, value)
        else:
            _copy(folder, value, name, workspace.policy)
    for number, source in enumerate(workspace.data_dirs, start=1):
        _link(folder, workspace.policy.check_folder(source), link_name(number))
    return attach(folder, workspace.images, workspace.policy)


def link_name(number: int) -> str:
    """Where the folder of data number `number` (from 1) is found in a workspace."""
    return f"{LINKS_FOLDER}/root_{number}"


def attach(folder: Path, images: Sequence[Path | Image], policy: DataPolicy) -> tuple[Path, ...]:
    """Copy images into `attachments/` and list them in `ATTACHMENTS.md`, by relative path only; their paths."""
    names = [f"{ATTACHMENTS_FOLDER}/{number:02d}_{_image_name(image)}" for number, image in enumerate(images, start=1)]
    for name, image in zip(names, images, strict=True):
        if isinstance(image, Image):
            _place(folder, name).write_bytes(image.data)
        else:
            _copy(folder, image, name, policy)
    if names:
        _write(folder, ATTACHMENTS_FILE, "# Attachments\n\n" + "".join(f"- {name}\n" for name in names))
    return tuple(folder / name for name in names)


def read_outputs(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Text of those files that the agent left; never through a link, which could lead anywhere."""
    found: dict[str, str] = {}
    root = folder.resolve()
    for name in names:
        path = folder / relative_path(name)
        inside = path.resolve() == root / relative_path(name)
        if inside and path.is_file() and path.stat().st_size <= _LARGEST_OUTPUT:
            found[name] = path.read_bytes().decode("utf-8", "replace")
    return found


def relative_path(name: str) -> PurePosixPath:
    """A name as a path inside a workspace. Raises DataError for one that leads out of it."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = path.parts
    if not parts or path.is_absolute() or PureWindowsPath(name).drive or ".." in parts or "\0" in name:
        raise DataError(f"{name!r} is no relative path inside a workspace.")
    return path


def _clear(folder: Path) -> None:
    """Make the folder new; only a workspace is deleted for that, or what is empty."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise DataError(f"{folder}: is not a folder; name one for the workspace.")
    if folder.exists():
        if any(folder.iterdir()) and not (folder / SKILL_PATH).is_file():
            raise DataError(f"{folder}: holds files that are no workspace; name another folder, or empty this one.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _place(folder: Path, name: str) -> Path:
    """The path of a new file, with its folders made. Raises DataError where a link lies on the way."""
    path = folder / relative_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{name}: lies behind a link that leads out of the workspace.")
    return path


def _write(folder: Path, name: str, text: str) -> Path:
    path = _place(folder, name)
    path.write_bytes(replace_surrogates(text).encode("utf-8"))
    return path


def _copy(folder: Path, source: Path, name: str, policy: DataPolicy) -> None:
    real = policy.check(source)
    if not real.is_file():
        raise FileNotFoundError(f"{source}: no such file, which the agent should be given.")
    shutil.copyfile(real, _place(folder, name))


def _link(folder: Path, source: Path, name: str) -> None:
    path = _place(folder, name)
    try:
        path.symlink_to(source, target_is_directory=True)
    except OSError:  # Windows without the right to make links
        shutil.copytree(source, path)


def _links(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (path for name in (*folders, *files) if (path := Path(parent) / name).is_symlink())


def _image_name(image: Path | Image) -> str:
    return f"image{image.suffix}" if isinstance(image, Image) else image.name


def _digest(path: Path) -> str:
    try:
        return content_hash(path.read_bytes().hex())
    except OSError:
        return f"missing {path}"
