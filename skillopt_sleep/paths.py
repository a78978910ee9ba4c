"""Where everything of a night lies, and the one way to write a private file there.

Folders are 0700 and files 0600 whatever the umask says, because both hold prompts, replies and parts of transcripts.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "SKILLOPT_SLEEP_HOME"
HANDOFF_VARIABLE = "SKILLOPT_SLEEP_HANDOFF_DIR"
PROJECT_FOLDER = ".skillopt-sleep"
_KEY_LENGTH = 20


def expand(path: str | Path) -> Path:
    """An absolute path with `~` expanded, `..` folded and links kept as they are."""
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100 - resolve() would follow links


def sleep_home(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of everything that belongs to a person: SKILLOPT_SLEEP_HOME, else ~/.skillopt-sleep."""
    named = (os.environ if environ is None else environ).get(HOME_VARIABLE, "").strip()
    return expand(named or f"~/{PROJECT_FOLDER}")


def project_key(project: str | Path) -> str:
    """20 hex digits that stand for a project's absolute path in file names."""
    return hashlib.sha256(str(expand(project)).encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


def project_folder(project: str | Path) -> Path:
    """`<project>/.skillopt-sleep`: staging, scheduled log, helper scripts."""
    return expand(project) / PROJECT_FOLDER


def staging_root(project: str | Path) -> Path:
    """`<project>/.skillopt-sleep/staging`: one folder a night."""
    return project_folder(project) / "staging"


def project_above(project: str | Path) -> Path | None:
    """The nearest folder above `project` that nights were staged in, below the person's own home; None: there is none.

    A project that has such a folder itself is not looked past.
    """
    place, home = expand(project), expand("~")
    if project_folder(place).is_dir():
        return None
    return next((one for one in place.parents if one != home and staging_root(one).is_dir()), None)


def night_folder(state_dir: Path, project: str | Path) -> Path:
    """`<state>/nights/<project key>`: the journal and the paid calls of a project's night in progress."""
    return state_dir / "nights" / project_key(project)


def evidence_folder(state_dir: Path) -> Path:
    """`<state>/evidence`: evidence of dry runs."""
    return state_dir / "evidence"


def locks_folder(state_dir: Path) -> Path:
    """`<state>/locks`: the operating system's locks of nights and adoption targets."""
    return state_dir / "locks"


def handoff_folder(project: str | Path, environ: Mapping[str, str] | None = None) -> Path:
    """SKILLOPT_SLEEP_HANDOFF_DIR, else `<project>/.skillopt-sleep-handoff`."""
    named = (os.environ if environ is None else environ).get(HANDOFF_VARIABLE, "").strip()
    return expand(named) if named else expand(project) / ".skillopt-sleep-handoff"


def private_folder(path: Path) -> Path:
    """Make `path` with its missing parents, all 0700, and return it. A folder that is there keeps its mode."""
    missing = []
    at = path
    while not at.exists():
        missing.append(at)
        at = at.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.name == "posix":
            folder.chmod(0o700)
    return path


def write_private(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` all or nothing, mode 0600, UTF-8 and line ends untouched.

    Raises OSError when the folder cannot be written; the old file is then still whole.
    """
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    private_folder(path.parent)
    temporary = path.with_name(f".tmp-{path.name[:40]}.{secrets.token_hex(8)}")
    try:
        with _open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_private_json(path: Path, value: object) -> None:
    """Write `value` as indented JSON with a final newline, as `write_private` does. NaN raises ValueError."""
    write_private(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def append_private(path: Path, line: str) -> None:
    """Append one line in a single write to a file of mode 0600; an unfinished last line is ended first."""
    private_folder(path.parent)
    with _open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode="a+b") as stream:
        unfinished = False
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            unfinished = stream.read(1) != b"\n"
        stream.write(b"\n" * unfinished + line.rstrip("\n").encode("utf-8", "replace") + b"\n")


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot; the rename itself is done
        return
    finally:
        os.close(handle)


def _open_private(path: Path, flags: int, *, mode: str = "wb") -> io.BufferedRandom:
    extra = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags | extra, 0o600)
    try:
        if os.name == "posix":
            os.fchmod(handle, 0o600)
        return os.fdopen(handle, mode)  # type: ignore[return-value]
    except BaseException:
        os.close(handle)
        raise
