"""What a scheduled night needs to know: a job file with the settings, the time and the environment, but no secret.

A job lies in `<home>/jobs/<project key>/`: `job.json` (what to run, and with which environment), `config.json` (the
resolved settings) and, after a night, `last.json` (how it ended).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import skillopt_sleep
from skillopt_sleep import paths
from skillopt_sleep.config import CONFIG_VARIABLE, SleepConfig
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.redact import is_secret_name, redact_secrets

FORMAT = "skillopt_sleep.job.v1"
RUNNER = "skillopt_sleep.scheduled"
LOG_NAME = "cron.log"

SECRETS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("CODEX_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
)
"""Variables whose names a job may keep, and whose values it never does."""

_KEPT = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|TZ|LC_\w+|XDG_(CONFIG|DATA|CACHE|STATE)_HOME|NVM_DIR"
    r"|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(HTTP|HTTPS|ALL|NO)_PROXY"
    r"|SKILLOPT_SLEEP_\w+|CLAUDE_CONFIG_DIR|CLAUDE_CODE_USE_(BEDROCK|VERTEX)|CLAUDE_CODE_GIT_BASH_PATH"
    r"|ANTHROPIC_(BEDROCK_|VERTEX_)?BASE_URL|ANTHROPIC_VERTEX_PROJECT_ID|AWS_(REGION|PROFILE)|CLOUD_ML_REGION"
    r"|GOOGLE_APPLICATION_CREDENTIALS|CODEX_HOME|OPENAI_BASE_URL|AZURE_CONFIG_DIR"
    r"|AZURE_OPENAI_(ENDPOINT|AUTH_MODE|API_VERSION|DEPLOYMENT|AD_SCOPE|MANAGED_IDENTITY_CLIENT_ID)"
    r"|USERPROFILE|(LOCAL)?APPDATA",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"://[^/\s@]*@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Job:
    """One project's nightly job. `arguments` is the command line of the night after `skillopt-sleep`.

    `environment` holds what is set before the night unless it is set already; `pass_through` the names of secrets that
    were set when the job was made. `log`: the file that the night's output goes to when no shell redirects it.
    """

    project: Path
    hour: int
    minute: int
    python: str
    arguments: tuple[str, ...]
    folder: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_through: tuple[str, ...] = ()
    entry: str = ""
    log: str = ""

    @property
    def file(self) -> Path:
        """The job file."""
        return self.folder / "job.json"

    @property
    def config_file(self) -> Path:
        """The settings of the night."""
        return self.folder / "config.json"

    @property
    def argv(self) -> list[str]:
        """What the scheduler starts, in `package_root()`."""
        return [self.python, "-m", RUNNER, str(self.file), *self.arguments]

    @property
    def time(self) -> str:
        """HH:MM."""
        return f"{self.hour:02d}:{self.minute:02d}"

    @property
    def adopts(self) -> bool:
        """Whether accepted proposals go live without a person."""
        return bool(self.config.get("auto_adopt")) or "--auto-adopt" in self.arguments


def make_job(
    config: SleepConfig, *, time: tuple[Any, Any], extra: str = "", python: str | None = None, log: str = ""
) -> Job:
    """A checked job of the project of `config`, at `time` (hour, minute). Nothing is written.

    Raises UsageProblem for a time that does not exist, a folder or interpreter that is not there, and for text that
    does not fit on one line.
    """
    hour, minute = check_time(*time)
    project = config.project
    if not project.is_dir():
        raise UsageProblem(f"{project}: there is no such folder; pass --project with the project to schedule.")
    words = _words(extra)
    job = Job(
        project=project,
        hour=hour,
        minute=minute,
        python=_interpreter(python),
        arguments=("run", *_selection(config), *words),
        folder=job_folder(project),
        config=settings_of(config),
        environment=environment_of(config),
        pass_through=tuple(name for name in _names(os.environ) if _is_secret(name, os.environ[name])),
        log=log,
    )
    for text in (*job.argv, str(package_root())):
        check_line(text)
    return job


def check_time(hour: Any, minute: Any) -> tuple[int, int]:
    """The two as whole numbers within a day. Raises UsageProblem."""
    for name, value, last in (("hour", hour, 23), ("minute", minute, 59)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= last:
            raise UsageProblem(f"{name} is {value!r}; expected a whole number from 0 to {last}.")
    return hour, minute


def check_line(text: str) -> str:
    """`text`, if it is not blank and fits on one line of a schedule. Raises UsageProblem."""
    if not isinstance(text, str) or not text.strip() or _CONTROL.search(text):
        raise UsageProblem(f"{text!r} cannot stand in a schedule: it is blank or holds a control character.")
    return text


def job_folder(project: str | Path) -> Path:
    """`<home>/jobs/<project key>`."""
    return paths.sleep_home() / "jobs" / paths.project_key(project)


def package_root() -> Path:
    """The folder that the package is imported from."""
    return Path(skillopt_sleep.__file__).parents[1]


def settings_of(config: SleepConfig) -> dict[str, Any]:
    """All that was chosen, and what would otherwise depend on where and as whom the night runs."""
    names = ("claude_home", "codex_home", "pi_home", "cursor_home")
    homes = {name: str(paths.expand(config.get(name))) for name in names}
    fixed = {"invoked_project": str(config.project), "projects": config.get("projects")}
    return {**config.chosen(), **homes, **fixed, "state_dir": str(config.state_dir)}


def environment_of(config: SleepConfig) -> dict[str, str]:
    """The variables of now that the night needs too, without secrets."""
    kept = {name: os.environ[name] for name in _names(os.environ) if not _is_secret(name, os.environ[name])}
    kept.pop(CONFIG_VARIABLE, None)
    return {**kept, paths.HOME_VARIABLE: str(config.home)}


def write_job(job: Job) -> None:
    """Write both files of a job, private, each all or nothing."""
    paths.write_private_json(job.config_file, dict(job.config))
    data = {
        "format": FORMAT,
        "project": str(job.project),
        "hour": job.hour,
        "minute": job.minute,
        "python": job.python,
        "arguments": list(job.arguments),
        "environment": dict(job.environment),
        "pass_through": list(job.pass_through),
        "entry": job.entry,
        "log": job.log,
    }
    paths.write_private_json(job.file, data)


@contextmanager
def written(job: Job) -> Iterator[None]:
    """Write a job; when the body raises, the files are what they were before."""
    old = {file: _bytes(file) for file in (job.config_file, job.file)}
    try:
        write_job(job)
        yield
    except BaseException:
        for file, data in old.items():
            if data is None:
                file.unlink(missing_ok=True)
            else:
                paths.write_private(file, data)
        raise


def read_job(file: Path) -> Job:
    """The job that `write_job` wrote. Raises UsageProblem when it is not there or is none."""
    try:
        data = json.loads(file.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, not {FORMAT}")
        return Job(
            project=Path(data["project"]),
            hour=int(data["hour"]),
            minute=int(data["minute"]),
            python=str(data["python"]),
            arguments=tuple(map(str, data["arguments"])),
            folder=file.parent,
            environment={str(name): str(value) for name, value in dict(data["environment"]).items()},
            pass_through=tuple(map(str, data["pass_through"])),
            entry=str(data.get("entry", "")),
            log=str(data.get("log", "")),
        )
    except OSError as error:
        raise UsageProblem(f"{file}: the job cannot be read ({error.strerror}); schedule it again.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageProblem(f"{file}: this is no job file ({error}); schedule it again.") from None


def known_job(project: str | Path) -> Job | None:
    """The job of a project as it was scheduled last; None when there is none that can be read."""
    try:
        return read_job(job_folder(project) / "job.json")
    except UsageProblem:
        return None


def forget_job(folder: Path) -> None:
    """Remove the job in a folder and its settings; how its last night ended is kept."""
    for name in ("job.json", "config.json"):
        (folder / name).unlink(missing_ok=True)


def shell_command(job: Job) -> str:
    """One line for /bin/sh. The project has to be there; its folder for output is made, private."""
    inner = f"cd {shlex.quote(str(package_root()))} && {shlex.join(job.argv)}"
    folder = paths.PROJECT_FOLDER
    return (
        f"cd {shlex.quote(str(job.project))} && umask 077 && mkdir -p {folder} && "
        f"{{ {inner}; }} >> {folder}/{LOG_NAME} 2>&1"
    )


def _selection(config: SleepConfig) -> list[str]:
    """The flags that say whose sessions and which backend; readable in the schedule, and they may be changed there."""
    words = []
    if isinstance(config.get("projects"), str):  # a list of projects has no flag; it is in the settings
        words = ["--project", str(config.project), "--scope", str(config.get("projects"))]
    backend = str(config.get("backend"))
    words += ["--backend", backend] if backend else []
    return [*words, "--auto-adopt"] if config.get("auto_adopt") else words


def _interpreter(python: str | None) -> str:
    chosen = python if python is not None else sys.executable
    check_line(chosen)
    found = shutil.which(chosen) if Path(chosen).name == chosen else str(paths.expand(chosen))
    if not found or not Path(found).is_file():
        raise UsageProblem(f"{chosen}: there is no such Python interpreter.")
    return found


def _words(extra: str) -> list[str]:
    if not isinstance(extra, str) or _CONTROL.search(extra):
        raise UsageProblem(f"The further arguments {extra!r} hold a control character.")
    try:
        return shlex.split(extra)
    except ValueError as error:
        raise UsageProblem(f"The further arguments {extra!r} cannot be read ({error}).") from None


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _names(environ: Mapping[str, str]) -> list[str]:
    return sorted(name for name, value in environ.items() if value and (name in SECRETS or _KEPT.fullmatch(name)))


def _is_secret(name: str, value: str) -> bool:
    known = name in SECRETS or is_secret_name(name)
    return known or redact_secrets(value) != value or bool(_USER_INFO.search(value))
